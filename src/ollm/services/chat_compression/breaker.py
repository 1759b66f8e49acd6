"""Stops a compression that makes no room: trying again at every step would only cost the user time."""

from __future__ import annotations

MAX_TRIES = 2


class CompressionBreaker:
    """Open after so many compressions in a row that left the context over its trigger.

    Closed by one that made room, by `reset`, and when so much was said since that there may be something to fold."""

    def __init__(self) -> None:
        self._failures = 0
        self._used = 0

    @property
    def open(self) -> bool:
        return self._failures >= MAX_TRIES

    def record(self, *, made_room: bool, used: int) -> None:
        """`used` is how full the context was left."""
        self._failures = 0 if made_room else self._failures + 1
        self._used = used

    def allow_retry(self, used: int, worth: int) -> None:
        """One more try is worth it when `worth` tokens came since the last."""
        if self.open and used >= self._used + worth:
            self._failures = MAX_TRIES - 1

    def reset(self) -> None:
        """The user asked for compression, or the window changed."""
        self._failures = 0
