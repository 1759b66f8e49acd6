"""`ollm daemon` and `ollm chat --daemon`: conversations that outlive terminals."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from html import escape
from io import FileIO
from pathlib import Path
from typing import Any

import click

from ollm.app.process import ProcessScope
from ollm.cli.options import print_result, shared_options
from ollm.cli.start import ChatArguments
from ollm.config.environment import copy_environment, find_home
from ollm.daemon.bodies import InitReply, ListedSession
from ollm.daemon.client import DaemonClient, open_remote
from ollm.daemon.places import RunFiles
from ollm.domain.clock import format_stamp, now
from ollm.domain.errors import OllmError, StorageError, UsageError, suggest_storage_fix
from ollm.runtime.base import Conversation
from ollm.system.atomic import replace_file
from ollm.system.install_command import describe_extra_install

START_TIMEOUT_SECONDS = 20.0


@click.group()
def daemon() -> None:
    """Run conversations in the background.

    The daemon listens on a Unix socket that only you can open; --tcp adds a loopback port with a token.
    """


@daemon.command()
@click.option("--tcp", is_flag=True, help="Also listen on 127.0.0.1, with a token.")
def run(tcp: bool) -> None:
    """Run the daemon in the foreground, until Ctrl-C."""
    try:
        from ollm.daemon.server import serve
    except ImportError as error:
        raise UsageError("The daemon needs extra packages.", action=describe_extra_install("daemon")) from error
    asyncio.run(serve(ProcessScope(), tcp=tcp))


@daemon.command()
@click.option("--tcp", is_flag=True, help="Also listen on 127.0.0.1, with a token.")
def start(tcp: bool) -> None:
    """Start the daemon in the background."""
    files = get_run_files()
    if running := files.find_running():
        raise UsageError(f"The daemon is already running (process {running.pid}).")
    started = start_daemon(files, tcp=tcp)
    print(f"The daemon is running (process {started}).")


@daemon.command()
def stop() -> None:
    """Stop the daemon; running turns may finish first."""
    import os
    import signal

    files = get_run_files()
    running = files.find_running()
    if running is None:
        print("The daemon is not running.")
        return
    patience = ProcessScope().settings.daemon.drain_seconds + 20  # After the drain, sessions are saved and closed.
    os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while files.find_running() is not None:
        if time.monotonic() > deadline:
            raise OllmError(f"Process {running.pid} does not stop.", action=f"kill -9 {running.pid}")
        time.sleep(0.02)
    print("The daemon stopped.")


@daemon.command()
@shared_options("json")
def status(as_json: bool) -> None:
    """Show whether the daemon is running, and where."""
    files = get_run_files()
    found = files.find_running()
    url = found.url if found else None
    document = {
        "running": found is not None,
        "pid": found.pid if found else None,
        "socket": str(files.socket) if found else None,
        "url": url,
        "tokenFile": str(files.token_file) if url else None,
    }
    where = f", {url} with the token in {files.token_file}" if url else ""
    text = "The daemon is not running; start it with `ollm daemon start`."
    if found:
        text = f"The daemon is running (process {found.pid}) on {files.socket}{where}."
    print_result(document, text, as_json=as_json)


UNIT = """[Unit]
Description=ollm daemon

[Service]
Environment={home}
ExecStart={python} -m ollm daemon run
Restart=on-failure

[Install]
WantedBy=default.target
"""


# Nobody has tried this on a Mac.
AGENT = """<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
<key>Label</key><string>ollm.daemon</string>
<key>ProgramArguments</key>
<array><string>/bin/sh</string><string>-c</string><string>{home} exec {python} -m ollm daemon run</string></array>
<key>RunAtLoad</key><true/>
</dict></plist>
"""


@daemon.command()
def install() -> None:
    """Start the daemon at each login.

    Writes a systemd user unit; on macOS a launchd agent, which is untested.
    """
    environment = copy_environment()
    home, python = f"OLLM_HOME={find_home(environment).root}", sys.executable
    if sys.platform == "darwin":
        file, start = Path.home() / "Library/LaunchAgents/ollm.daemon.plist", "launchctl load -w {}"
        text = AGENT.format(home=escape(shlex.quote(home)), python=escape(shlex.quote(python)))
    else:
        folder = Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        file, start = folder / "systemd/user/ollm-daemon.service", "systemctl --user enable --now ollm-daemon"
        text = UNIT.format(home=quote_for_unit(home), python=quote_for_unit(python))
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, text.encode())
    print(f"Wrote {file}. To start it now and at each login:\n  ollm daemon stop\n  {start.format(file)}")


def quote_for_unit(text: str) -> str:
    """Quote a word for systemd, which expands % in a line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def get_run_files() -> RunFiles:
    return RunFiles(find_home(copy_environment()))


def start_daemon(files: RunFiles, *, tcp: bool = False) -> int:
    import subprocess

    files.prepare()
    log = files.directory.parent / "logs"
    log.mkdir(mode=0o700, exist_ok=True)
    written = log / "daemon.out"
    with written.open("ab", buffering=0) as out:
        begin_output(out, written)
        before = written.stat().st_size
        process = subprocess.Popen(
            [sys.executable, "-m", "ollm", "daemon", "run", *(["--tcp"] if tcp else [])],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not is_listening(files):
        if process.poll() is not None or time.monotonic() > deadline:
            output = written.read_bytes()[before:].decode(errors="replace")[-500:].strip().removeprefix("ollm: ")
            raise OllmError(
                f"The daemon did not start{f': {output}' if output else ' and could not say why.'}",
                action="Run `ollm daemon run` to see the error.",
            )
        time.sleep(0.02)
    return process.pid


def begin_output(out: FileIO, path: Path) -> None:
    """Write the start time, to fail early: on a full disk a daemon could not report why it ended."""
    try:
        out.write(f"started at {format_stamp(now())}\n".encode())
    except OSError as error:
        raise StorageError(
            f"The daemon did not start: {path} cannot be written: {error.strerror}.",
            action=f"{suggest_storage_fix(error)}, then start it again.",
        ) from error


def is_listening(files: RunFiles) -> bool:
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as found:
        try:
            found.connect(str(files.socket))
        except OSError:
            return False
        return True


@asynccontextmanager
async def connect_daemon() -> AsyncIterator[DaemonClient]:
    files = get_run_files()
    if not is_listening(files):
        await asyncio.to_thread(start_daemon, files)
    client = DaemonClient(files.socket)
    try:
        yield client
    finally:
        await client.close()


async def find_working_sessions() -> dict[str, int]:
    """Find the sessions in which a running daemon works, each with the number of its open questions."""
    if not is_listening(get_run_files()):
        return {}
    with suppress(OllmError):
        async with connect_daemon() as client:
            found = await client.call("GET", "/sessions?status=active&limit=1000", type=list[ListedSession])
            return {one.session_id: one.questions for one in found if one.running}
    return {}


def refuse_local_flags(start: ChatArguments) -> None:
    """Refuse options that apply to one run of the program and cannot reach a running daemon."""
    named = ["--provider, --base-url and --model"] if start.flags.get("provider") else []
    named += ["--allow"] if start.grants else []
    named += ["--yes"] if start.yes else []
    if named:
        raise UsageError(
            f"{', '.join(named)} cannot be combined with --daemon, which uses your settings.",
            action="Use `ollm config set`, or /model and /approval in the chat.",
        )


@asynccontextmanager
async def open_remote_conversation(start: ChatArguments) -> AsyncIterator[Conversation]:
    """Open a conversation that runs in the daemon. Leaving detaches and ends nothing."""
    async with connect_daemon() as client:
        body: dict[str, Any] = {
            "workspacePath": str(start.workspace),
            "full": start.full,
            "force": start.force,
            "beside": start.beside,
        }
        known = await client.call("POST", "/init", {"workspacePath": str(start.workspace)}, type=InitReply)
        if session := find_session_id(known, start):
            body["sessionId"] = session
        conversation = await open_remote(client, body)
        if start.mode:
            await conversation.command("mode", start.mode)
        if approval := start.flags.get("policy", {}).get("approval"):
            await conversation.command("approval", approval)
        if model := start.flags.get("provider", {}).get("model"):  # The previous session chose this model.
            await conversation.command("model", model)
        try:
            yield conversation
        finally:
            await conversation.close()


def find_session_id(known: InitReply, start: ChatArguments) -> str | None:
    if start.session:
        return ProcessScope().session_files.places.find(start.session)
    if not start.newest:
        return None
    unarchived = [line for line in known.sessions if line.status != "archived"]
    return unarchived[0].session_id if unarchived else None
