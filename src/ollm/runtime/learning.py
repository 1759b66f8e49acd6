"""Keeps what a conversation taught about its model: how many tokens a text really takes."""

from __future__ import annotations

from collections.abc import Callable

from ollm.runtime.observers import TurnReport
from ollm.runtime.parts import Parts

CHANGE = 0.02  # a smaller difference is not worth a write

Write = Callable[[str, float, int], object]


class LearntTokens:
    """A `TurnObserver`. `write` takes the key of the model, the factor and the samples behind it."""

    def __init__(self, parts: Parts, write: Write) -> None:
        self._parts = parts
        self._write = write

    async def session_opened(self, session_id: str, *, resumed: bool) -> None:
        """Nothing is learnt yet."""

    async def before_turn(self, text: str) -> None:
        """Nothing is learnt yet."""

    async def after_turn(self, report: TurnReport) -> None:
        known = self._parts.model.facts
        factor, samples = self._parts.prompt.learnt
        if samples > known.token_samples and abs(factor - known.token_factor) > CHANGE * known.token_factor:
            self._write(known.key, round(factor, 4), samples)
            self._parts.model.learnt(factor, samples)

    async def session_closed(self, session_id: str) -> None:
        """It is written already."""
