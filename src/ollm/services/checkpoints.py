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
AGE_SHARES: dict[CheckpointAge, float] = {"detailed": 1.0, "medium": 0.5, "compact": 0.2}
MEDIUM_AFTER, COMPACT_AFTER = 1, 3  # newer checkpoints
MIN_CHECKPOINT_TOKENS = 40  # tokens a checkpoint is never cut below
MERGED_SHARE = 0.5  # merging goes down to this share of the cap, so that it is not needed again at once
PINNED_IDS = ("user-messages", "goals")  # written by the engine, never aged


class AgingResult(msgspec.Struct, frozen=True):
    """The checkpoints as they stand now, and those that became shorter."""

    checkpoints: tuple[Checkpoint, ...]
    changed: tuple[Checkpoint, ...] = ()


class CheckpointManager:
    """Ages and merges; pure but for counting."""

    def __init__(self, counter: TokenCounter, summary_max_tokens: int = 1024) -> None:
        self._counter = counter
        self._full = summary_max_tokens

    def age(self, checkpoints: Sequence[Checkpoint], cap: int) -> AgingResult:
        """Each as old as the number of newer ones says; merged while all together take more than `cap` tokens."""
        pinned = [old for old in checkpoints if old.id in PINNED_IDS]
        rest = [old for old in checkpoints if old.id not in PINNED_IDS]
        aged = [self._shorten_to_age(old, _pick_age(len(rest) - 1 - place)) for place, old in enumerate(rest)]
        if _sum_tokens(pinned) + _sum_tokens(aged) > cap:
            aged = self._merge_oldest(aged, int(cap * MERGED_SHARE) - _sum_tokens(pinned))
        before = {id(old) for old in rest}
        return AgingResult((*pinned, *aged), tuple(new for new in aged if id(new) not in before))

    def _shorten_to_age(self, old: Checkpoint, age: CheckpointAge) -> Checkpoint:
        if AGES.index(age) <= AGES.index(old.age):
            return old
        size = min(self._full, old.tokens) if old.age == "detailed" else self._full
        return self._shorten_checkpoint(old, max(MIN_CHECKPOINT_TOKENS, int(size * AGE_SHARES[age])), age)

    def _merge_oldest(self, checkpoints: Sequence[Checkpoint], cap: int) -> list[Checkpoint]:
        """The oldest become one compact checkpoint until the rest fits; the newest is shortened last."""
        standing = list(checkpoints)
        while _sum_tokens(standing) > cap and len(standing) > 1:
            first, second, *others = standing
            share = max(MIN_CHECKPOINT_TOKENS, min(cap - _sum_tokens(others), cap) // 2)
            standing = [self._join_pair(first, second, share), *others]
        if standing and _sum_tokens(standing) > cap:
            standing = [self._shorten_checkpoint(standing[0], max(MIN_CHECKPOINT_TOKENS, cap), "compact")]
        return standing

    def _join_pair(self, first: Checkpoint, second: Checkpoint, tokens: int) -> Checkpoint:
        together = msgspec.structs.replace(
            second,
            text="\n".join((*_split_lines(first.text), *_split_lines(second.text))),
            message_ids=tuple(sorted({*first.message_ids, *second.message_ids})),
            engine_written=first.engine_written and second.engine_written,
            tokens=first.tokens + second.tokens,
        )
        return self._shorten_checkpoint(together, tokens, "compact")

    def _shorten_checkpoint(self, old: Checkpoint, tokens: int, age: CheckpointAge) -> Checkpoint:
        text = shorten_summary(old.text, tokens, self._counter)
        new = msgspec.structs.replace(old, text=text, age=age)
        return msgspec.structs.replace(new, tokens=self._counter.count_message(new.message))


def shorten_summary(text: str, tokens: int, counter: TokenCounter) -> str:
    """Whole lines of a summary within so many tokens: the newest facts and the first lines under each heading last."""
    lines = _split_lines(text)
    ranked = sorted(range(len(lines)), key=lambda place: _rank_line(lines, place))
    kept: set[int] = set()
    left = tokens
    for place in ranked:
        cost = counter.count_text(lines[place]) + 1
        if cost <= left:
            kept.add(place)
            left -= cost
    if not kept and lines:
        return _clip_line(lines[-1], tokens, counter)
    return "\n".join(line for place, line in enumerate(lines) if place in kept)


def _rank_line(lines: Sequence[str], place: int) -> tuple[int, int]:
    """Facts first, then line by line from the top of each heading, later headings before earlier ones."""
    if lines[place].startswith("Facts:"):
        return (0, -place)
    depth = 0
    while place - depth > 0 and not lines[place - depth].endswith(":"):
        depth += 1
    return (1 + depth, -place)


def _clip_line(line: str, tokens: int, counter: TokenCounter) -> str:
    while counter.count_text(line) > tokens and len(line) > 8:
        line = line[: int(len(line) * 0.8)]
    return line


def _split_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _pick_age(newer: int) -> CheckpointAge:
    if newer >= COMPACT_AFTER:
        return "compact"
    return "medium" if newer >= MEDIUM_AFTER else "detailed"


def _sum_tokens(checkpoints: Sequence[Checkpoint]) -> int:
    return sum(old.tokens for old in checkpoints)
