"""The workspace record in `memory.db`: written when a turn ends, within the caps of the settings."""

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Runner, running
from tests.cli.terminal import CTRL_D, at_terminal
from tests.covers import covers
from tests.servers.answers import Answer, Request


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
