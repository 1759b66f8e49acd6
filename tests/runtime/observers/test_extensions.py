"""What extensions tell the model, turn by turn."""

import asyncio
from typing import Any

import pytest

from ollm.domain.context import ContextEntry
from ollm.domain.events import Event, Notice
from ollm.extensions.loader import ContextSource
from ollm.runtime.observers import extensions
from ollm.runtime.observers.extensions import ExtensionObserver
from ollm.services.context_manager import ContextManager


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
