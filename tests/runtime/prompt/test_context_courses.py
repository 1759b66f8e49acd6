"""Long courses of a context, recorded step by step: what is sent, what is counted, what is told."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.domain.context import Usage
from ollm.domain.errors import PromptTooLongError
from ollm.domain.events import Event, Notice
from ollm.domain.messages import PromptMessage
from ollm.runtime.prompt.compaction import ContextFull
from tests.recorded_courses import compare_course, describe_text
from tests.runtime.test_context_fuzz import KINDS, SUMMARIES, Context

RECORDED = Path(__file__).parents[1] / "recorded"
STEPS = 45
UNSTEADY = ("at", "id", "time", "timestamp", "seconds", "checkpointId", "snapshotId")
LENGTHS = (20, 200, 200, 900, 900, 2_500, 9_000)
REPORTS = (1.0, 1.0, 1.0, 1.0, 1.03, 0.97, 1.3, 0.75, 0.3, 0.0, 9.0)  # of what is sent, as the server counts it


class RecordedContext(Context):
    """A course by lot, with a server that counts as it likes."""

    def __init__(self, seed: int, window: int, factor: float, strategy: Any) -> None:
        super().__init__()
        self.lot = random.Random(seed)
        self.lines: list[str] = []
        self.begin(window, factor, strategy, "good")
        self.compactor.speeds = (200.0, 20.0)

    def take_step(self) -> None:
        name = self.lot.choice(
            [
                "speaks",
                "speaks",
                "speaks",
                "calls",
                "calls",
                "calls",
                "compacts",
                "summarises",
                "mode",
                "window",
                "goal",
                "entry",
                "resumed",
                "refused",
            ]
        )
        self.lines.append(f"{self.number} {name}")
        getattr(self, f"step_{name}")()
        self.note_state()

    def step_speaks(self) -> None:
        self.the_user_speaks(self.lot.choice(LENGTHS), self.lot.choice(KINDS))

    def step_calls(self) -> None:
        if self.said:
            count = self.lot.choice((1, 1, 2, 6))
            results = [(self.lot.choice(LENGTHS), self.lot.choice(KINDS)) for _ in range(count)]
            self.the_model_calls(results, self.lot.choice(LENGTHS), self.lot.random() < 0.3)

    def step_compacts(self) -> None:
        self.the_user_compacts()

    def step_summarises(self) -> None:
        self.the_model_summarises_otherwise(self.lot.choice(SUMMARIES))

    def step_mode(self) -> None:
        self.the_mode_changes(self.lot.choice(("code", "plan", "debug")))

    def step_window(self) -> None:
        self.the_window_changes(self.lot.choice((1024, 2048, 3000, 4096)))

    def step_goal(self) -> None:
        self.a_goal_is_set(self.lot.randrange(1, 300), self.lot.random() < 0.5)

    def step_entry(self) -> None:
        key = self.lot.choice("abc")
        if self.lot.random() < 0.4:
            self.an_entry_is_removed(key)
        else:
            self.an_entry_is_added(key, self.lot.choice(LENGTHS[:5]), self.lot.random() < 0.3)

    def step_resumed(self) -> None:
        counted = self.prompt.meter.counted_prompt
        self.it_is_resumed()
        self.prompt.meter.resume_count(counted)

    def step_refused(self) -> None:
        self.prompt.build_request_messages()
        used, window = self.prompt.used_tokens, self.prompt.model.window
        prompt_tokens, known = self.lot.choice(
            ((None, None), (used + 90, None), (used + 90, window - 256), (None, 700))
        )
        at_least = self.lot.random() < 0.3
        error = PromptTooLongError("x", prompt_tokens=prompt_tokens, window=known, prompt_at_least=at_least)
        self.lines.append(f"  long={self.prompt.is_suspiciously_long}")
        self.prompt.learn_from_rejection(error)

    def _run(self, work: Any) -> bool:
        try:
            self.lines.append(f"  done {asyncio.run(work)}")
        except ContextFull as error:
            self.lines.append(f"  full {error}")
            return False
        return True

    async def _summarise(self, asked: tuple[PromptMessage, ...], tokens: int) -> Any:
        self.lines.append(f"  summarise {tokens} {[describe_text(message.content) for message in asked]}")
        async for text in super()._summarise(asked, tokens):
            yield text

    def _request(self) -> None:
        summarise = None if self.summary == "none" else self._summarise
        if not self._run(self.compactor.compact_if_needed(self.prompt, self.events.append, summarise)):
            return
        self.sent = self.prompt.build_request_messages()
        share = self.lot.choice(REPORTS)
        reported = int(self._served(self.sent, self.prompt.tools) * share)
        exact = int(reported * 1.1) if self.lot.random() < 0.05 else None
        for message in self.sent:
            calls = " ".join(describe_text(str(call.arguments)) for call in message.calls)
            self.lines.append(f"    {message.role} {message.sources} {describe_text(message.content)} {calls}".rstrip())
        usage = Usage(prompt_tokens=reported)
        self.lines.append(f"  verify={self.prompt.should_verify_usage(usage)} answer={self.prompt.max_answer_tokens}")
        self.lines.append(f"  reported={reported} exact={exact} {self.prompt.observe_usage(usage, exact)}")

    def note_state(self) -> None:
        prompt, meter = self.prompt, self.prompt.meter
        prompt.emit_notes(self.events.append)
        self.lines += [f"  {describe_event(event)}" for event in self.events]
        self.events.clear()
        usage = prompt.measure_usage()
        self.lines.append(
            f"  used={usage.used} limit={usage.limit} window={usage.window} trigger={usage.trigger} fixed={usage.fixed} "
            f"share={usage.reused_share} by={usage.broken_by} doubt={meter.doubtful_tokens} counted={meter.counted_prompt} "
            f"long={prompt.is_suspiciously_long} tools={len(prompt.tools)} told={prompt.goals_told}"
        )


def describe_event(event: Event) -> str:
    """All of it but what differs from run to run."""
    if isinstance(event, Notice):
        return f"{event.level}: {event.text}"
    said = msgspec.to_builtins(event)
    return f"{type(event).__name__} { {key: value for key, value in said.items() if key not in UNSTEADY} }"


@pytest.mark.parametrize(
    ("seed", "window", "factor", "strategy"),
    [(1, 2048, 1.0, "hybrid"), (2, 4096, 1.4, "hybrid"), (3, 3000, 0.8, "summarize"), (4, 2048, 1.2, "truncate")],
)
def test_a_context_goes_the_way_it_went_when_it_was_recorded(
    monkeypatch: pytest.MonkeyPatch, seed: int, window: int, factor: float, strategy: str
) -> None:
    follow_course(monkeypatch, seed, window, factor, strategy)


def follow_course(
    monkeypatch: pytest.MonkeyPatch, seed: int, window: int, factor: float, strategy: str, steps: int = STEPS
) -> None:
    # What the model is told first changes with its words alone: here it is short and stays.
    monkeypatch.setattr("ollm.runtime.prompt.prefix.build_instructions", lambda window, mode: f"Help. Mode {mode}.")
    context = RecordedContext(seed, window, factor, strategy)
    for _ in range(steps):
        context.take_step()

    compare_course(RECORDED / f"context_{seed}.txt", context.lines)
