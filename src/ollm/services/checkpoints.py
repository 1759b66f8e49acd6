"""Checkpoints grow old: detailed, then medium, then compact as newer ones come; merged when they take too much (H).

Shortening needs no model: whole lines go, list by list from the end, and what goes stands in the archive under the
numbers a checkpoint cites.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ollm.domain.context import Checkpoint, CheckpointAge
from ollm.services.token_counting import TokenCounter

AGES: tuple[CheckpointAge, ...] = ("detailed", "medium", "compact")
SHARES: dict[CheckpointAge, float] = {"detailed": 1.0, "medium": 0.5, "compact": 0.2}
MEDIUM_AFTER, COMPACT_AFTER = 1, 3  # newer checkpoints
SMALLEST = 40  # tokens a checkpoint is never cut below
MERGED_SHARE = 0.5  # merging goes down to this share of the cap, so that it is not needed again at once
PINNED = ("user-messages", "goals")  # written by the engine, never aged


class Aged(msgspec.Struct, frozen=True):
    """The checkpoints as they stand now, and those that became shorter."""

    checkpoints: tuple[Checkpoint, ...]
    changed: tuple[Checkpoint, ...] = ()


class CheckpointManager:
    """Ages and merges; pure but for counting."""

    def __init__(self, counter: TokenCounter, summary_max_tokens: int = 1024) -> None:
        self._counter = counter
        self._full = summary_max_tokens

    def age(self, checkpoints: Sequence[Checkpoint], cap: int) -> Aged:
        """Each as old as the number of newer ones says; merged while all together take more than `cap` tokens."""
        pinned = [old for old in checkpoints if old.id in PINNED]
        rest = [old for old in checkpoints if old.id not in PINNED]
        aged = [self._at(old, _age(len(rest) - 1 - place)) for place, old in enumerate(rest)]
        if _tokens(pinned) + _tokens(aged) > cap:
            aged = self._merged(aged, int(cap * MERGED_SHARE) - _tokens(pinned))
        before = {id(old) for old in rest}
        return Aged((*pinned, *aged), tuple(new for new in aged if id(new) not in before))

    def _at(self, old: Checkpoint, age: CheckpointAge) -> Checkpoint:
        if AGES.index(age) <= AGES.index(old.age):
            return old
        size = min(self._full, old.tokens) if old.age == "detailed" else self._full
        return self._shortened(old, max(SMALLEST, int(size * SHARES[age])), age)

    def _merged(self, checkpoints: Sequence[Checkpoint], cap: int) -> list[Checkpoint]:
        """The oldest become one compact checkpoint until the rest fits; the newest is shortened last."""
        standing = list(checkpoints)
        while _tokens(standing) > cap and len(standing) > 1:
            first, second, *others = standing
            share = max(SMALLEST, min(cap - _tokens(others), cap) // 2)
            standing = [self._joined(first, second, share), *others]
        if standing and _tokens(standing) > cap:
            standing = [self._shortened(standing[0], max(SMALLEST, cap), "compact")]
        return standing

    def _joined(self, first: Checkpoint, second: Checkpoint, tokens: int) -> Checkpoint:
        together = msgspec.structs.replace(
            second,
            text="\n".join((*_lines(first.text), *_lines(second.text))),
            message_ids=tuple(sorted({*first.message_ids, *second.message_ids})),
            engine_written=first.engine_written and second.engine_written,
            tokens=first.tokens + second.tokens,
        )
        return self._shortened(together, tokens, "compact")

    def _shortened(self, old: Checkpoint, tokens: int, age: CheckpointAge) -> Checkpoint:
        text = shorter(old.text, tokens, self._counter)
        new = msgspec.structs.replace(old, text=text, age=age)
        return msgspec.structs.replace(new, tokens=self._counter.message(new.message))


def shorter(text: str, tokens: int, counter: TokenCounter) -> str:
    """Whole lines of a summary within so many tokens: the newest facts and the first lines under each heading last."""
    lines = _lines(text)
    ranked = sorted(range(len(lines)), key=lambda place: _rank(lines, place))
    kept: set[int] = set()
    left = tokens
    for place in ranked:
        cost = counter.text(lines[place]) + 1
        if cost <= left:
            kept.add(place)
            left -= cost
    if not kept and lines:
        return _clipped(lines[-1], tokens, counter)
    return "\n".join(line for place, line in enumerate(lines) if place in kept)


def _rank(lines: Sequence[str], place: int) -> tuple[int, int]:
    """Facts first, then line by line from the top of each heading, later headings before earlier ones."""
    if lines[place].startswith("Facts:"):
        return (0, -place)
    depth = 0
    while place - depth > 0 and not lines[place - depth].endswith(":"):
        depth += 1
    return (1 + depth, -place)


def _clipped(line: str, tokens: int, counter: TokenCounter) -> str:
    while counter.text(line) > tokens and len(line) > 8:
        line = line[: int(len(line) * 0.8)]
    return line


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _age(newer: int) -> CheckpointAge:
    if newer >= COMPACT_AFTER:
        return "compact"
    return "medium" if newer >= MEDIUM_AFTER else "detailed"


def _tokens(checkpoints: Sequence[Checkpoint]) -> int:
    return sum(old.tokens for old in checkpoints)
