"""How much of a prompt the server has read before: a hash for each part of a request, compared with the last one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from ollm.domain.messages import PromptMessage
from ollm.domain.struct import Data

KEPT = 200


class Part(Data, frozen=True):
    """A named piece of a request, with what it costs."""

    name: str
    message: PromptMessage
    tokens: int


class LedgerEntry(Data, frozen=True):
    """One request: the share of the previous one that stands unchanged at the front of it, and what broke the rest."""

    reused_share: float
    reused_tokens: int
    tokens: int
    broken_by: str | None = None


class PrefixLedger:
    """The newest entries, and the hashes of the last request. A message object is hashed once."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []
        self._last: list[tuple[str, bytes, int]] = []
        self._digests: dict[int, tuple[PromptMessage, bytes]] = {}

    def record(self, parts: Sequence[Part], cause: str | None = None) -> LedgerEntry:
        """`cause` names a step that was meant to change the front, such as a compression or a change of mode."""
        known, self._digests = self._digests, {}
        now = [(part.name, self._digest(part.message, known), part.tokens) for part in parts]
        same = _common(self._last, now)
        broken = None if same == len(self._last) else cause or self._last[same][0]
        entry = LedgerEntry(
            reused_share=_share(sum(tokens for _, _, tokens in self._last[:same]), self._last),
            reused_tokens=sum(tokens for _, _, tokens in now[:same]),
            tokens=sum(tokens for _, _, tokens in now),
            broken_by=broken,
        )
        self._last = now
        self.entries = [*self.entries[1 - KEPT :], entry]
        return entry

    @property
    def last(self) -> LedgerEntry | None:
        return self.entries[-1] if self.entries else None

    def _digest(self, message: PromptMessage, known: dict[int, tuple[PromptMessage, bytes]]) -> bytes:
        held = known.get(id(message))
        digest = held[1] if held and held[0] is message else _hash(message)
        self._digests[id(message)] = (message, digest)
        return digest


def _hash(message: PromptMessage) -> bytes:
    sent = msgspec.structs.replace(message, sources=())
    return hashlib.blake2b(repr(sent).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _common(before: Sequence[tuple[str, bytes, int]], after: Sequence[tuple[str, bytes, int]]) -> int:
    same = 0
    for old, new in zip(before, after, strict=False):
        if old[1] != new[1]:
            break
        same += 1
    return same


def _share(reused: int, before: Sequence[tuple[str, bytes, int]]) -> float:
    total = sum(tokens for _, _, tokens in before)
    return reused / total if total else 1.0
