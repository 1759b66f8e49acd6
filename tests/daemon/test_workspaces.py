"""Workspaces, sessions and files of a running daemon."""

import asyncio
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from ollm.config.environment import Home
from ollm.daemon.places import DaemonProcess, RunFiles
from ollm.daemon.server import watch_archive
from ollm.domain.errors import StorageError
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.store import SessionFiles
from ollm.system.locks import get_process_start, read_owner
from tests.cli.command import ollm
from tests.cli.forked import finish, run_aside
from tests.covers import covers
from tests.daemon.running import WRITE, Daemon, daemon, listing, texts
from tests.servers.archive_machine import ArchiveMachine, MakeMachine


def truncated(database: Path) -> None:
    database.write_bytes(database.read_bytes()[:3000])


def newer(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version = 999")


def no_database(database: Path) -> None:
    database.write_bytes(b"certainly not a database, but long enough to be looked at" * 20)


async def command(found: Daemon, *arguments: str) -> tuple[int, str, str]:
    """`ollm …` in the daemon's home, bound by permissions too."""
    line = partial(finish, arguments, found.workspace, found.environment, None, bounded=True)
    code, out, err = await run_aside(line)
    return code, out.decode(), err.decode()


@covers("W170")
@pytest.mark.parametrize("harm", [truncated, no_database], ids=["truncated", "no database"])
async def test_a_damaged_database_is_put_aside_and_built_anew(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    async with daemon(tmp_path, ["one", "two", "three"]) as found:
        session, database, harmed = await harm_database(found, harm)

        assert [line["sessionId"] for line in (await found.ask("GET", listing(found.workspace))).json] == [session]
        await found.open(sessionId=session)
        (told,) = [
            text
            for text in (await found.ask("GET", f"/sessions/{session}/status")).json["notices"]
            if "aside" in text or "damaged" in text
        ]
        assert str(database) in told, "whoever opens a session next is told"
        await go_on_as_if_nothing_had_happened(found, session)

        (aside,) = database.parent.glob("memory.db.damaged-*")
        assert aside.read_bytes() == harmed
        with closing(sqlite3.connect(database)) as connection:
            assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)


@covers("W170")
async def test_a_newer_database_is_left_alone_and_one_in_the_home_used(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", "two", "three"]) as found:
        session, database, harmed = await harm_database(found, newer)

        said = await go_on_as_if_nothing_had_happened(found, session)

        assert f"{database} was written by a newer ollm and is left alone" in said
        assert database.read_bytes() == harmed
        assert not list(database.parent.glob("*.damaged-*"))
        assert len(list(found.home.glob("workspaces/*/memory.db"))) == 1


async def harm_database(found: Daemon, harm: Callable[[Path], None]) -> tuple[str, Path, bytes]:
    """A session that was held and closed, the database it is in, and what stands there once it is harmed."""
    session = await found.open()
    await found.say(session, "hi")
    await found.ask("DELETE", f"/sessions/{session}")
    database = found.workspace / ".ollm" / "memory.db"
    harm(database)
    return session, database, database.read_bytes()


async def go_on_as_if_nothing_had_happened(found: Daemon, session: str) -> str:
    """The session is listed and resumed, by the daemon and by a command, whose standard error is returned."""
    body = {"workspacePath": str(found.workspace)}
    assert [line["sessionId"] for line in (await found.ask("GET", listing(found.workspace))).json] == [session]
    assert [line["sessionId"] for line in (await found.ask("POST", "/init", body)).json["sessions"]] == [session]
    assert await found.open(sessionId=session) == session
    assert texts(await found.say(session, "again")) == "two"
    await found.ask("DELETE", f"/sessions/{session}")
    code, out, said = await command(found, "-p", "hi", "--continue")
    assert (code, out) == (0, "three\n")
    assert "Traceback" not in said
    return said


async def test_a_locked_database_is_told_and_left_alone_and_stops_nobody(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", "two", "three"]) as found:
        session, database, before = await harm_database(found, lambda _: None)
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            waiting = asyncio.create_task(found.ask("GET", listing(found.workspace)))
            await asyncio.sleep(0.1)
            assert (await found.ask("GET", "/health")).status == 200
            assert not waiting.done(), "the locked database holds up nobody else"
            assert [line["sessionId"] for line in (await waiting).json] == [session]
            assert await found.open(sessionId=session) == session
            notices = (await found.ask("GET", f"/sessions/{session}/status")).json["notices"]
            assert texts(await found.say(session, "again")) == "two"
            await found.ask("DELETE", f"/sessions/{session}")

        (apart,) = found.home.glob("workspaces/*/memory.db")
        (told,) = [text for text in notices if "locked" in text]
        assert str(database) in told
        assert str(apart.parent) in told
        assert database.read_bytes() == before
        assert [line["sessionId"] for line in (await found.ask("GET", listing(found.workspace))).json] == [session]
        assert await found.open(sessionId=session) == session, "the next time it is in its own place again"
        assert "locked" not in str((await found.ask("GET", f"/sessions/{session}/status")).json["notices"])
        assert texts(await found.say(session, "once more")) == "three"
        await found.ask("DELETE", f"/sessions/{session}")
        with closing(sqlite3.connect(database)) as own:
            ((recent,),) = own.execute("SELECT recent_messages FROM chat_sessions")
        assert [word in recent for word in ("again", "two", "once more", "three")] == [True] * 4


@covers("W6", "W33")
async def test_the_home_directory_is_a_workspace_like_any_other(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", "two", "three"]) as found:
        session = await found.open(workspacePath=str(tmp_path))
        assert texts(await found.say(session, "hi")) == "one"
        await found.ask("DELETE", f"/sessions/{session}")
        found.workspace = tmp_path
        assert await found.open(sessionId=session) == session
        await found.ask("DELETE", f"/sessions/{session}")
        code, out, _ = await command(found, "-p", "and now?", "--continue")

        assert (code, out.strip()) == (0, "two")
        assert [line["sessionId"] for line in (await found.ask("GET", listing(tmp_path))).json] == [session]
    assert not (found.home / "memory.db").exists()
    assert list((found.home / "workspaces").glob("*/memory.db"))


async def test_a_workspace_that_cannot_be_written_keeps_its_record_in_the_home(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", "two", "three"]) as found:
        found.workspace.chmod(0o555)
        try:
            session = await found.open()
            assert texts(await found.say(session, "hi")) == "one"
            await found.ask("DELETE", f"/sessions/{session}")
            assert await found.open(sessionId=session) == session
            assert texts(await found.say(session, "more")) == "two"
            await found.ask("DELETE", f"/sessions/{session}")
            code, out, _ = await command(found, "-p", "and now?", "--continue")

            assert (code, out.strip()) == (0, "three")
            assert [line["sessionId"] for line in (await found.ask("GET", listing(found.workspace))).json] == [session]
            assert not list(found.workspace.iterdir())
        finally:
            found.workspace.chmod(0o755)
    assert list((found.home / "workspaces").glob("*/memory.db"))


async def test_its_files_are_for_the_user_alone_and_a_second_daemon_is_refused(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        run = found.home / "run"
        assert stat.S_IMODE(run.stat().st_mode) == 0o700
        assert stat.S_IMODE((run / "daemon.sock").stat().st_mode) == 0o600
        assert not (run / "token").exists()
        other = Daemon(tmp_path, found.server)
        other.socket = tmp_path / "never.sock"
        with pytest.raises(AssertionError, match="ended with 1"):
            await other.start()
        assert (await found.ask("GET", "/health")).status == 200


def test_a_daemon_that_was_killed_and_not_reaped_is_dead(tmp_path: Path) -> None:
    home = tmp_path / "home"
    environment = {**os.environ, "OLLM_HOME": str(home)}
    killed = subprocess.Popen([sys.executable, "-m", "ollm", "daemon", "run"], env=environment, cwd="/")
    try:
        while not (home / "run" / "daemon.pid").exists():
            assert killed.poll() is None
            time.sleep(0.02)
        os.kill(killed.pid, signal.SIGKILL)
        os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)  # dead, and still in the table of processes
        assert json.loads(ollm("daemon", "status", "--json", home=home).stdout)["running"] is False
        started = ollm("daemon", "start", home=home)
        assert started.returncode == 0, started.stderr
    finally:
        killed.wait()
        ollm("daemon", "stop", home=home)


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    return RunFiles(Home(root=tmp_path / "home"))


def test_the_directory_is_made_ours_alone(files: RunFiles) -> None:
    files.prepare()
    assert files.directory.stat().st_mode & 0o777 == 0o700
    files.directory.chmod(0o755)
    files.prepare()
    assert files.directory.stat().st_mode & 0o777 == 0o700


def test_a_link_in_its_place_is_refused(files: RunFiles, tmp_path: Path) -> None:
    files.directory.parent.mkdir()
    files.directory.symlink_to(tmp_path)
    with pytest.raises(StorageError, match="is not a directory of yours") as found:
        files.prepare()

    assert found.value.action == "Remove it, then try again."


def test_a_token_replaces_the_last_and_is_for_this_user_alone(files: RunFiles) -> None:
    files.prepare()
    files.write_token("first")
    files.token_file.chmod(0o644)
    files.write_token("second")

    assert files.token_file.read_text() == "second"
    assert files.token_file.stat().st_mode & 0o777 == 0o600


def test_a_daemon_is_running_while_its_process_lives(files: RunFiles) -> None:
    files.prepare()
    assert files.find_running() is None
    me = DaemonProcess(pid=os.getpid(), started=get_process_start(os.getpid()), port=81)
    files.write_pid_file(me)
    assert files.pid_file.stat().st_mode & 0o777 == 0o600
    assert files.find_running() == me
    files.write_pid_file(DaemonProcess(pid=os.getpid(), started="1"))
    assert files.find_running() is None
    files.pid_file.write_bytes(b"garbage")
    assert files.find_running() is None


NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize("closed", [True, False])
async def test_a_session_of_another_workspace_is_refused_and_nothing_is_closed_for_it(
    tmp_path: Path, closed: bool
) -> None:
    async with daemon(tmp_path, ["one"]) as found:
        session = await found.open()
        await found.say(session, "hi")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        other = await found.open(workspacePath=str(elsewhere))
        if closed:
            await found.ask("DELETE", f"/sessions/{session}")

        reply = await found.ask("POST", "/sessions", {"workspacePath": str(elsewhere), "sessionId": session})
        unknown = await found.ask("POST", "/sessions", {"workspacePath": str(elsewhere), "sessionId": NOBODY})

        assert reply.status == 422
        assert str(found.workspace) in reply.json["detail"]
        assert unknown.status == 404
        assert (await found.ask("GET", f"/sessions/{other}/status")).status == 200


async def test_a_session_that_another_process_has_open_is_not_ours_to_end(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["one", WRITE]) as found:
        session = await found.open()
        await found.say(session, "hi")
        await found.ask("DELETE", f"/sessions/{session}")
        writer, _ = SessionFiles(SessionPlaces(directory=found.home / "sessions")).open(session)
        try:
            for request in (("DELETE", f"/sessions/{session}"), ("DELETE", f"/sessions/{session}?erase=true")):
                reply = await found.ask(*request)
                assert reply.status == 409
                assert "another process" in reply.json["detail"]
            assert [line["status"] for line in (await found.ask("GET", listing(found.workspace))).json] == ["active"]
        finally:
            writer.close()
        assert (await found.ask("DELETE", f"/sessions/{session}?erase=true")).status == 204


@covers("W12", "W13", "W14", "W76", "W77", "W78", "W79", "W24", "W26", "W73", "W84", "W88", "W92", "W97", "W98", "W103", "W104", "W122", "W125", "W68", "W87", "W91", "W96", "W102", "W156", "W157", "W158", "W164")  # fmt: skip
async def test_a_session_survives_a_killed_daemon_and_goes_on_from_where_it_stood(tmp_path: Path) -> None:
    script = ["The door is blue.", "Second.", "Blue, as I said."]
    async with daemon(tmp_path, script) as found:
        init = await found.ask("POST", "/init", {"workspacePath": str(found.workspace)})
        assert init.json == {"workspacePath": str(found.workspace), "trusted": False, "sessions": []}
        first = await found.open()
        events = await found.say(first, "What colour is the door?")
        assert texts(events) == "The door is blue."
        assert events[-1]["type"] == "turn-finished"
        second = await found.open()
        await found.say(second, "Something else")
        closed = await found.ask("DELETE", f"/sessions/{second}")
        assert closed.status == 204
        await found.end(signal.SIGKILL)

        await found.start()
        listed = (await found.ask("GET", listing(found.workspace))).json
        assert [set(line) for line in listed] == [{"sessionId", "title", "model", "status", "updatedAt"}] * 2
        assert {line["sessionId"]: (line["title"], line["model"], line["status"]) for line in listed} == {
            first: ("What colour is the door?", "scripted", "closed"),
            second: ("Something else", "scripted", "closed"),
        }
        again = await found.ask("POST", "/sessions", {"workspacePath": str(found.workspace), "sessionId": first})
        assert again.json == {"sessionId": first, "resumed": True}
        assert texts(await found.say(first, "And now?")) == "Blue, as I said."

    sent = found.server.chats[2]["messages"]
    assert [message["content"] for message in sent[1:3]] == ["What colour is the door?", "The door is blue."]
    assert sent[-1]["content"] == "And now?"
    document = json.loads((found.home / "sessions" / f"{first}.json").read_text())
    assert len(document["messages"]) == 4
    with sqlite3.connect(found.workspace / ".ollm" / "memory.db") as connection:
        states = dict(connection.execute("SELECT session_id, status FROM chat_sessions").fetchall())
    assert states == {first: "closed", second: "closed"}


async def wait_until(found: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not found():
            await asyncio.sleep(0.02)


async def test_a_daemon_that_never_sent_anything_lists_what_others_have(tmp_path: Path, archive_url: str) -> None:
    desktop, laptop = ArchiveMachine(tmp_path / "desktop", archive_url), ArchiveMachine(tmp_path / ".ollm", archive_url)
    theirs = desktop.record("The desktop's question")
    desktop.run("push")

    async with daemon(tmp_path) as found, asyncio.timeout(120):
        while not (rows := (await found.ask("GET", "/sessions")).json):
            await asyncio.sleep(0.05)

    assert [(row["sessionId"], row["archive"]["owner"]) for row in rows] == [(theirs, "postgres")]
    assert laptop.ids() == set()


async def test_what_is_sent_is_said_the_list_is_new_and_a_killed_sender_is_started_again(
    shipping_root: Path, archive_url: str, machine: MakeMachine
) -> None:
    laptop, desktop = ArchiveMachine(shipping_root / "laptop", archive_url, push="live"), machine("desktop")
    laptop.record("The laptop's question")
    lock = laptop.home / "run" / "archive.lock"
    stop = watch_archive({**os.environ, **laptop.environment}, pause=0.2)
    try:
        await wait_until(lambda: read_owner(lock) is not None)
        assert "first push: 1 session " in (laptop.home / "run" / "archive.trouble").read_text()
        first = (read_owner(lock) or {})["pid"]
        os.kill(first, signal.SIGKILL)
        await wait_until(lambda: (read_owner(lock) or {"pid": first})["pid"] != first)
        laptop.configure(url=archive_url, push="off")
        os.kill((read_owner(lock) or {})["pid"], signal.SIGKILL)
        theirs = desktop.record("Said later")
        desktop.run("push")
        await wait_until(lambda: theirs in (laptop.home / "archive.db").read_bytes().decode("latin-1"))
    finally:
        stop()


async def test_a_session_of_a_worktree_is_listed_with_the_main_folder_and_resumed_in_its_own(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["Hello.", "Again."]) as found:
        for words in ("init -q", "-c user.name=a -c user.email=a@b commit -q --allow-empty -m one"):
            subprocess.run(["git", *words.split()], cwd=found.workspace, check=True)
        assert (await command(found, "-p", "hi", "-w", "side"))[0] == 0
        (line,) = (await found.ask("GET", listing(found.workspace))).json
        session = await found.open(sessionId=line["sessionId"])
        events = await found.say(session, "and now?")
        status = (await found.ask("GET", f"/sessions/{session}/status")).json

    assert texts(events) == "Again."
    assert status["workspace"] == str(tmp_path / "project.worktrees" / "side")
