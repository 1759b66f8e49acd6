"""`ollm daemon`: keep conversations behind a socket, so that terminals can come and go."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from ollm.cli.options import json_option, print_json
from ollm.domain.errors import OllmError, UsageError

if TYPE_CHECKING:
    from io import FileIO
    from pathlib import Path

    from ollm.daemon.places import RunFiles

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
    import asyncio

    from ollm.app import ProcessScope

    try:
        from ollm.daemon.server import serve
    except ImportError as error:
        from ollm.system.install_command import describe_extra_install

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
    from ollm.app import ProcessScope

    patience = ProcessScope().settings.daemon.drain_seconds + 20  # for what runs, and for putting things away
    os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while files.find_running() is not None:
        if time.monotonic() > deadline:
            raise OllmError(f"Process {running.pid} does not stop.", action=f"kill -9 {running.pid}")
        time.sleep(0.02)
    print("The daemon stopped.")


@daemon.command()
@json_option
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
    if as_json:
        print_json(document)
    elif found is None:
        print("The daemon is not running; start it with `ollm daemon start`.")
    else:
        where = f", {url} with the token in {files.token_file}" if url else ""
        print(f"The daemon is running (process {found.pid}) on {files.socket}{where}.")


def get_run_files() -> RunFiles:
    from ollm.config.environment import copy_environment, find_home
    from ollm.daemon.places import RunFiles

    return RunFiles(find_home(copy_environment()))


def start_daemon(files: RunFiles, *, tcp: bool = False) -> int:
    """Start a daemon that outlives us, and wait until it listens; its process number."""
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
            said = written.read_bytes()[before:].decode(errors="replace")[-500:].strip()
            raise OllmError(
                f"The daemon did not start{f': {said}' if said else ' and could not say why.'}",
                action="Run `ollm daemon run` to see the error.",
            )
        time.sleep(0.02)
    return process.pid


def begin_output(out: FileIO, path: Path) -> None:
    """Say when it was started: a daemon that can write nothing, on a full disk, could not say why it ended."""
    from ollm.domain.clock import format_stamp, now
    from ollm.domain.errors import StorageError, suggest_storage_fix

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
