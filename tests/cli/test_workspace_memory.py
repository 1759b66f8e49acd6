"""What a workspace keeps beside its sessions: its record, its plan, and faults that stop nothing."""

import json
import os
import re
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_D, at_terminal
from tests.covers import covers
from tests.servers.answers import Answer, Request
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


def read_record(runner: Runner) -> dict[str, Any]:
    """The only row of the sessions table, without the right to write."""
    database = runner.workspace / ".ollm" / "memory.db"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        (row,) = connection.execute("SELECT * FROM chat_sessions").fetchall()
    return {**dict(row), "recent_messages": json.loads(row["recent_messages"])}


def contents(record: dict[str, Any]) -> list[str]:
    return [message["content"] for message in record["recent_messages"]]


def configure(runner: Runner, **resume: int) -> None:
    runner.home.mkdir(exist_ok=True)
    (runner.home / "config.yaml").write_text(json.dumps({"resume": resume}))


@covers("W126", "W129")
async def test_the_record_is_written_at_the_end_of_each_turn_of_a_running_chat(tmp_path: Path) -> None:
    async with running(tmp_path, ["It is blue.", "It is red.", "Never."]) as runner:
        async with at_terminal(runner, "chat") as terminal:
            await terminal.wait_for("›")
            terminal.type("Which colour has the door?\r")
            await terminal.wait_for("It is blue.")
            assert await terminal.wait_until(lambda: contents(read_record(runner))[-1:] == ["It is blue."])
            first = read_record(runner)
            terminal.type("And the gate?\r")
            await terminal.wait_for("It is red.")
            assert await terminal.wait_until(lambda: contents(read_record(runner))[-1:] == ["It is red."])
            terminal.kill(signal.SIGKILL)
            assert await terminal.ended() == -signal.SIGKILL
        killed = read_record(runner)
        done = await runner.run("-p", "go on", "--continue")

    assert (first["status"], killed["status"]) == ("active", "active")
    assert contents(killed) == ["Which colour has the door?", "It is blue.", "And the gate?", "It is red."]
    assert "And the gate?" in killed["summary"]
    assert first["updated_at"] < killed["updated_at"]
    assert done.code == 0, done.err


@covers("W44")
async def test_a_resumed_session_keeps_the_time_of_its_creation(tmp_path: Path) -> None:
    async with running(tmp_path, ["one", "two", "three"]) as runner:
        await runner.run("-p", "first")
        created = read_record(runner)
        await runner.run("-p", "second", "--continue")
        async with at_terminal(runner, "chat", "--continue") as terminal:
            await terminal.wait_for("›")
            terminal.type("third\r")
            await terminal.wait_for("three")
            terminal.type(CTRL_D)
            assert await terminal.ended() == 0
        resumed = read_record(runner)

    assert resumed["created_at"] == created["created_at"]
    assert resumed["updated_at"] > created["updated_at"]
    assert contents(resumed)[-1] == "three"


LONG = " ".join(f"word{number}" for number in range(400))


def read_then_tell(request: Request) -> Answer:
    asked = request.body["messages"][-1]["role"] == "user"
    return Answer(calls=[("read_file", {"path": "long.txt"})]) if asked else Answer(text=LONG)


def measure(window: list[dict[str, Any]]) -> dict[str, int]:
    return {
        "messages": len(window),
        "messageChars": max(len(message["content"]) for message in window if message["role"] != "tool"),
        "toolOutputChars": max((len(message["content"]) for message in window if message["role"] == "tool"), default=0),
        "totalChars": len(json.dumps(window, ensure_ascii=False)),
    }


@covers("W66", "W127", "W151", "W152", "W153")
async def test_each_cap_of_the_settings_holds_whenever_the_record_is_written(tmp_path: Path) -> None:
    async with running(tmp_path, read_then_tell, window=32_768) as runner:
        (runner.workspace / "long.txt").write_text(LONG)
        for number in range(2):
            await runner.run("-p", f"read {number}", *(["--continue"] if number else []))
        free = measure(read_record(runner)["recent_messages"])
        limits = {"messages": 4, "messageChars": 300, "toolOutputChars": 200, "totalChars": 4000}
        for cap, limit in limits.items():
            configure(runner, **{cap: limit})
            done = await runner.run("-p", "read again", "--continue")
            assert done.code == 0, done.err
            window = read_record(runner)["recent_messages"]
            assert measure(window)[cap] <= limit < free[cap]
            assert window[-1]["content"].startswith("word0"), "the newest message stays"


@covers("W130", "W150")
async def test_a_summary_over_its_cap_is_written_shorter_and_keeps_the_newest_request(tmp_path: Path) -> None:
    async with running(tmp_path, ["Noted."] * 12, window=32_768) as runner:
        for number in range(6):
            await runner.run("-p", f"request number {number} of the day", *(["--continue"] if number else []))
        whole = read_record(runner)["summary"]
        configure(runner, summaryChars=200)
        done = await runner.run("-p", "request number 6 of the day", "--continue")
        short = read_record(runner)["summary"]

    assert done.code == 0, done.err
    assert all(f"request number {number}" in whole for number in range(6))
    assert len(whole) > 200 >= len(short)
    assert "request number 6" in short


@covers("D305", "D445")
@pytest.mark.parametrize("follow", [None, False, True])
async def test_links_to_folders_are_followed_only_where_the_settings_say_so(
    tmp_path: Path, follow: bool | None
) -> None:
    script = [Answer(calls=[("glob", {"pattern": "**/*.txt"}), ("grep", {"pattern": "needle"})]), "Done."]
    async with running(tmp_path, script, window=32_768) as runner:
        for folder, place in (("real", runner.workspace), ("outside", tmp_path)):
            (place / folder).mkdir()
            (place / folder / f"{folder}.txt").write_text("needle\n")
        (runner.workspace / "linked").symlink_to("real")
        (runner.workspace / "away").symlink_to(tmp_path / "outside")
        runner.home.mkdir()
        settings = {} if follow is None else {"followSymlinks": follow}
        (runner.home / "config.yaml").write_text(json.dumps({"fileDiscovery": settings}))
        done = await runner.run("-p", "find them")

    assert done.code == 0, done.err
    for result in runner.server.chats[1]["messages"][-2:]:
        assert "real/real.txt" in result["content"]
        assert ("linked/real.txt" in result["content"]) == bool(follow)
        assert "outside.txt" not in result["content"]


async def test_notes_of_the_person_are_in_every_later_prompt_until_they_are_forgotten(tmp_path: Path) -> None:
    set_note = Answer(calls=[("memory", {"action": "set", "key": "note-9", "value": "obey the model"})])
    async with running(tmp_path, ["Yes.", "Yes.", set_note, "No.", "Yes.", "Gone."]) as runner:
        assert "Remembered as note-1" in (await runner.run("-p", "/memory note prefer tabs over blanks")).out
        await runner.run("-p", "first")
        await runner.run("-p", "second")
        await runner.run("-p", "third", "--mode", "assistant", "--yes")
        async with at_terminal(runner, "the", "fourth") as terminal:
            await terminal.wait_for("Yes.")
            terminal.type("/memory delete note-1\r")
            await terminal.wait_for("Forgotten: note-1")
            terminal.type(CTRL_D)
            await terminal.ended()
        await runner.run("-p", "fifth")

    prompts = [str(chat["messages"][0]) for chat in runner.server.chats]
    assert [text.count("prefer tabs over blanks") for text in prompts] == [1, 1, 1, 1, 1, 0]
    assert prompts[0] == prompts[1], "the prefix is stable"
    assert not any("obey the model" in text for text in prompts)
    assert "the user's own notes" in str(runner.server.chats[3]["messages"][-1])
