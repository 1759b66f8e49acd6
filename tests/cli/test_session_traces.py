"""What is deleted is gone from every place, and output that nobody can take ends in a sentence."""

import os
import shutil
import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest

from tests.cli.command import SCRIPT, ollm
from tests.cli.running import Runner, running
from tests.covers import covers
from tests.store.sessions.support import Home

MARKER = b"MARKERZQ77"
OLD = "22222222-2222-3333-4444-555555555555"
EARLIER = """{"sessionId": "%s", "startTime": "2026-01-27T10:00:00Z", "lastActivity": "2026-01-27T10:30:00Z",
"model": "m", "provider": "ollama", "messages": [{"role": "user", "timestamp": "2026-01-27T10:00:00Z",
"parts": [{"type": "text", "text": "old MARKERZQ77"}]}], "toolCalls": [], "metadata": {"tokenCount": 1}}"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def left(*places: Path) -> list[Path]:
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    return [path for path in files if MARKER in path.read_bytes()]


def session_of(runner: Runner) -> str:
    return str(runner.sessions()[-1]["sessionId"])


@covers("H113")
async def test_a_question_that_could_not_be_asked_leaves_no_title_in_the_log(tmp_path: Path):
    async with running(tmp_path, ["MARKERZQ77 it is"]) as runner:
        await runner.run("-p", "say MARKERZQ77")
        session_id = session_of(runner)
        refused = await runner.run("sessions", "delete", session_id)
        assert (refused.code, "MARKERZQ77" in refused.err) == (2, True)
        assert (await runner.run("sessions", "search", "MARKERZQ77")).out
        assert (await runner.run("sessions", "delete", session_id, "--yes")).code == 0
    assert left(runner.home, runner.workspace) == []


@covers("H113")
@pytest.mark.parametrize("elsewhere", [True, False])
async def test_an_earlier_versions_session_is_of_the_workspace_it_is_taken_up_in_and_deleted_there_too(
    tmp_path: Path, elsewhere: bool
):
    async with running(tmp_path, ["going on"] * 3) as runner:
        earlier = runner.home / "session-data" / f"{OLD}.json"
        earlier.parent.mkdir(parents=True)
        earlier.write_text(EARLIER % OLD)
        assert (await runner.run("-p", "go on", "--session", OLD[:8])).code == 0
        assert session_of(runner) == OLD
        assert runner.sessions()[-1]["metadata"]["workspace"] == str(runner.workspace)
        assert left(runner.workspace), "the workspace remembers it"
        if elsewhere:
            runner.workspace = tmp_path
        assert (await runner.run("sessions", "delete", OLD[:8], "--yes")).code == 0
    assert left(runner.home, tmp_path / "project") == []


@covers("H113", "S10.2")
@pytest.mark.parametrize("hurt", ["head", "moved"])
async def test_a_session_that_does_not_say_where_it_was_held_is_deleted_in_the_workspace_at_hand(
    tmp_path: Path, hurt: str
):
    async with running(tmp_path, ["the answer"]) as runner:
        await runner.run("-p", "say MARKERZQ77")
        session_id = session_of(runner)
        path = runner.home / "sessions" / f"{session_id}.json"
        if hurt == "head":
            path.write_bytes(b"\0" * 300 + path.read_bytes()[300:])
        else:
            runner.workspace = runner.workspace.rename(tmp_path / "moved")
        assert (await runner.run("sessions", "delete", session_id, "--yes")).code == 0
    assert left(runner.home, runner.workspace) == []


@covers("H113")
@pytest.mark.parametrize("trouble", ["newer", "locked"])
def test_an_index_that_cannot_be_changed_is_taken_away_with_the_deleted_words(home: Home, trouble: str):
    session_id, other = home.recorded("say MARKERZQ77"), home.recorded("something else")
    assert ollm("sessions", "search", "MARKERZQ77", home=home.root).stdout
    with sqlite3.connect(home.root / "index.db", isolation_level=None) as connection:
        connection.execute("PRAGMA user_version = 999" if trouble == "newer" else "BEGIN EXCLUSIVE")
        done = ollm("sessions", "delete", session_id, "--yes", home=home.root)
    connection.close()
    assert done.returncode == 0, done.stderr
    assert left(home.root) == []
    assert other[:8] in ollm("sessions", "search", "something", home=home.root).stdout


@covers("H508", "H533")
def test_cleanup_takes_what_is_in_the_trash_and_says_so(home: Home):
    trashed, old, new = (home.recorded(text) for text in ("MARKERZQ77", "old", "new"))
    home.library().move_to_trash(trashed)
    asked = ollm("sessions", "cleanup", "--keep", "1", home=home.root)
    assert (asked.returncode, "(2, 1 of them in the trash)" in asked.stderr) == (2, True)
    assert ollm("sessions", "cleanup", "--keep", "1", "--yes", home=home.root).returncode == 0
    assert left(home.root) == []
    assert not home.document(old).exists()
    assert home.document(new).exists()


def test_a_session_that_is_in_the_trash_too_is_one_session(home: Home):
    session_id = home.recorded("x")
    (home.root / "trash").mkdir()
    shutil.copy(home.document(session_id), home.root / "trash")
    assert ollm("sessions", "delete", session_id[:8], "--yes", home=home.root).returncode == 0
    assert not list((home.root / "trash").iterdir())


def test_who_asks_for_a_session_in_the_trash_is_told_where_it_is(home: Home):
    session_id = home.recorded("x")
    home.library().move_to_trash(session_id)
    done = ollm("sessions", "view", session_id[:8], home=home.root)
    assert (done.returncode, f"ollm sessions restore {session_id[:8]}" in done.stderr) == (1, True)


@pytest.mark.parametrize("more", [(), ("--force",)])
def test_an_export_is_written_into_a_pipe_and_never_in_its_place(home: Home, tmp_path: Path, more: tuple[str, ...]):
    session_id, pipe, read = home.recorded("x"), tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    done = ollm("sessions", "export", session_id, "--output", str(pipe), *more, home=home.root)
    reader.join(20)
    assert done.returncode == 0, done.stderr
    assert pipe.is_fifo()
    assert read == [home.document(session_id).read_bytes()]


@covers("S10.6")
@pytest.mark.parametrize(
    "command", [("list",), ("list", "--json"), ("view",), ("search", "word"), ("export", "-o", "-")]
)
@pytest.mark.parametrize("output", ["full", "closed"])
def test_output_that_cannot_be_taken_ends_in_a_sentence_or_quietly(home: Home, command: tuple[str, ...], output: str):
    session_id = home.recorded("a word")
    named = (session_id,) if command[0] in ("view", "export") else ()
    line = [SCRIPT, "sessions", command[0], *named, *command[1:]]
    shell = '"$@" > /dev/full' if output == "full" else '"$@" >&-'
    done = subprocess.run(
        ["sh", "-c", shell, "sh", *line],
        env={**os.environ, "OLLM_HOME": str(home.root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "internal error" not in done.stderr
    assert done.returncode == 1
    assert "Cannot write the output" in done.stderr
