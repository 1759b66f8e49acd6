"""Sessions in a place that may not be written or read: never a failure of all for the sake of one, always a sentence."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import SCRIPT
from tests.cli.running import running
from tests.covers import covers
from tests.ordinary_user import bound_by_permissions
from tests.store.sessions.support import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def bound(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command, held to the permissions of files whoever runs it."""
    done = subprocess.run(
        [SCRIPT, *arguments],
        env={**os.environ, **variables, "OLLM_HOME": str(home)},
        cwd=home.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=bound_by_permissions,
    )
    assert "internal error" not in done.stderr
    assert "Traceback" not in done.stderr
    return done


@covers("S10.2", "S10.6", "D606")
def test_one_file_that_may_not_be_read_hides_no_other_and_is_read_as_soon_as_it_may(home: Home):
    hidden, shown = home.recorded("hidden words"), home.recorded("shown words")
    home.document(hidden).chmod(0)
    listed = bound(home.root, "sessions", "list")
    assert listed.returncode == 0
    assert (shown[:8] in listed.stdout, hidden[:8] in listed.stdout, "Cannot read" in listed.stderr) == (True,) * 3
    found = bound(home.root, "sessions", "search", "words")
    assert (found.returncode, shown[:8] in found.stdout, hidden[:8] in found.stdout) == (0, True, False)
    assert bound(home.root, "sessions", "view", hidden).returncode == 1
    checked = bound(home.root, "sessions", "check", "--repair")
    assert (checked.returncode, "Cannot read" in checked.stdout) == (1, True)
    home.document(hidden).chmod(0o600)
    assert "Cannot read" not in bound(home.root, "sessions", "list").stderr
    assert hidden[:8] in bound(home.root, "sessions", "search", "words").stdout


@covers("S10.6")
@pytest.mark.parametrize("command", [("rename", "ID", "x"), ("delete", "ID", "--yes"), ("archive", "ID")])
def test_what_may_not_be_changed_is_said_with_the_place(home: Home, command: tuple[str, ...]):
    session_id = home.recorded("x")
    home.sessions.chmod(0o500)
    done = bound(home.root, "sessions", *(session_id if word == "ID" else word for word in command))
    home.sessions.chmod(0o700)
    assert done.returncode == 1
    assert f"{home.sessions} cannot be changed: Permission denied." in done.stderr
    assert home.texts(session_id) == ["x"]


@covers("S10.6")
@pytest.mark.parametrize(
    "command", [("list",), ("search", "x"), ("view", "abcd"), ("check",), ("cleanup", "--keep", "1")]
)
def test_a_directory_that_may_not_be_read_is_said(home: Home, command: tuple[str, ...]):
    home.recorded("x")
    home.sessions.chmod(0)
    done = bound(home.root, "sessions", *command)
    home.sessions.chmod(0o700)
    assert done.returncode == 1
    assert f"Cannot read {home.sessions}: Permission denied." in done.stderr


@covers("S10.1")
async def test_a_directory_that_may_not_be_read_stops_no_conversation(tmp_path: Path):
    async with running(tmp_path, ["The answer."]) as runner:
        sessions = runner.home / "sessions"
        sessions.mkdir(parents=True)
        sessions.chmod(0)
        done = await asyncio.to_thread(bound, runner.home, "-p", "hello", **runner.environment())
        sessions.chmod(0o700)
    assert (done.returncode, done.stdout) == (1, "The answer.\n")
    assert "cannot be written" in done.stderr
    assert "Not saved: 2 messages" in done.stderr
