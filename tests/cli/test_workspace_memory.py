"""What a workspace keeps beside its sessions: damaged or newer it stops nothing, and a plan belongs to its session."""

import json
import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import Runner, running
from tests.covers import covers
from tests.servers.answers import Answer
from tests.sizes import SOAK


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5000])


def overwrite(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\x5a" * (len(data) - 4096))


def no_database(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 100)


def lose_tables(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE episodes")
    connection.commit()
    connection.close()


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def garbage_rows(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE chat_sessions SET recent_messages = '{', plan_steps = 'x'")
    connection.execute("UPDATE episodes SET body = 'x'")
    connection.execute("UPDATE active_contexts SET body = '[]'")
    connection.commit()
    connection.close()


DAMAGES = [cut, no_database, pipe, *([overwrite, lose_tables, directory, garbage_rows] if SOAK else [garbage_rows])]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
async def test_a_damaged_memory_is_put_aside_and_stops_nothing(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        await runner.run("-p", "first")
        (session,) = runner.sessions()
        memory = runner.workspace / ".ollm" / "memory.db"
        damage(memory)
        before = memory.read_bytes() if memory.is_file() else b""
        done = await runner.run("-p", "second", "--session", session["sessionId"])
        again = await runner.run("-p", "third", "--continue")
    assert (done.code, again.code) == (0, 0), done.err + again.err
    kept = list(memory.parent.glob("memory.db.damaged-*"))
    if damage is not garbage_rows:
        assert done.err.count("is damaged: it was kept as") == 1
        assert [path.read_bytes() for path in kept if path.is_file()] == ([before] if before else [])
    assert "is damaged" not in again.err
    assert len(runner.sessions()[0]["messages"]) == 6


async def test_a_newer_memory_is_left_alone_and_said_once(tmp_path: Path) -> None:
    async with running(tmp_path, ["One.", "Two."]) as runner:
        await runner.run("-p", "first")
        memory = runner.workspace / ".ollm" / "memory.db"
        connection = sqlite3.connect(memory)
        connection.execute("PRAGMA user_version = 99")
        connection.commit()
        connection.close()
        before = memory.read_bytes()
        done = await runner.run("-p", "second", "--session", runner.sessions()[0]["sessionId"])
    assert done.code == 0, done.err
    assert done.err.count("newer ollm") == 1
    assert memory.read_bytes() == before
    assert list((runner.home / "workspaces").glob("*/memory.db"))


@pytest.mark.parametrize("kind", ["EXCLUSIVE", "IMMEDIATE"])
async def test_a_memory_that_another_program_keeps_locked_stops_nothing_and_is_said_once(
    tmp_path: Path, kind: str
) -> None:
    async with running(tmp_path, ["One.", "Two.", "Three."]) as runner:
        await runner.run("-p", "first")
        held: list[sqlite3.Connection] = []
        before: dict[Path, bytes] = {}
        for place, pattern in ((runner.workspace, ".ollm/memory.db"), (runner.home, "workspaces/*/memory.db")):
            path = next(place.glob(pattern))
            before[path] = path.read_bytes()  # not later: to close a file lets go of this process's locks on it
            connection = sqlite3.connect(path, isolation_level=None)
            connection.execute(f"BEGIN {kind}")
            held.append(connection)
            done = await runner.run("-p", "more", "--continue")
            assert done.code == 0, done.err
            assert done.err.count("locked") == 1, done.err
        for connection in held:
            connection.close()
        assert {path: path.read_bytes() for path in before} == before
    assert len(runner.sessions()[0]["messages"]) == 6


async def test_what_is_learnt_of_a_model_cannot_be_kept_and_the_turn_ends_well(tmp_path: Path) -> None:
    async with running(tmp_path, [Answer(calls=[("ls", {"path": "."})]), "Two."]) as runner:
        (runner.home / "model-facts.json" / "in the way").mkdir(parents=True)
        done = await runner.run("-p", "look", "--yes")
    assert done.code == 0, done.err
    assert "could not be written" in done.err
    assert "nternal error" not in done.err
    assert len(runner.sessions()[0]["messages"]) == 4


def todo(text: str) -> Answer:
    return Answer(calls=[("write_todos", {"action": "add", "text": text})])


async def command(runner: Runner, text: str, *arguments: str) -> str:
    done = await runner.run("-p", text, *arguments)
    assert done.code == 0, done.err
    return done.out


@covers("W55", "W115", "W116")
async def test_a_plan_belongs_to_its_session_and_is_restored_with_it(tmp_path: Path) -> None:
    oiled = Answer(calls=[("write_todos", {"action": "complete", "id": 1})])
    planned = [todo("oil the hinge"), oiled, todo("paint the door"), "Noted."]
    async with running(tmp_path, [*planned, todo("mend the roof"), "Noted.", "Going on."]) as runner:
        await command(runner, "plan the first", "--yes")
        first = runner.sessions()[0]["sessionId"]
        assert "paused" in await command(runner, "/plan pause", "--session", first)
        await command(runner, "plan the second", "--yes")
        second = next(found["sessionId"] for found in runner.sessions() if found["sessionId"] != first)
        assert "paint" not in await command(runner, "/todos", "--session", second), "todos stay with their session"
        assert "paint" not in await command(runner, "/todos")
        resumed = await command(runner, "/plan", "--session", first)
        assert "paint the door" in resumed
        assert "mend the roof" not in resumed
        assert "paused" in resumed
        await command(runner, "go on", "--session", first)
        assert "paused" in await command(runner, "/plan", "--session", first), "a turn does not end the pause"
        connection = sqlite3.connect(runner.workspace / ".ollm" / "memory.db")
        rows = dict(connection.execute("SELECT session_id, plan_steps FROM chat_sessions"))
        connection.execute("DELETE FROM todos")
        connection.commit()
        connection.close()
        restored = await command(runner, "/todos", "--session", first)
    assert re.findall(r"^\| \d+ \| (✔?) ?\| (.*) \|$", restored, re.MULTILINE) == [
        ("✔", "oil the hinge"),
        ("", "paint the door"),
    ]
    steps = [(step["text"], step["done"]) for step in json.loads(rows[first])]
    assert steps == [("oil the hinge", True), ("paint the door", False)], "what was done stays done"
    assert "mend the roof" in rows[second]
