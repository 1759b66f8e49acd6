"""Parts and regular expressions that are made when they are first used: a short conversation needs few of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, Generic, TypeVar, cast

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


class LazyPattern:
    """Stands for the compiled expression; a method is looked up there once and then found here."""

    def __init__(self, expression: str | bytes, flags: int = 0) -> None:
        self._expression = expression
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._expression, self._flags), name)
        setattr(self, name, found)
        return found


def compile_late(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, without its cost at import. Use its methods; the functions of `re` do not take it."""
    return cast("re.Pattern[AnyStr]", LazyPattern(expression, flags))
