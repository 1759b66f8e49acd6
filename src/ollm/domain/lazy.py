"""Lazily built parts, regular expressions and decoders: a short conversation needs few of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, AnyStr, Generic, TypeVar, cast

if TYPE_CHECKING:
    import msgspec

Part_co = TypeVar("Part_co", covariant=True)
Decoded = TypeVar("Decoded")


class Lazy(Generic[Part_co]):
    """A lazily built part: the first `get` calls `build`, at most once."""

    def __init__(self, build: Callable[[], Part_co]) -> None:
        self._build = build
        self._parts: list[Part_co] = []

    def get(self) -> Part_co:
        if not self._parts:
            self._parts.append(self._build())
        return self._parts[0]

    @property
    def built(self) -> Part_co | None:
        """The part, or None if it has not been built yet."""
        return self._parts[0] if self._parts else None


class LateObject:
    """A proxy that builds its object on first attribute access and caches the attribute."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._make(), name)
        setattr(self, name, found)
        return found


def compile_late(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Compile a pattern on first use instead of at import. Use its methods; the functions of `re` do not accept it."""
    return cast("re.Pattern[AnyStr]", LateObject(lambda: re.compile(expression, flags)))


def decode_late(kind: type[Decoded]) -> msgspec.json.Decoder[Decoded]:
    """Create a `msgspec.json.Decoder` on first use, without the cost of its types at import."""
    import msgspec

    return cast("msgspec.json.Decoder[Decoded]", LateObject(lambda: msgspec.json.Decoder(kind)))
