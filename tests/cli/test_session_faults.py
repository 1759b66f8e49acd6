"""Sessions that are damaged, may not be written or read, or were deleted."""

import asyncio
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import SCRIPT, ollm
from tests.cli.running import Ended, Runner, running, texts
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.covers import covers
from tests.ordinary_user import bound_by_permissions
from tests.servers.answers import Answer
from tests.store.sessions.support import Home

UNLIMITED = resource.RLIM_INFINITY


def cut(data: bytes) -> bytes:
    return data[: data.index(b"The second answer") + 5]


def nuls(data: bytes) -> bytes:
    return data[: data.index(b"second question")] + b"\0" * 400


def hole(data: bytes) -> bytes:
    return data.replace(b'"text":"The first answer"', b'"text":"The \x01\x02"}}')


@covers("S10.2", "D606", "H602")
@pytest.mark.parametrize("damage", [cut, nuls, hole], ids=lambda damage: damage.__name__)
async def test_a_damaged_session_goes_on_from_what_can_be_read_says_so_and_keeps_the_file(
    tmp_path: Path, damage: Callable[[bytes], bytes]
):
    async with running(tmp_path, ["The first answer", "The second answer", "The third answer"]) as runner:
        await runner.run("-p", "first question")
        (session,) = runner.sessions()
        await runner.run("-p", "second question", "--session", session["sessionId"])
        path = runner.home / "sessions" / f"{session['sessionId']}.json"
        damaged = damage(path.read_bytes())
        path.write_bytes(damaged)
        done = await runner.run("-p", "third question", "--session", session["sessionId"][:8])

    assert done.code == 0
    assert "third answer" in done.out
    assert "not everything could be read" in done.err or "could not be read" in done.err
    (kept,) = path.parent.glob(f"{path.name}.damaged-*")
    assert kept.read_bytes() == damaged
    said = [text for _, text in texts(json.loads(path.read_bytes()))]
    assert said[0] == "first question"
    assert said[-2:] == ["third question", "The third answer"]


async def limited(runner: Runner, *arguments: str, size: int, stdin: str) -> Ended:
    """The command with files that may not grow over `size`: what a full disk looks like to it."""
    process = await runner.start(*arguments, writes=True)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, UNLIMITED))
    out, err = await process.communicate(stdin.encode())
    return Ended(process.returncode or 0, out, err)


@covers("S10.1", "D605")
async def test_a_full_disk_is_said_once_and_the_answer_comes_all_the_same(tmp_path: Path):
    async with running(tmp_path, ["one", "two", "three"]) as runner:
        await runner.run("-p", "before")
        (session,) = runner.sessions()
        arguments = ("-p", "-", "--session", session["sessionId"])
        done = await limited(runner, *arguments, size=200_000, stdin="long " * 60_000)
        assert done.code == 1
        assert "two" in done.out
        assert done.err.count("cannot be written to") == 1
        assert "Not saved: 2 messages" in done.err.splitlines()[-2], "what is lost is said last"
        assert "File too large" in done.err
        assert "Traceback" not in done.err
        assert [text for _, text in texts(runner.sessions()[0])] == ["before", "one"], "what was there is whole"
        after = await runner.run("-p", "after", "--session", session["sessionId"])
    assert after.code == 0
    assert [text for _, text in texts(runner.sessions()[0])][-2:] == ["after", "three"]


@covers("S10.1", "D605")
async def test_what_a_full_disk_refused_is_written_with_the_next_turn(tmp_path: Path):
    async with running(tmp_path, ["Answer one.", "Answer two.", "Answer three."]) as runner:
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("scripted @")
            terminal.type("first" + ENTER)
            await terminal.wait_for("Answer one.")
            resource.prlimit(terminal.child.pid, resource.RLIMIT_FSIZE, (1, UNLIMITED))
            terminal.type("second" + ENTER)
            await terminal.wait_for("Answer two.", "cannot be written to")
            resource.prlimit(terminal.child.pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
            terminal.type("third" + ENTER)
            await terminal.wait_for("Answer three.", "Saving works again")
            assert terminal.text().count("cannot be written to") == 1
            terminal.type(CTRL_D)
            await terminal.ended()
    (session,) = runner.sessions()
    assert [text for _, text in texts(session)] == [
        "first", "Answer one.", "second", "Answer two.", "third", "Answer three.",
    ]  # fmt: skip


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


MARKER = b"MARKERZQ77"

OLD = "22222222-2222-3333-4444-555555555555"

EARLIER = """{"sessionId": "%s", "startTime": "2026-01-27T10:00:00Z", "lastActivity": "2026-01-27T10:30:00Z",
"model": "m", "provider": "ollama", "messages": [{"role": "user", "timestamp": "2026-01-27T10:00:00Z",
"parts": [{"type": "text", "text": "old MARKERZQ77"}]}], "toolCalls": [], "metadata": {"tokenCount": 1}}"""


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
@pytest.mark.parametrize("command", [("list", "--json"), ("view",), ("export", "-o", "-")])
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


@covers("P7", "S9.3")
async def test_every_word_that_was_shown_for_a_second_outlives_a_kill(tmp_path: Path) -> None:
    script = [Answer(text="One two three four and never more", stall_after=4), "Going on."]
    async with running(tmp_path, script) as runner:
        process = await runner.start("-p", "count")
        shown = b""
        while b"four" not in shown:
            shown += await process.stdout.read(100)
        async with asyncio.timeout(30):
            while not any(b"four" in file.read_bytes() for file in (runner.home / "sessions").glob("*.journal")):
                await asyncio.sleep(0.05)
        process.kill()
        await process.wait()
        viewed = await runner.run("sessions", "view")
        resumed = await runner.run("-p", "go on", "-c")
    assert shown.decode().strip() in viewed.out
    assert resumed.code == 0
    assert [text for _, text in texts(runner.sessions()[0])] == ["count", shown.decode(), "go on", "Going on."]
    assert not list((runner.home / "sessions").glob("*damaged*"))


async def test_a_session_in_use_is_not_taken_for_none(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(text="One two", stall_after=2), "Two."]) as runner:
        process = await runner.start("-p", "count")
        await process.stdout.read(3)
        done = await runner.run("-p", "else", "-c", "--beside")
        process.kill()
        await process.wait()
    assert "All sessions of this workspace are in use; starting a new one." in done.err
    assert done.out == "Two.\n"


@pytest.mark.parametrize("kind", ["link", "pipe"])
async def test_a_document_that_is_no_file_is_named_and_nothing_waits_for_it(tmp_path: Path, kind: str) -> None:
    async with running(tmp_path, ["One."]) as runner:
        await runner.run("-p", "first")
        (session,) = runner.sessions()
        path = runner.home / "sessions" / f"{session['sessionId']}.json"
        path.rename(tmp_path / "elsewhere.json")
        path.symlink_to(tmp_path / "elsewhere.json") if kind == "link" else os.mkfifo(path)
        resumed = await runner.run("-p", "second", "--session", session["sessionId"])
        checked = await runner.run("sessions", "check")
    why = "is a symbolic link and is not followed" if kind == "link" else "is not a regular file"
    assert f"{path} cannot be opened: {path.name} {why}. The file was left as it is." in resumed.err
    assert (resumed.code, checked.code, why in checked.out) == (1, 1, True)


async def test_search_and_recall_match_words_by_one_rule_and_find_no_search_results(tmp_path: Path) -> None:
    words = {
        "E4041": False,
        "E404": True,
        "E40": True,
        "ABC-12345": False,
        "abc-12": True,
        "пойдёт": True,
        "submarine": False,
    }
    calls = [("recall", {"queries": [word]}) for word in words]
    async with running(tmp_path, ["One.", Answer(calls=calls), "Two."]) as runner:
        await runner.run("-p", "the server says E404 in ABC-1234, пойдет")
        await runner.run("-p", "Well?", "--continue", "--yes")
        found = [await runner.run("sessions", "search", word) for word in words]
        (session,) = runner.sessions()
    recalled = [call["result"]["llmContent"] for call in session["toolCalls"]]
    assert ["message 1 (" in text for text in recalled] == list(words.values())
    assert ["пойдет" in done.out.replace("«", "").replace("»", "") for done in found] == list(words.values())
    assert all(done.out.count("user") == 1 for done, hit in zip(found, words.values(), strict=True) if hit)
