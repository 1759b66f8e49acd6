"""What commands change outlives a crash, also before the first turn."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from ollm.domain.session import ChatSession
from ollm.runtime.resume.workspace_record import SavedContext, read_saved_context
from ollm.store.workspace_db import WorkspaceDatabase
from tests.cli.command import SCRIPT
from tests.runtime.talking import Talk, Talking
from tests.servers.answers import Answer
from tests.servers.openai import ScriptedServer

CODE = """
import asyncio, os, sys
from pathlib import Path
from ollm import ConversationOptions, open_conversation

async def main():
    async with open_conversation(ConversationOptions(workspace=Path.cwd())) as conversation:
        await conversation.command("goal", "set Ship the parser")
        await conversation.command("context", "add rule Never touch main")
        os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_goals_and_entries_set_before_the_first_turn_outlive_a_kill_and_are_told_once(tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    async with ScriptedServer(["Yes.", "Again."]) as server:
        environment = {
            **os.environ,
            "OLLM_HOME": str(tmp_path / "home"),
            "OLLM_PROVIDER": "openai",
            "OLLM_BASE_URL": server.base_url,
            "OLLM_MODEL": "scripted",
        }

        async def run(*command: str) -> int | None:
            process = await asyncio.create_subprocess_exec(
                *command, cwd=workspace, env=environment, stdout=asyncio.subprocess.DEVNULL
            )
            return await process.wait()

        assert await run(sys.executable, "-c", CODE) == -9
        assert await run(SCRIPT, "-p", "hello", "--continue") == 0
        assert await run(SCRIPT, "-p", "and on", "--continue") == 0

    for chat in server.chats:
        told = json.dumps(chat["messages"])
        assert told.count("Ship the parser") == 1
        assert told.count("Never touch main") == 1


async def read_record(talk: Talk) -> ChatSession:
    database = WorkspaceDatabase(talk.workspace / ".ollm")
    try:
        found = database.get_session(talk.conversation.session_id or "")
        assert found is not None
        return found
    finally:
        database.close()


async def test_each_turn_is_an_episode_and_the_record_follows(talking: Talking) -> None:
    call = Answer(calls=[("write_file", {"path": "a.txt", "content": "x\n"})])
    async with talking([call, "Written.", "Again."], yes=True) as talk:
        await talk.say("write a.txt")
        record = await read_record(talk)
        assert (record.title, record.model, record.status) == ("write a.txt", "scripted", "active")
        assert "a.txt" in record.summary
        assert not record.plan.awaiting_continuation
        await talk.run("/todos add more")
        await talk.say("and?")
        assert (await read_record(talk)).plan.awaiting_continuation
        session_id = talk.conversation.session_id or ""
        database = WorkspaceDatabase(talk.workspace / ".ollm")
        episodes = database.list_episodes(session_id)
        assert sorted(episode.number for episode in episodes) == [1, 5]
        assert next(episode.files for episode in episodes if episode.number == 1) == ("a.txt",)
        kept = read_saved_context(database.load_context(session_id))
        database.close()
        assert kept is not None
        assert kept.last_number == 6


async def test_a_turn_that_failed_waits_to_be_continued_and_closing_ends_the_record(talking: Talking) -> None:
    async with talking([Answer(status=500, body={"error": {"message": "broken"}})]) as talk:
        talk.server.script = lambda _request: Answer(status=500, body={"error": {"message": "broken"}})
        await talk.say("hello")
        assert (await read_record(talk)).plan.awaiting_continuation
        session_id = talk.conversation.session_id or ""
    database = WorkspaceDatabase(talk.workspace / ".ollm")
    closed = database.get_session(session_id)
    database.close()
    assert closed is not None
    assert (closed.status, closed.plan.awaiting_continuation) == ("closed", True)


async def test_a_single_prompt_is_written_down_when_it_is_over(talking: Talking) -> None:
    async with talking(["one"], one_shot=True) as talk:
        await talk.say("hello")
        session_id = talk.conversation.session_id or ""
        database = WorkspaceDatabase(talk.workspace / ".ollm")
        assert database.get_session(session_id) is None
        database.close()
    database = WorkspaceDatabase(talk.workspace / ".ollm")
    found = database.get_session(session_id)
    database.close()
    assert found is not None
    assert "hello" in found.summary


def load_saved(talk: Talk) -> SavedContext:
    database = WorkspaceDatabase(talk.workspace / ".ollm")
    try:
        kept = read_saved_context(database.load_context(talk.conversation.session_id or ""))
        assert kept is not None
        return kept
    finally:
        database.close()


def load_last_number(talk: Talk) -> int:
    return load_saved(talk).last_number


async def test_a_compacted_context_is_saved_at_once(talking: Talking) -> None:
    async with talking(["A long answer. " * 60, "and another " * 60, "short"]) as talk:
        for text in ("first", "second", "third"):
            await talk.say(text)
        assert not load_saved(talk).context.folded
        await talk.run("/compact")

        assert load_saved(talk).context == talk.conversation.parts.prompt.get_active_context()
        assert load_saved(talk).context.folded


async def test_a_long_record_is_written_when_half_as_much_again_was_said_and_at_the_end(
    talking: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLM_CONTEXT_WINDOW", "131072")  # nothing is compressed
    words = " ".join(f"word{number}" for number in range(900))
    long = [words[:7000]] * 3  # the record has more than 16,384 characters, and less than twice that
    async with talking([*long, "fine", f"{words}."[:8000], words[:4000], "last"]) as talk:
        for number in (1, 2, 3):
            await talk.say(f"question {number}")
        first = await read_record(talk)
        assert [len(message["content"]) for message in first.recent_messages] == [10, 7000] * 3
        told = []
        for number in (4, 5, 6, 7):
            await talk.say(f"question {number}")
            told.append([f"question {asked}" in (await read_record(talk)).summary for asked in (3, 4, 5, 6, 7)])
        session_id = talk.conversation.session_id or ""

    assert told == [
        [True, False, False, False, False],
        [True, False, False, False, False],  # a third of it is not enough
        [True, True, True, True, False],
        [True, True, True, True, False],
    ]
    database = WorkspaceDatabase(talk.workspace / ".ollm")
    closed = database.get_session(session_id)
    assert len(database.list_episodes(session_id)) == 7
    database.close()
    assert closed is not None
    assert "question 7" in closed.summary
    assert closed.updated_at >= first.updated_at


async def test_a_resumed_session_is_active_again_and_keeps_its_window_and_number(talking: Talking) -> None:
    async with talking(["one"]) as talk:
        await talk.run("/goal set ship it")
        assert load_last_number(talk) == 0
        await talk.say("first")
    async with talking(["two"], newest=True) as talk:
        again = await read_record(talk)
        await talk.run("/goal set ship it twice")
        assert load_last_number(talk) == 2
        await talk.say("second")
        assert load_last_number(talk) == 4
        later = await read_record(talk)

    assert (again.status, again.title) == ("active", "first")
    assert [message["content"] for message in again.recent_messages] == ["first", "one"]
    assert [message["content"] for message in later.recent_messages] == ["first", "one", "second", "two"]
    assert again.created_at < again.updated_at <= later.updated_at
