"""Ids as people read and type them: as many characters as tell one from the others, as git does it."""

from __future__ import annotations

from collections.abc import Iterable

MIN_SHORT_ID_CHARS = 8


def shorten_ids(ids: Iterable[str]) -> dict[str, str]:
    """Each id with its short form, which starts no other of them."""
    ordered = sorted(set(ids))
    short = {}
    for place, found in enumerate(ordered):
        neighbours = ordered[max(place - 1, 0) : place] + ordered[place + 1 : place + 2]
        shared = max((_count_shared(found, other) for other in neighbours), default=0)
        short[found] = found[: max(MIN_SHORT_ID_CHARS, shared + 1)]
    return short


def _count_shared(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))
