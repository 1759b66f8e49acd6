"""Keeps what a conversation taught about its model: how it calls, how its tokens count, how fast it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ollm.domain.events import Event, Notice
from ollm.domain.model_facts import ModelFacts
from ollm.runtime.prompt.prompt import Prompt
from ollm.runtime.prompt.token_meter import DOUBT_SHARES
from ollm.runtime.state import ConversationState
from ollm.runtime.turn_observer import TurnObserver, TurnReport

MIN_TOKEN_FACTOR_CHANGE = 0.02  # a smaller difference in tokens is not worth a write

WriteFacts = Callable[[str, dict[str, Any]], object]


class ModelFactsObserver(TurnObserver):
    """`write` takes the key of the model and the fields that changed."""

    def __init__(
        self, state: ConversationState, prompt: Prompt, emit: Callable[[Event], None], write: WriteFacts
    ) -> None:
        self._state = state
        self._prompt = prompt
        self._emit = emit
        self._write = write
        self._known = state.model.facts

    async def before_turn(self, text: str) -> None:
        """Another model may have been chosen since."""
        if self._state.model.facts.key != self._known.key:
            self._known = self._state.model.facts

    async def after_turn(self, report: TurnReport) -> None:
        self._update_token_factor()
        if self._prompt.window_learnt and self._prompt.model.window < self._state.model.window:
            self._state.model.set_served_window(self._prompt.model.window)
        if news := self._state.model.pictures.take_news():
            self._emit(Notice(level="warning", text=f"{self._state.model.name}: {news}"))
        facts = self._state.model.facts
        if facts.key != self._known.key or not (changes := find_changed_fields(self._known, facts)):
            return
        if news := describe_changes(changes, self._state.model.advice):
            self._emit(Notice(level="info", text=f"{self._state.model.name}: {news}"))
        self._known = facts
        self._write(facts.key, changes)

    def _update_token_factor(self) -> None:
        known = self._state.model.facts
        factor, samples = self._prompt.token_calibration
        moved = abs(factor - known.token_factor) > MIN_TOKEN_FACTOR_CHANGE * known.token_factor
        surer = any(known.token_samples < needed <= samples for needed, _ in DOUBT_SHARES)
        if samples > known.token_samples and (moved or surer):
            self._state.model.set_token_factor(round(factor, 4), samples)


def find_changed_fields(before: ModelFacts, after: ModelFacts) -> dict[str, Any]:
    """The fields that are not what they were."""
    old, new = msgspec.structs.asdict(before), msgspec.structs.asdict(after)
    return {name: value for name, value in new.items() if old[name] != value}


def describe_changes(changes: dict[str, Any], advice: str = "") -> str:
    """What was found out about the model for the first time, in one line; a call as everybody expects it is no news.
    `advice` says how a server that refused tools would take them."""
    forms = {
        "blocks": "it writes fenced commands and files, which ollm runs as tool calls",
        "text": "it writes tool calls as text, which ollm parses",
        "constrained": "its tool calls are constrained to the tools' schema",
    }
    read, write = changes.get("prefill_per_second"), changes.get("decode_per_second")
    news = [forms.get(changes.get("call_form", ""), "")]
    if read and write:
        news.append(f"prompt {read:.0f} tok/s, output {write:.0f} tok/s")
    if changes.get("binds_answers") is False:
        news.append("the server ignores response_format, so tool calls cannot be bound to a schema")
    line = "; ".join(filter(None, news))
    line = f"{line}. Run `ollm models probe` for more." if line else ""
    if changes.get("takes_tools") is False:
        line = f"the server takes no tools, so they are listed in the prompt. {advice} {line}"
    return " ".join(line.split())
