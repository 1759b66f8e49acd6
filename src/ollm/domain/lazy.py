"""A part that is built when it is first asked for: a short conversation never asks for most of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Part_co = TypeVar("Part_co", covariant=True)


class Lazy(Generic[Part_co]):
    """`build` is called once at most, by the first `get`."""

    def __init__(self, build: Callable[[], Part_co]) -> None:
        self._build = build
        self._parts: list[Part_co] = []

    def get(self) -> Part_co:
        if not self._parts:
            self._parts.append(self._build())
        return self._parts[0]

    @property
    def built(self) -> Part_co | None:
        """The part, if somebody has asked for it already."""
        return self._parts[0] if self._parts else None
