"""How fast the model writes. A piece is about a token: enough for a figure people glance at."""

from __future__ import annotations

from collections.abc import Callable


class OutputSpeedMeter:
    """`value` is that of the last answer, in tokens a second; 0 before there was one. `pieces` counts this answer's."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.value = 0.0
        self._now = now
        self._first: float | None = None
        self.pieces = 0

    def reset(self) -> None:
        self._first, self.pieces = None, 0

    def count(self) -> None:
        if self._first is None:
            self._first = self._now()
        self.pieces += 1

    def finish_answer(self) -> None:
        if self._first is not None and self.pieces > 5 and (seconds := self._now() - self._first) > 0.2:
            self.value = self.pieces / seconds
        self.reset()
