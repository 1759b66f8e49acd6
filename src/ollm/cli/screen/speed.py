"""How fast the model writes. A piece is about a token: enough for a figure people glance at."""

from __future__ import annotations

from collections.abc import Callable


class OutputSpeedMeter:
    """`value` is that of the last answer, in tokens a second; 0 before there was one."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.value = 0.0
        self._now = now
        self._first: float | None = None
        self._pieces = 0

    def reset(self) -> None:
        self._first, self._pieces = None, 0

    def count(self) -> None:
        if self._first is None:
            self._first = self._now()
        self._pieces += 1

    def finish_answer(self) -> None:
        if self._first is not None and self._pieces > 5 and (seconds := self._now() - self._first) > 0.2:
            self.value = self._pieces / seconds
        self.reset()
