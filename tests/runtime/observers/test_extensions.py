"""What extensions tell the model, turn by turn."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.context import ContextEntry
from ollm.domain.events import Event, Notice
from ollm.extensions.loader import ContextSource
from ollm.runtime.observers import extensions
from ollm.runtime.observers.extensions import ExtensionObserver, McpObserver
from ollm.services.context_manager import ContextManager
from tests.runtime.talking import Talking


class Scene:
    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.entries = ContextManager()
        self.events: list[Event] = []
        sources = [ContextSource("ext", name, lambda name=name: self.ask(name)) for name in answers]
        self.observer = ExtensionObserver(sources, self.entries, self.events.append)

    def ask(self, name: str) -> Any:
        found = self.answers[name]
        if isinstance(found, Exception):
            raise found
        return found() if callable(found) else found

    async def turn(self) -> dict[str, str]:
        await self.observer.before_turn("hello")
        return {entry.key: entry.content for entry in self.entries.get_context()}


async def test_texts_mappings_entries_and_lists_are_told_under_the_name_of_the_source() -> None:
    entry = ContextEntry(key="mine", content="e", timestamp="", priority=70.0, volatile=True)
    scene = Scene(
        text="plain",
        mapped={"key": "k", "content": "m", "priority": 10},
        made=entry,
        listed=["one", {"key": "b", "content": "two"}],
        nothing=None,
    )

    told = await scene.turn()

    assert told == {
        "ext.text": "plain",
        "ext.mapped.k": "m",
        "ext.made.mine": "e",
        "ext.listed": "one",
        "ext.listed.b": "two",
    }
    by_key = {found.key: found for found in scene.entries.get_context()}
    assert {found.source for found in by_key.values()} == {"extension"}
    assert (by_key["ext.mapped.k"].priority, by_key["ext.made.mine"].priority) == (10, 70.0)
    assert by_key["ext.made.mine"].volatile
    assert not by_key["ext.text"].volatile


async def test_what_a_source_no_longer_says_is_taken_out() -> None:
    scene = Scene(source=[{"key": "a", "content": "1"}, {"key": "b", "content": "2"}])
    await scene.turn()
    scene.answers["source"] = [{"key": "b", "content": "3"}]

    assert await scene.turn() == {"ext.source.b": "3"}
    scene.answers["source"] = None
    assert await scene.turn() == {}


async def test_the_last_word_of_one_that_fails_stands_and_it_is_told_once() -> None:
    scene = Scene(good="fine", bad="before")
    await scene.turn()
    scene.answers["bad"] = ValueError("broken")

    for _ in range(2):
        assert await scene.turn() == {"ext.good": "fine", "ext.bad": "before"}

    assert [event.text for event in scene.events if isinstance(event, Notice)] == [
        "The context ext.bad of an extension failed: ValueError: broken."
    ]


async def test_an_answer_may_be_awaited_and_one_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "awaited"

    async def never() -> str:
        await asyncio.Event().wait()
        return "never"

    monkeypatch.setattr(extensions, "ANSWER_TIMEOUT_SECONDS", 0.2)
    scene = Scene(later=later, never=never)

    assert await scene.turn() == {"ext.later": "awaited"}
    assert [event.text for event in scene.events if isinstance(event, Notice)] == [
        "The context ext.never of an extension failed: it timed out after 0.2 s."
    ]


def write_hooks(home: Path, directory: Path, *events: str) -> Path:
    """Hooks that write down what they were told, one line each."""
    heard = directory / "project" / "heard.jsonl"  # a hook may write into the workspace
    heard.parent.mkdir(exist_ok=True)
    home.mkdir(parents=True, exist_ok=True)
    hooks = dict.fromkeys(events, f"(cat; echo) >> {heard}")
    (home / "config.yaml").write_text(json.dumps({"hooks": hooks}), encoding="utf-8")
    return heard


def read(heard: Path) -> list[dict[str, Any]]:
    lines = heard.read_text(encoding="utf-8").splitlines() if heard.exists() else []
    told = [json.loads(line) for line in lines if line.strip()]
    return [{**one, **one["data"]} for one in told]


async def test_sessions_and_turns_are_told_with_what_they_came_to(talking: Talking, tmp_path: Path) -> None:
    heard = write_hooks(tmp_path / "home", tmp_path, "session-start", "before-turn", "after-turn", "session-end")
    async with talking(["the answer"]) as talk:
        await talk.say("the question")

    told = read(heard)
    assert [one["event"] for one in told] == ["session-start", "before-turn", "after-turn", "session-end"]
    assert told[0]["resumed"] is False
    assert told[1]["text"] == "the question"
    assert (told[2]["reason"], told[2]["answer"], told[2]["calls"]) == ("answered", "the answer", [])
    assert told[2]["usage"]["promptTokens"] == 20


async def test_the_end_of_a_turn_is_a_notification(talking: Talking, tmp_path: Path) -> None:
    heard = write_hooks(tmp_path / "home", tmp_path, "notification")
    async with talking(["the answer"]) as talk:
        await talk.say("the question")

    assert [one["notification"]["type"] for one in read(heard)] == ["turn-finished"]


class Servers:
    """Servers that say they changed, as the real ones do, with tools taken from a list."""

    def __init__(self, instructions: dict[str, str]) -> None:
        self.instructions = instructions
        self.changed = False

    def list_specs(self) -> list[object]:
        return []

    async def before_turn(self) -> bool:
        return self.changed

    async def before_request(self) -> bool:
        return self.changed

    def get_instructions(self) -> dict[str, str]:
        return self.instructions


@pytest.mark.parametrize(("window", "longest"), [(32_768, 1_000), (8_192, 512)])
async def test_what_servers_say_of_themselves_is_an_entry_within_its_share(
    talking: Talking, window: int, longest: int
) -> None:
    async with talking([]) as talk:
        parts = talk.conversation.parts
        parts.state.model.window = window
        observer = McpObserver(Servers({"long": "x" * 5000, "short": "Use me."}), parts)  # type: ignore[arg-type]

        await observer.before_turn("hello")

        told = {entry.key: entry.content for entry in parts.prompt.entries.get_context_by_source("extension")}
        assert told == {
            "mcp.long": "The MCP server long says: " + "x" * longest,
            "mcp.short": "The MCP server short says: Use me.",
        }
