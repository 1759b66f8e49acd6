"""The user's messages in full, by number, whatever became of them in the context."""

from __future__ import annotations

from collections.abc import Callable, Mapping

LoadUserMessages = Callable[[], Mapping[int, str]]


class UserMessages:
    """Those of before a resume are read from the archive when they are first asked for."""

    def __init__(self, earlier: LoadUserMessages | None = None) -> None:
        self._earlier = earlier
        self._said: dict[int, str] = {}

    def add_message(self, number: int, text: str) -> None:
        self._said[number] = text

    def load_all(self) -> dict[int, str]:
        if self._earlier:
            self._said = {**self._earlier(), **self._said}
            self._earlier = None
        return dict(self._said)
