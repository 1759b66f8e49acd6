"""`ollm daemon`, `ollm web`, `ollm acp` and conversations elsewhere, as a person starts them."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from ollm.cli.daemon import find_session_id, refuse_local_flags
from ollm.cli.start import ChatArguments
from ollm.daemon.bodies import InitReply, SessionLine
from ollm.domain.errors import OllmError, UsageError
from tests.cli.command import SCRIPT, ollm
from tests.cli.inside import Inside
from tests.store.sessions.support import Home


def test_without_a_daemon_it_is_said_with_the_way_to_one(inside: Inside) -> None:
    assert inside.read("daemon") == "The daemon is not running; start it with `ollm daemon start`.\n"
    assert inside.read("daemon", "stop") == "The daemon is not running.\n"
    assert inside.read_json("daemon", "status") == {
        "running": False,
        "pid": None,
        "socket": None,
        "url": None,
        "tokenFile": None,
    }


def test_it_is_started_found_and_stopped(inside: Inside) -> None:
    started = inside.read("daemon", "start", "--tcp")
    try:
        status = inside.read_json("daemon", "status")
        assert started == f"The daemon is running (process {status['pid']}).\n"
        assert status["running"]
        assert status["url"].startswith("http://127.0.0.1:")
        assert status["tokenFile"] == str(inside.home / "run" / "token")
        said = inside.read("daemon", "status")
        assert (
            f"(process {status['pid']}) on {inside.home / 'run' / 'daemon.sock'}, {status['url']} with the token"
            in said
        )
        assert f"The daemon is already running (process {status['pid']})." in inside.fail("daemon", "start", code=2)
    finally:
        assert inside.read("daemon", "stop") == "The daemon stopped.\n"
    assert not inside.read_json("daemon", "status")["running"]


def test_one_that_cannot_start_says_why(inside: Inside) -> None:
    inside.configure("provider: [unfinished\n")
    done = inside.run("daemon", "start")

    assert done.code != 0
    assert "The daemon did not start" in done.err
    assert "Run `ollm daemon run` to see the error." in done.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_on_a_full_disk_the_reason_is_said_at_once(inside: Inside) -> None:
    logs = inside.home / "logs"
    logs.mkdir(parents=True)
    (logs / "daemon.out").symlink_to("/dev/full")
    done = inside.run("daemon", "start")

    assert done.code == 1
    assert "The daemon did not start" in done.err
    assert "No space left on device" in done.err


def arguments(**more: Any) -> ChatArguments:
    return ChatArguments(workspace=Path("/w"), daemon=True, **more)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"flags": {"provider": {"model": "m"}}}, "--provider, --base-url and --model"),
        ({"grants": ("shell",)}, "--allow"),
        ({"yes": True}, "--yes"),
        ({"grants": ("shell",), "yes": True}, "--allow, --yes"),
    ],
)
def test_what_belongs_to_one_run_is_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as found:
        refuse_local_flags(arguments(**given))

    assert found.value.message == f"{named} cannot be combined with --daemon, which uses your settings."
    assert found.value.action == "Use `ollm config set`, or /model and /approval in the chat."


def line(name: str, status: str) -> SessionLine:
    return SessionLine(session_id=name, title="", model="", status=status, updated_at=0)


KNOWN = InitReply(
    workspace_path="/w", trusted=False, sessions=[line("a", "archived"), line("b", "closed"), line("c", "active")]
)


def test_to_continue_is_the_newest_that_is_not_archived() -> None:
    assert find_session_id(KNOWN, arguments(newest=True)) == "b"
    assert find_session_id(KNOWN, arguments()) is None
    none = InitReply(workspace_path="/w", trusted=False, sessions=[line("a", "archived")])
    assert find_session_id(none, arguments(newest=True)) is None


def test_a_session_is_found_by_the_beginning_of_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLM_HOME", str(tmp_path))
    session_id = Home(tmp_path).recorded("hi")

    assert find_session_id(KNOWN, arguments(session=session_id[:6])) == session_id
    with pytest.raises(OllmError):
        find_session_id(KNOWN, arguments(session="zzzzzz"))


def run(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(home), "OLLM_HOME": str(home / ".ollm"), **more}
    return subprocess.run([SCRIPT, *words], env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_it_starts_the_daemon_and_prints_a_link_or_opens_a_browser(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    try:
        printed = run(tmp_path, "web", "--print")
        assert printed.returncode == 0, printed.stderr
        link = printed.stdout.strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#ticket=[\w-]{43,}", link)
        with urlopen(link) as reply:
            assert b"<ollm-app>" in reply.read()

        opened = run(tmp_path, "web", BROWSER=f"{browser} %s")
        assert opened.returncode == 0
        assert (tmp_path / "opened").read_text().startswith(link.partition("#")[0])
        assert opened.stdout == ""

        none = run(tmp_path, "web", BROWSER="", PATH="/nowhere", DISPLAY="")
        assert "Open this link within a minute" in none.stderr
        assert none.stdout.startswith("http://127.0.0.1:")
    finally:
        run(tmp_path, "daemon", "stop")


def test_an_output_that_cannot_be_written_is_a_quiet_end(tmp_path: Path) -> None:
    (tmp_path / "in").write_text('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n' * 3)
    with (tmp_path / "in").open() as source, Path("/dev/full").open("w") as target:
        ended = subprocess.run(
            [sys.executable, "-m", "ollm", "acp"],
            env={**os.environ, "OLLM_HOME": str(tmp_path)},
            stdin=source,
            stdout=target,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=180,
        )

    assert "Traceback" not in ended.stderr
    assert "internal error" not in ended.stderr


@pytest.mark.parametrize("given", ["", "\n", " \n\n"])
def test_an_empty_input_is_a_quiet_end(tmp_path: Path, given: str) -> None:
    ended = ollm("acp", home=tmp_path, stdin=given)

    assert (ended.returncode, ended.stdout) == (0, "")


@pytest.mark.parametrize("given", ["junk\n", "junk", "\n[]\n{}\n"])
def test_an_input_without_a_message_is_answered_and_ends(tmp_path: Path, given: str) -> None:
    ended = ollm("acp", home=tmp_path, stdin=given)

    assert ended.returncode == 0
    assert all("error" in json.loads(line) for line in ended.stdout.splitlines())
    assert len(ended.stdout.splitlines()) == len(given.split())


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")
def test_a_unit_starts_the_daemon_at_each_login(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = inside.home / "a 100% $HOME"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("OLLM_HOME", str(folder / "ollm"))
    said = inside.read("daemon", "install")

    unit = folder / "systemd" / "user" / "ollm-daemon.service"
    assert said.startswith(f"Wrote {unit}. ")
    assert "systemctl --user enable --now ollm-daemon" in said
    text = unit.read_text()
    assert '/a 100%% $HOME/ollm"' in text
    assert f'ExecStart="{sys.executable}" -m ollm daemon run\n' in text
    if checker := shutil.which("systemd-analyze"):
        checked = subprocess.run([checker, "verify", "--user", unit], capture_output=True, text=True, check=False)
        assert "ollm-daemon.service:" not in checked.stderr, checked.stderr
