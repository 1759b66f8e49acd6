"""Unified diffs as rows with line numbers, and the words that differ between two similar lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Literal

from ollm.domain.struct import Data

MAX_MARKED_WORDS = 200
MIN_LIKENESS = 0.5  # Less similar lines are shown without marked words.
Span = tuple[int, int]
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class DiffRow(Data, frozen=True):
    """One row of the view: a line before and after, or None if that side has no line; numbers count from 1."""

    kind: Literal["same", "change", "gap", "head", "note"]
    before: str | None = None
    after: str | None = None
    old: int = 0
    new: int = 0


def parse_diff(diff: str) -> Iterator[DiffRow]:
    """Yield the rows of a unified diff. Removed and added lines of one change are side by side."""
    old = new = left = 0  # This hunk still has `left` lines, counted on both sides.
    gone: list[str] = []
    come: list[str] = []

    def change() -> Iterator[DiffRow]:
        nonlocal old, new
        for before, after in zip_longest(gone, come):
            yield DiffRow(kind="change", before=before, after=after, old=old, new=new)
            old, new = old + (before is not None), new + (after is not None)
        gone.clear()
        come.clear()

    for line in diff.removesuffix("\n").split("\n"):
        if line.startswith("-") and not (line.startswith("--- ") and left <= 0):
            if come:
                yield from change()
            gone.append(line[1:])
            left -= 1
        elif line.startswith("+") and not (line.startswith("+++ ") and left <= 0):
            come.append(line[1:])
            left -= 1
        else:
            yield from change()
            if found := _HUNK.match(line):
                old, new = int(found[1]), int(found[3])
                left = int(found[2] or 1) + int(found[4] or 1)
                yield DiffRow(kind="gap", before=line)
            elif (line.startswith(" ") and (old or new)) or (not line and left > 0):
                yield DiffRow(kind="same", before=line[1:], after=line[1:], old=old, new=new)
                old, new, left = old + 1, new + 1, left - 2
            else:
                yield DiffRow(kind="note" if line.startswith("\\") else "head", before=line)
    yield from change()


def compare_words(before: str, after: str) -> tuple[list[Span], list[Span]]:
    """Find the words that differ between two lines. Returns nothing if the lines are not similar."""
    from difflib import SequenceMatcher

    left, right = re.findall(r"\w+|\s+|.", before), re.findall(r"\w+|\s+|.", after)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if max(len(left), len(right)) > MAX_MARKED_WORDS or matcher.ratio() < MIN_LIKENESS:
        return [], []
    changed = [opcode for opcode in matcher.get_opcodes() if opcode[0] != "equal"]
    return (
        [_measure_span(left, first, last) for _, first, last, _, _ in changed if last > first],
        [_measure_span(right, first, last) for _, _, _, first, last in changed if last > first],
    )


def _measure_span(words: list[str], first: int, last: int) -> Span:
    start = len("".join(words[:first]))
    return start, start + len("".join(words[first:last]))
