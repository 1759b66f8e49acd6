"""Workspaces with a fault, or of an odd kind: each gets a clear answer, and nobody else waits for it."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.cli.forked import finish, run_aside
from tests.covers import covers
from tests.daemon.running import Daemon, daemon, listing, texts


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
            began = time.monotonic()
            assert (await found.ask("GET", "/health")).status == 200
            assert time.monotonic() - began < 3
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
