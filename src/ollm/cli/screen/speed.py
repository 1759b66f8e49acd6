"""How fast the model writes. A piece of the stream counts as a token: enough for a figure people glance at."""

from __future__ import annotations

from collections.abc import Callable


class OutputSpeedMeter:
    """`value` is that of the last answer, in tokens a second; 0 before there was one. `tokens` counts this answer's."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.value = 0.0
        self._now = now
        self._first: float | None = None
        self.tokens = 0

    def reset(self) -> None:
        self._first, self.tokens = None, 0

    def count(self) -> None:
        if self._first is None:
            self._first = self._now()
        self.tokens += 1

    def finish_answer(self) -> None:
        if self._first is not None and self.tokens > 5 and (seconds := self._now() - self._first) > 0.2:
            self.value = self.tokens / seconds
        self.reset()
