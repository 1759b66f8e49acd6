"""While nobody asks anything, a compaction that is near is done on the conversation's own prefix; a message stops it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ollm import ConversationOptions, open_conversation
from ollm.daemon.client import DaemonClient, open_remote
from ollm.domain.events import Compressed
from ollm.runtime import conversation as idle_summary
from ollm.runtime.conversation import LocalConversation
from tests.daemon.running import daemon
from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer

MINUTES = "Goal:\n- keep the port 5433 of staging\nDecisions:\n- PREPARED: retry 3 times, see src/net/retry.py"
TOLD = "Staging listens on port 5433 and src/net/retry.py tries 3 times. " + "We talked about many other things. " * 60
MAX_WAIT_SECONDS = 60


def is_aside(body: dict[str, Any]) -> bool:
    return str(body["messages"][-1]["content"]).startswith("Do not go on with the work now")


def answer(request: Request) -> Answer:
    tokens = len(json.dumps(request.body["messages"])) // 4 + len(json.dumps(request.body.get("tools", ()))) // 4
    text = MINUTES if is_aside(request.body) else "Understood, port 5433 it is. " + "I looked at it. " * 20
    return Answer(text=text, prompt_tokens=tokens)


@asynccontextmanager
async def opened(
    place: Path, monkeypatch: pytest.MonkeyPatch, script: Callable[[Request], Answer] = answer, *, idle: str = "auto"
) -> AsyncIterator[tuple[LocalConversation, ScriptedServer]]:
    (place / "project").mkdir()
    monkeypatch.setenv("OLLM_HOME", str(place / "home"))
    monkeypatch.setattr(idle_summary, "QUIET_SECONDS", 0.0)
    async with ScriptedServer(script, kind="llama.cpp", window=4096) as server:
        server.slot_busy = False
        flags = {
            "provider": {"type": "openai", "baseUrl": server.base_url, "model": "scripted"},
            "compression": {"idle": idle},
        }
        options = ConversationOptions(workspace=place / "project", flags=flags)
        async with open_conversation(options) as conversation:
            yield conversation, server


async def say(conversation: LocalConversation, text: str) -> list[Any]:
    async with conversation.turn(text) as events:
        return [event async for event in events]


async def wait_until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        while not true():
            await asyncio.sleep(0.05)


async def say_until_due(conversation: LocalConversation, server: ScriptedServer) -> None:
    """Until one more turn of this size would start a compaction."""
    for turns in range(1, 7):
        await say(conversation, TOLD)
        prompt = conversation.parts.prompt
        if prompt.message_tokens * (turns + 1) > prompt.compute_budget().trigger * turns:
            return
    raise AssertionError("the context did not fill")


async def test_the_next_compaction_is_done_on_the_same_prefix_and_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, monkeypatch) as (conversation, server):
        await say_until_due(conversation, server)
        await wait_until(lambda: any(map(is_aside, server.chats)) and not is_aside(server.chats[-1]))
        before, aside, ahead = server.chats[-3:]

        assert is_aside(aside)
        assert aside["messages"][: len(before["messages"])] == before["messages"]
        assert aside["tools"] == before["tools"]
        assert aside["messages"][len(before["messages"])]["role"] == "assistant"
        assert (ahead["max_tokens"], "PREPARED: retry 3 times" in json.dumps(ahead["messages"])) == (1, True)

        events = await say(conversation, "Go on.")
        sent = json.dumps(server.chats[-1]["messages"])
        assert json.dumps(ahead["messages"]).rstrip(']}"') in sent  # nothing of it is read again
        assert sum(isinstance(event, Compressed) for event in events) == 1  # the user hears of it now
        assert not any(body for body in server.chats if not body.get("tools"))  # nobody waited for a summary


async def say_until_compacted(conversation: LocalConversation) -> None:
    for _ in range(8):
        if any(isinstance(event, Compressed) for event in await say(conversation, TOLD)):
            return
    raise AssertionError("nothing was compacted")


async def test_a_summary_in_a_turn_is_the_next_answer_to_what_the_server_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, monkeypatch, idle="off") as (conversation, server):
        await say_until_compacted(conversation)
        before, aside, after = server.chats[-3:]

        assert is_aside(aside)
        assert aside["messages"][: len(before["messages"])] == before["messages"]
        assert aside["tools"] == before["tools"]
        assert "PREPARED: retry 3 times" in json.dumps(after["messages"])
        assert after["messages"][-1]["content"].endswith(TOLD)


@pytest.mark.parametrize("unusable", ["", "I'm sorry, but I can't help with that."])
async def test_an_unusable_answer_is_followed_by_one_request_with_the_messages_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unusable: str
) -> None:
    def refuse(request: Request) -> Answer:
        if is_aside(request.body):
            return Answer(text=unusable)
        return answer(request) if request.body.get("tools") else Answer(text=MINUTES.replace("PREPARED", "CARRIED"))

    async with opened(tmp_path, monkeypatch, refuse, idle="off") as (conversation, server):
        await say_until_compacted(conversation)

        assert sum(not body.get("tools") for body in server.chats) == 1
        assert "CARRIED: retry 3 times" in json.dumps(server.chats[-1]["messages"])


async def test_nothing_is_compacted_twice_in_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path, monkeypatch) as (conversation, server):
        await say_until_due(conversation, server)
        await wait_until(lambda: any(body.get("max_tokens") == 1 for body in server.chats))
        for _ in range(2):
            await say(conversation, "Go on.")
            await conversation.idle.stop()

        assert sum(map(is_aside, server.chats)) == 1


async def test_the_next_message_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang_aside(request: Request) -> Answer:
        return Answer(delay=3600) if is_aside(request.body) else answer(request)

    async with opened(tmp_path, monkeypatch, hang_aside) as (conversation, server):
        await say_until_due(conversation, server)
        await wait_until(lambda: any(map(is_aside, server.chats)))
        events = await say(conversation, "Go on.")

        assert events[-1].reason == "answered"
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            await server.left.wait()


async def test_a_key_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang_aside(request: Request) -> Answer:
        return Answer(delay=3600) if is_aside(request.body) else answer(request)

    async with opened(tmp_path, monkeypatch, hang_aside) as (conversation, server):
        await say_until_due(conversation, server)
        await wait_until(lambda: any(map(is_aside, server.chats)))
        conversation.note_typing()
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            await server.left.wait()
        assert conversation.parts.prompt.get_active_context().checkpoints == ()


async def test_a_busy_server_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path, monkeypatch) as (conversation, server):
        server.slot_busy = True
        await say_until_due(conversation, server)
        await wait_until(lambda: any(request.path == "/slots" for request in server.requests))
        await say(conversation, "Go on.")

        assert not any(map(is_aside, server.chats))


@pytest.mark.parametrize("idle", ["off", "auto"])
async def test_it_stays_quiet_where_it_is_off_or_another_session_has_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle: str
) -> None:
    async with opened(tmp_path, monkeypatch, idle=idle) as (conversation, server):
        conversation.idle.is_busy_elsewhere = lambda: True
        await say_until_due(conversation, server)
        await asyncio.sleep(0.2)
        await say(conversation, "Go on.")

        assert not any(request.path == "/slots" for request in server.requests)


async def test_the_daemon_prepares_one_too_and_a_key_in_a_chat_with_it_stops_it(tmp_path: Path) -> None:
    def hang_aside(request: Request) -> Answer:
        return Answer(delay=3600) if is_aside(request.body) else answer(request)

    async with daemon(tmp_path, hang_aside, kind="llama.cpp", window=4096) as running:  # type: ignore[arg-type] # a script may be a function
        running.server.slot_busy = False
        session = await running.open()
        for _ in range(3):
            await running.say(session, TOLD)
        await wait_until(lambda: any(map(is_aside, running.server.chats)))
        aside = next(body for body in running.server.chats if is_aside(body))
        place = running.server.chats.index(aside)
        before = running.server.chats[place - 1]

        assert aside["messages"][: len(before["messages"])] == before["messages"]
        assert not running.server.left.is_set()
        chat = await open_remote(
            DaemonClient(running.socket), {"workspacePath": str(running.workspace), "sessionId": session}
        )
        chat.note_typing()
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            await running.server.left.wait()
        await chat.close()
