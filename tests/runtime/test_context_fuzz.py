"""Conversations of random shape in random windows: whatever happens, what is sent fits, is whole, and loses nothing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ollm.config.settings import CompressionSettings, Settings
from ollm.domain.context import ActiveContext, CompressionRecord, Strategy, Usage
from ollm.domain.errors import ModelError
from ollm.domain.events import Compressed, Event
from ollm.domain.messages import AnyPart, Message, PromptMessage, TextPart, ToolCallPart, ToolResultPart
from ollm.domain.tools import RecordedResult, ToolCallRecord, ToolSchema
from ollm.runtime.prompt.compaction import Compactor, ContextFull
from ollm.runtime.prompt.prompt import Prompt, PromptModel
from ollm.services.context_manager import ContextManager
from ollm.services.token_counting import TokenCounter
from tests.sizes import size

WINDOWS = (1024, 1536, 2048, 3000, 4096, 8192, 32_768)
WORKABLE = 2048  # from here on the context never ends a turn, unless goals or entries fill it
SESSION = "7d9f4a52-0000-4000-8000-000000000001"
TOOLS = [
    ToolSchema(name=name, description="Does what its name says.", parameters={"type": "object", "properties": {}})
    for name in ("read_file", "edit_file", "shell", "recall")
]
KINDS = ("prose", "code", "digits", "japanese", "lines", "one word")
SUMMARIES = ("good", "empty", "echo", "long", "broken", "none")

sizes = st.one_of(st.integers(0, 300), st.integers(0, 3_000), st.sampled_from((12_000, 60_000)))
kinds = st.sampled_from(KINDS)


def written(kind: str, length: int, seed: int) -> str:
    """A text of this kind and length that no other is equal to."""
    piece = {
        "prose": f"Words {seed} of many, and some more of them. ",
        "code": f"def part_{seed}(value: int) -> str:\n    return src/area_{seed}/f.py[{seed + 1000}]\n",
        "digits": f"{seed}9876543210",
        "japanese": f"第{seed}部分を読んでから直してください。",
        "lines": f"{seed}\n\n",
        "one word": f"x{seed}y",
    }[kind]
    return (piece * (length // len(piece) + 1))[:length] or "."


class Context(RuleBasedStateMachine):
    """Everything that can happen to a context between two requests."""

    @initialize(
        window=st.sampled_from(WINDOWS),
        factor=st.floats(0.6, 1.6),
        strategy=st.sampled_from(("hybrid", "summarize", "truncate")),
        summary=st.sampled_from(SUMMARIES),
    )
    def begin(self, window: int, factor: float, strategy: Strategy, summary: str) -> None:
        self.settings = Settings(compression=CompressionSettings(strategy=strategy))
        self.factor, self.summary = factor, summary
        self.number = self.calls = 0
        self.said: dict[int, str] = {}
        self.goals_set: list[str] = []
        self.records: list[CompressionRecord] = []
        self.events: list[Event] = []
        self.sent: tuple[PromptMessage, ...] = ()
        self.broken = self.full = False
        self.kept: ActiveContext | None = None
        self._open(window)

    def _open(self, window: int) -> None:
        self.counter = TokenCounter(self.factor, 8)
        self.compactor = Compactor(self.settings, self.counter, keep=self._keep)
        model = PromptModel(session_id=SESSION, model="scripted", window=window)
        self.prompt = Prompt(model, self.settings, self.counter, ContextManager())
        self.prompt.set_tools(TOOLS[:3], when_folded=lambda: TOOLS)

    async def _keep(self, record: CompressionRecord) -> None:
        self.records.append(record)

    async def _summarise(self, asked: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
        assert self._served(asked, ()) + tokens <= self.prompt.model.window
        if self.summary == "broken":
            raise ModelError("the model fell over")
        yield {
            "good": "Goal:\n- go on\nOpen points:\n- none that anybody knows of",
            "empty": "",
            "echo": asked[-1].content,
            "long": "Goal:\n- go on with it all\n" * 2000,
        }[self.summary]

    def _served(self, messages: tuple[PromptMessage, ...], tools: tuple[ToolSchema, ...]) -> int:
        amount = sum(map(self.counter.count_message_units, messages))
        return math.ceil(amount * self.factor) + self.counter.count_schemas(tools)

    def _say(self, role: str, parts: list[AnyPart], calls: dict[str, ToolCallRecord] | None = None) -> None:
        self.number += 1
        message = Message(role=role, parts=tuple(parts), timestamp="", id=self.number)  # type: ignore[arg-type]
        self.prompt.add_message(message, calls or {})

    def _run(self, work: Coroutine[Any, Any, Any]) -> bool:
        """False when the context is full, which is an end that is told."""
        try:
            asyncio.run(work)
        except ContextFull:
            assert self.prompt.model.window < WORKABLE
            self.full = True
            return False
        self.full = False
        return True

    # What happens

    @rule(length=sizes, kind=kinds)
    def the_user_speaks(self, length: int, kind: str) -> None:
        text = written(kind, length, self.number)
        self._say("user", [TextPart(text)])
        self.said[self.number] = text
        self._look_at_the_front()
        self._request()
        self._say("assistant", [TextPart(written(kind, min(length, 2000), self.number))])

    @precondition(lambda self: self.said)
    @rule(results=st.lists(st.tuples(sizes, kinds), min_size=1, max_size=4), argument=sizes, fails=st.booleans())
    def the_model_calls(self, results: list[tuple[int, str]], argument: int, fails: bool) -> None:
        records: dict[str, ToolCallRecord] = {}
        for length, kind in results:
            self.calls += 1
            output = ("Error NotFound: " if fails else "") + written(kind, length, self.calls)
            records[f"c{self.calls}"] = ToolCallRecord(
                id=f"c{self.calls}",
                name="edit_file",
                args={"path": "a.py", "target": written("code", argument, self.calls)},
                timestamp="",
                result=RecordedResult(llm_content=output),
                status="ok",
            )
        self._request()
        self._say("assistant", [TextPart("I look."), *map(ToolCallPart, records)], records)
        self._say("tool", list(map(ToolResultPart, records)), records)
        self._request()

    @rule()
    def the_user_compacts(self) -> None:
        summarise = None if self.summary == "none" else self._summarise
        self._run(self.compactor.compact(self.prompt, self.events.append, summarise))
        self.broken = True

    @rule(summary=st.sampled_from(SUMMARIES))
    def the_model_summarises_otherwise(self, summary: str) -> None:
        self.summary = summary

    @rule(mode=st.sampled_from(("code", "plan", "debug", "assistant")))
    def the_mode_changes(self, mode: Any) -> None:
        self.prompt.set_mode(mode)
        self.broken = True

    @rule(window=st.sampled_from(WINDOWS))
    def the_window_changes(self, window: int) -> None:
        self.prompt.set_window(window)
        self.broken = True

    @rule(length=st.integers(1, 600), locked=st.booleans())
    def a_goal_is_set(self, length: int, locked: bool) -> None:
        if len(self.goals_set) < 3:
            text = written("prose", length, len(self.goals_set)).strip() or "go"
            self.prompt.goals.set(text)
            self.prompt.goals.decision(f"decided so for {len(self.goals_set)}", locked=locked)
            self.goals_set.append(text)

    @rule(key=st.sampled_from("abc"), length=st.integers(1, 3000), volatile=st.booleans())
    def an_entry_is_added(self, key: str, length: int, volatile: bool) -> None:
        self.prompt.entries.add_context(key, written("prose", length, length), volatile=volatile)

    @rule(key=st.sampled_from("abc"))
    def an_entry_is_removed(self, key: str) -> None:
        self.prompt.entries.remove_context(key)

    @rule()
    def it_is_resumed(self) -> None:
        """Another process takes up what was kept, and sends the same."""
        kept = msgspec.json.decode(msgspec.json.encode(self.prompt.get_active_context()), type=ActiveContext)
        entries, window = self.prompt.entries, self.prompt.model.window
        self._open(window)
        self.prompt.entries = entries
        self.prompt.restore(kept, cause="resume")
        self._look_at_the_front()

    def _look_at_the_front(self) -> None:
        """Context entries may change it, when a turn begins."""
        if self.sent and self.sent[0].content != self.prompt.get_system_prompt():
            self.broken = True

    # What must hold

    def _request(self) -> None:
        """Room is made, and what goes out fits, begins as the last one did, and tells the goals after a compression."""
        compressions = len(self.records)
        summarise = None if self.summary == "none" else self._summarise
        if not self._run(self.compactor.compact_if_needed(self.prompt, self.events.append, summarise)):
            return
        messages = self.prompt.build_request_messages()
        served = self._served(messages, self.prompt.tools)
        assert served <= self.prompt.compute_budget().limit + len(messages)
        if not self.broken and compressions == len(self.records):
            assert messages[: len(self.sent)] == self.sent
        if compressions < len(self.records):
            told = "\n".join(message.content for message in messages)
            assert all(goal in told for goal in self.goals_set)
        self.sent, self.broken = messages, False
        self.prompt.observe_usage(Usage(prompt_tokens=served))

    @invariant()
    def only_the_first_message_is_of_the_system(self) -> None:
        assert [m.role for m in self.sent[:1]] in ([], ["system"])
        assert all(message.role != "system" for message in self.sent[1:])

    @invariant()
    def a_call_stands_with_its_results(self) -> None:
        waiting: list[str] = []
        for message in self.sent:
            if message.role == "tool":
                assert waiting
                assert message.call_id == waiting.pop(0)
            else:
                assert waiting == []
                waiting = [call.id for call in message.calls]
        assert waiting == []

    @invariant()
    def every_message_stands_or_can_be_recalled(self) -> None:
        if self.full or not self.number:
            return
        context = self.prompt.get_active_context()
        cited = {n for m in context.messages for n in m.sources} | {
            n for point in context.checkpoints for n in point.message_ids
        }
        assert cited == set(range(1, self.number + 1))

    @invariant()
    def the_users_words_are_whole_or_say_how_to_read_them(self) -> None:
        for message in self.prompt.get_active_context().messages if self.number else ():
            if message.role == "user" and message.sources and (said := self.said.get(message.sources[0])):
                assert message.content.startswith(said) or "recall" in message.content

    @invariant()
    def compressions_are_counted(self) -> None:
        if self.number:
            assert len(self.records) == sum(isinstance(event, Compressed) for event in self.events)


Context.TestCase.settings = settings(max_examples=size(30, 1500), stateful_step_count=size(30, 80), deadline=None)
test_whatever_happens_what_is_sent_fits_and_nothing_is_lost = Context.TestCase
