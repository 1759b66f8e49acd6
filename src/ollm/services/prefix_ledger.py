"""Measure how much of a prompt the server has read before, by comparing each request with the last one."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import msgspec

from ollm.domain.messages import PromptMessage, count_same_objects
from ollm.domain.struct import Data

MAX_ENTRIES = 200
_read_tokens = attrgetter("tokens")


class PrefixPart(Data, frozen=True):
    """A named piece of a request, with what it costs."""

    name: str
    message: PromptMessage
    tokens: int


class LedgerEntry(Data, frozen=True):
    """One request: the share of the previous one that is unchanged at the front of it, and what broke the rest."""

    reused_share: float
    reused_tokens: int
    tokens: int
    broken_by: str | None = None


class PrefixLedger:
    """The newest entries, and the parts of the last request. A part that is the same object costs next to nothing."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []
        self._last: Sequence[PrefixPart] = ()
        self._last_tokens = 0

    def record(self, parts: Sequence[PrefixPart], cause: str | None = None) -> LedgerEntry:
        """`cause` names a step that was meant to change the front, such as a compression or a change of mode."""
        before, same = self._last, _count_common(self._last, parts)
        whole = same == len(before)
        kept = self._last_tokens if whole else _sum_tokens(before[:same])
        reused = _sum_tokens(parts[:same])
        entry = LedgerEntry(
            reused_share=kept / (self._last_tokens or 1) if before else 1.0,
            reused_tokens=reused,
            tokens=reused + _sum_tokens(parts[same:]),
            broken_by=None if whole else cause or before[same].name,
        )
        self._last, self._last_tokens = parts, entry.tokens
        self.entries = [*self.entries[1 - MAX_ENTRIES :], entry]
        return entry

    @property
    def last(self) -> LedgerEntry | None:
        return self.entries[-1] if self.entries else None


def _count_common(before: Sequence[PrefixPart], after: Sequence[PrefixPart]) -> int:
    same = count_same_objects(before, after)
    for old, new in zip(before[same:], after[same:], strict=False):
        if old is not new and not _sends_the_same(old.message, new.message):
            break
        same += 1
    return same


def _sends_the_same(old: PromptMessage, new: PromptMessage) -> bool:
    """Return True if two messages are sent identically; their origin is not sent."""
    return old is new or msgspec.structs.replace(old, sources=()) == msgspec.structs.replace(new, sources=())


def _sum_tokens(parts: Sequence[PrefixPart]) -> int:
    return sum(map(_read_tokens, parts))
