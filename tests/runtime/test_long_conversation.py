"""Long conversations, over a real server and simulated."""

import itertools
import json
import math
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from bench.simulation import Report, simulate

from ollm.app.conversation import open_conversation
from ollm.domain.events import AnyEvent, Compressed, TurnFinished
from ollm.runtime.base import ConversationOptions
from ollm.runtime.conversation import LocalConversation
from tests.covers import covers
from tests.servers.answers import Answer, Request
from tests.servers.openai import ScriptedServer
from tests.sizes import size

WINDOW = 4096


def tokens(request: Request) -> int:
    """The server's own count, tool schemas included. Most templates do not show the ids of calls."""
    messages = re.sub(r'"(call_|c0+)\d+"', '"c1"', json.dumps(request.body["messages"]))
    return math.ceil((len(messages) + len(json.dumps(request.body.get("tools", [])))) / 4)


def is_summary(request: Request) -> bool:
    return "<record>" in request.body["messages"][-1]["content"]


def reply(request: Request) -> Answer:
    if is_summary(request):
        return Answer(text="Goal:\n- go on\nOpen points:\n- nothing much", prompt_tokens=tokens(request))
    asked = sum(message["role"] == "user" for message in request.body["messages"])
    if request.body["messages"][-1]["role"] == "user" and asked % 3 == 0:
        return Answer(calls=[("read_file", {"path": "notes.txt"})], prompt_tokens=tokens(request))
    return Answer(text=f"Answer {len(request.body['messages'])}. " * 40, prompt_tokens=tokens(request))


class Talk:
    """Everything a test looks at."""

    def __init__(self, conversation: LocalConversation, server: ScriptedServer, home: Path) -> None:
        self.conversation, self.server, self.home = conversation, server, home
        self.events: list[AnyEvent] = []

    async def say(self, text: str) -> str:
        async with self.conversation.turn(text) as events:
            async for event in events:
                self.events.append(event)
        last = self.events[-1]
        assert isinstance(last, TurnFinished)
        return last.reason

    @property
    def chats(self) -> list[dict[str, Any]]:
        return [request.body for request in self.server.requests if request.path.endswith("completions")]

    def document(self) -> dict[str, Any]:
        (file,) = (self.home / "sessions").glob("*.json")
        found: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return found


@asynccontextmanager
async def talking(
    root: Path,
    opened: dict[str, Any] | None = None,
    window: int = WINDOW,
    reply: Callable[[Request], Answer] = reply,
    **settings: Any,
) -> AsyncIterator[Talk]:
    workspace = root / "project"
    workspace.mkdir(exist_ok=True)
    (workspace / "notes.txt").write_text("\n".join(f"note {n}: nothing of interest" for n in range(60)), "utf-8")
    async with ScriptedServer(reply) as server:
        provider = {"type": "openai", "baseUrl": server.base_url, "model": "scripted", "contextWindow": window}
        opening = ConversationOptions(workspace=workspace, flags={"provider": provider, **settings}, **(opened or {}))
        async with open_conversation(opening) as conversation:
            yield Talk(conversation, server, root / "home")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OLLM_HOME", str(tmp_path / "home"))
    return tmp_path


@covers("D754", "H22", "H39", "S3.1", "S3.8", "D76", "D78")
async def test_it_is_compressed_and_goes_on_and_the_file_has_every_word(home: Path) -> None:
    said = [f"Message {n}: keep src/part_{n}.py and port {8000 + n} in mind. " + "And go on. " * 8 for n in range(14)]
    async with talking(home) as talk:
        reasons = [await talk.say(text) for text in said]

    assert set(reasons) == {"answered"}
    compressions = [event for event in talk.events if isinstance(event, Compressed)]
    assert compressions
    assert all(tokens(request) <= WINDOW for request in talk.server.requests if request.body)
    document = talk.document()
    assert document["metadata"]["compressionCount"] == len(compressions)
    assert len(document["metadata"]["compressionHistory"]) == len(compressions)
    spoken = ["".join(p.get("text", "") for p in m["parts"]) for m in document["messages"] if m["role"] == "user"]
    assert spoken == said
    ordinary = [chat["messages"] for chat in talk.chats if "<record>" not in chat["messages"][-1]["content"]]
    assert len({messages[0]["content"] for messages in ordinary}) == 1
    assert [message["role"] for message in ordinary[-1]].count("system") == 1
    snapshots = list((talk.home / "context-snapshots").glob("*/snapshots/snapshot-*.json"))
    assert 0 < len(snapshots) <= 5


async def test_each_request_begins_with_the_one_before_except_after_a_compression(home: Path) -> None:
    async with talking(home) as talk:
        for number in range(14):
            await talk.say(f"Message {number}. " + "Go on. " * 20)

    ordinary = [chat["messages"] for chat in talk.chats if "<record>" not in chat["messages"][-1]["content"]]
    broken = sum(after[: len(before)] != before for before, after in itertools.pairwise(ordinary))
    assert broken == len([event for event in talk.events if isinstance(event, Compressed)])


@pytest.mark.parametrize("window", [1024, 2048])
async def test_a_very_small_window_goes_on_turn_after_turn_with_tools(home: Path, window: int) -> None:
    async with talking(home, window=window) as talk:
        reasons = [await talk.say(f"Message {n}: look at src/part_{n}.py. " + "Go on. " * 30) for n in range(12)]

    assert set(reasons) == {"answered"}
    assert any(isinstance(event, Compressed) for event in talk.events)
    assert all(tokens(request) <= window for request in talk.server.requests if request.body)
    assert len(talk.document()["messages"]) >= 24


def tool_names(chat: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in chat.get("tools", [])]


async def test_recall_is_offered_once_something_was_folded_and_stays_after_a_resume(home: Path) -> None:
    async with talking(home) as talk:
        while not any(isinstance(event, Compressed) for event in talk.events):
            await talk.say("Go on. " * 30)
    async with talking(home, opened={"newest": True}) as again:
        await again.say("And again.")

    ordinary = [chat for chat in talk.chats if "<record>" not in chat["messages"][-1]["content"]]
    assert "recall" not in tool_names(ordinary[0])
    assert "recall" in tool_names(ordinary[-1])
    assert tool_names(again.chats[0]) == tool_names(ordinary[-1])
    before, after = ordinary[-1]["messages"], again.chats[0]["messages"]
    assert after[: len(before)] == before


async def test_with_compression_off_it_ends_with_context_full_and_the_ways_out(home: Path) -> None:
    async with talking(home, compression={"enabled": False}) as talk:
        reason = "answered"
        while reason == "answered":
            reason = await talk.say("Go on. " * 60)
        last = talk.events[-1]

    assert reason == "context-full"
    assert isinstance(last, TurnFinished)
    assert "Try /compact" in last.message
    assert all(tokens(request) <= WINDOW for request in talk.server.requests if request.body)


@covers("H256", "H257", "H271")
async def test_a_snapshot_taken_in_the_chat_leads_back(home: Path) -> None:
    async with talking(home) as talk:
        await talk.say("The first thing")
        taken = await talk.conversation.command("context", "snapshot")
        await talk.say("A thing to be undone")
        await talk.conversation.command("context", f"restore {taken.data['id']}")
        await talk.say("Another thing")

    last = [message["content"] for message in talk.chats[-1]["messages"]]
    assert any("The first thing" in content for content in last)
    assert not any("to be undone" in content for content in last)
    assert "to be undone" in json.dumps(talk.document()["messages"])


def call_many(count: int) -> Callable[[Request], Answer]:
    """A server that asks for so many files at once, and answers when it has seen what came of it."""

    def reply(request: Request) -> Answer:
        if is_summary(request):
            return Answer(text="Goal:\n- read notes.txt\nOpen points:\n- nothing much", prompt_tokens=tokens(request))
        last = request.body["messages"][-1]
        if last["role"] == "user":
            calls = [("read_file", {"path": "notes.txt", "startLine": n + 1}) for n in range(count)]
            return Answer(calls=calls, prompt_tokens=tokens(request))
        return Answer(text="I read them all.", prompt_tokens=tokens(request))

    return reply


@pytest.mark.parametrize(("window", "count"), [(4096, 60), (4096, 200), (8192, 200)])
async def test_very_many_calls_in_one_step_end_with_an_answer_and_can_be_recalled(
    home: Path, window: int, count: int
) -> None:
    async with talking(home, window=window, reply=call_many(count)) as talk:
        reason = await talk.say("Read notes.txt from every line on, and keep port 8443 in mind.")
        chat = talk.chats[-1]

    assert reason == "answered"
    assert all(tokens(request) <= window for request in talk.server.requests if request.body)
    assert "keep port 8443 in mind" in json.dumps(chat["messages"])
    asked = [call["id"] for message in chat["messages"] for call in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in chat["messages"] if message["role"] == "tool"]
    assert asked == answered
    assert asked
    assert "recall" in json.dumps(chat["messages"])
    assert "recall" in tool_names(chat)


async def test_the_request_being_worked_on_is_whole_in_every_request_of_its_turn(home: Path) -> None:
    steps = iter(range(1000))

    def reply(request: Request) -> Answer:
        if is_summary(request):
            return Answer(text="Goal:\n- read notes.txt\nOpen points:\n- nothing much", prompt_tokens=tokens(request))
        if next(steps) % 9 < 8:
            start = next(steps) % 50 + 1
            return Answer(
                calls=[("read_file", {"path": "notes.txt", "startLine": start})], prompt_tokens=tokens(request)
            )
        return Answer(text="Done.", prompt_tokens=tokens(request))

    said = [f"Wish {n}: the settings live in /etc/app/{n}.toml, " + "and mind the gap, " * 30 for n in range(4)]
    async with talking(home, reply=reply) as talk:
        for text in said:
            before = len(talk.chats)
            await talk.say(text)
            chats = [chat for chat in talk.chats[before:] if "<record>" not in chat["messages"][-1]["content"]]
            assert len(chats) >= 2
            assert all(any(text in (m["content"] or "") for m in chat["messages"]) for chat in chats)
    assert any(isinstance(event, Compressed) for event in talk.events)


def assert_sound(report: Report, window: int) -> None:
    assert report.largest <= window
    assert report.unreachable == set()
    assert report.facts_lost == []
    assert report.broken_inside_turns == 0


@pytest.mark.parametrize("window", [4096, 8192, 16384, 32768])
def test_turns_of_a_twentieth_of_the_window_need_less_than_one_compression_in_five(window: int) -> None:
    report = simulate(window, size(80, 1000))

    assert_sound(report, window)
    assert 0 < report.per_turn < 0.2


@pytest.mark.parametrize("window", [4096, 16384])
def test_heavy_turns_fit_too(window: int) -> None:
    assert_sound(simulate(window, size(40, 500), share=0.2, seed=2), window)


def test_a_window_smaller_than_most_still_works() -> None:
    assert_sound(simulate(2048, size(60, 500)), 2048)
