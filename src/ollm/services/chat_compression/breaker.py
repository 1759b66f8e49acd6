"""Stops a compression that makes no room: trying again at every step would only cost the user time."""

from __future__ import annotations

TRIES = 2


class CompressionBreaker:
    """Open after so many compressions in a row that left the context over its trigger; closed by success or `reset`."""

    def __init__(self, tries: int = TRIES) -> None:
        self._tries = tries
        self._failures = 0

    @property
    def open(self) -> bool:
        return self._failures >= self._tries

    def record(self, *, made_room: bool) -> None:
        self._failures = 0 if made_room else self._failures + 1

    def reset(self) -> None:
        """The user sent something new, asked for compression, or the window changed."""
        self._failures = 0
