"""Long conversations with a scripted model: seeded facts, tool output, answers, in a window of any size."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from ollm.config.settings import Settings
from ollm.domain.context import CompressionRecord, Usage
from ollm.domain.events import Compressed, Event
from ollm.domain.messages import AnyPart, Message, PromptMessage, TextPart, ToolCallPart, ToolResultPart
from ollm.domain.tools import RecordedResult, ToolCallRecord, ToolSchema
from ollm.runtime.prompt.compaction import Compactor
from ollm.runtime.prompt.prompt import Prompt, PromptModel
from ollm.services.context_manager import ContextManager
from ollm.services.token_counting import TokenCounter

WORDS = [
    f"{first}{last}"
    for first in ("build", "cache", "parse", "index", "retry")
    for last in ("", "s", "er", " it", " me")
]
SESSION = "7d9f4a52-0000-4000-8000-000000000001"
TOOLS = [
    ToolSchema(
        name=name,
        description=f"{name}: does what its name says inside the workspace.",
        parameters={"type": "object", "properties": {"path": {"type": "string"}, "query": {"type": "string"}}},
    )
    for name in ("read_file", "grep", "shell", "edit_file", "recall")
]


@dataclass
class Report:
    """What a conversation came to."""

    turns: int = 0
    requests: int = 0
    compressions: int = 0
    largest: int = 0
    summaries: int = 0
    facts: int = 0
    facts_in_context: int = 0
    facts_lost: list[str] = field(default_factory=list)
    unreachable: set[int] = field(default_factory=set)
    broken_inside_turns: int = 0
    reused: float = 1.0

    @property
    def per_turn(self) -> float:
        return self.compressions / max(1, self.turns)


def served_tokens(messages: tuple[PromptMessage, ...], tools: list[ToolSchema]) -> int:
    """The scripted server's own tokenizer: it knows nothing of our estimate."""
    spoken = sum(len(m.content) + sum(len(c.name) + len(str(c.arguments)) for c in m.calls) + 12 for m in messages)
    return math.ceil((spoken + len(str([(t.name, t.description, t.parameters) for t in tools]))) / 3.9)


class Simulation:
    """`share` is the size of a turn as a part of the window."""

    def __init__(self, window: int, share: float = 0.05, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._turn_chars = int(window * share * 3.9)
        self._counter = TokenCounter()
        self._number = 0
        self._calls = 0
        self.window = window
        self.report = Report()
        self.records: list[CompressionRecord] = []
        self.facts: dict[str, int] = {}
        settings = Settings()
        self.compactor = Compactor(settings, self._counter, keep=self._keep)
        model = PromptModel(session_id=SESSION, model="scripted", window=window)
        self.prompt = Prompt(model, settings, self._counter, ContextManager())
        self.prompt.set_tools(TOOLS)

    async def _keep(self, record: CompressionRecord) -> None:
        self.records.append(record)

    def _emit(self, event: Event) -> None:
        self.report.compressions += isinstance(event, Compressed)

    async def _summarise(self, asked: tuple[PromptMessage, ...], tokens: int) -> AsyncIterator[str]:
        self.report.summaries += 1
        size = served_tokens(asked, []) + tokens
        self.report.largest = max(self.report.largest, size)
        yield "Goal:\n- keep the conversation going\nFiles and their state:\n"
        for _ in range(self._random.randint(2, 8)):
            yield f"- {self._text(60)}\n"

    def _text(self, chars: int) -> str:
        return " ".join(self._random.choices(WORDS, k=chars // 5 + 1))[:chars]

    def _say(self, role: str, parts: list[AnyPart], calls: dict[str, ToolCallRecord] | None = None) -> None:
        self._number += 1
        message = Message(role=role, parts=tuple(parts), timestamp="", id=self._number)  # type: ignore[arg-type]
        self.prompt.add_message(message, calls or {})

    async def _request(self) -> None:
        await self.compactor.compact_if_needed(self.prompt, self._emit, self._summarise)
        messages = self.prompt.build_request_messages()
        size = served_tokens(messages, TOOLS)
        self.report.requests += 1
        self.report.largest = max(self.report.largest, size)
        last = self.prompt.ledger.last
        assert last is not None
        if last.broken_by not in (None, "compression"):
            self.report.broken_inside_turns += 1
        self.prompt.observe_usage(Usage(prompt_tokens=size, completion_tokens=50))

    async def turn(self) -> None:
        """A user message with a fact in it, two steps with a call each, an answer."""
        self.report.turns += 1
        number = self.report.turns
        fact = f"src/area_{number}/file{number}.py:{1000 + number}"
        self.facts[fact] = self._number + 1
        asked = f"Keep {fact} in mind and go on. {self._text(self._turn_chars // 8)}"
        self._say("user", [TextPart(text=asked)])
        for _ in range(2):
            await self._request()
            self._step()
        await self._request()
        self._say("assistant", [TextPart(text=self._text(self._turn_chars // 8))])

    def _step(self) -> None:
        self._calls += 1
        name = f"c{self._calls}"
        output = "\n".join(self._text(70) for _ in range(max(1, self._turn_chars * 3 // 8 // 71)))
        record = ToolCallRecord(
            id=name,
            name="read_file",
            args={"path": f"src/{name}.py"},
            timestamp="",
            result=RecordedResult(llm_content=output),
            status="ok",
        )
        self._say("assistant", [TextPart(text=self._text(30)), ToolCallPart(id=name)], {name: record})
        self._say("tool", [ToolResultPart(id=name)], {name: record})

    def finish(self) -> Report:
        """Look for every fact: in the context, or in a message the context cites by number."""
        messages = self.prompt.build_request_messages()
        text = "\n".join(message.content for message in messages)
        cited = {number for message in messages for number in message.sources}
        self.report.facts = len(self.facts)
        self.report.facts_in_context = sum(fact in text for fact in self.facts)
        self.report.facts_lost = [fact for fact, n in self.facts.items() if fact not in text and n not in cited]
        self.report.unreachable = set(range(1, self._number + 1)) - cited
        return self.report


def simulate(window: int, turns: int, share: float = 0.05, seed: int = 1) -> Report:
    async def run() -> Report:
        simulation = Simulation(window, share, seed)
        for _ in range(turns):
            await simulation.turn()
        return simulation.finish()

    return asyncio.run(run())
