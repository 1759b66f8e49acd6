"""A loop, as the user reads it."""

from __future__ import annotations

from typing import Literal

from ollm.domain.struct import Data

LoopType = Literal["repeated-tool", "repeated-output", "repeated-cycle", "repeated-text", "turn-limit"]
MAX_SHOWN_CHARS = 120


class LoopPattern(Data, frozen=True):
    """Which kind of loop, what repeats itself in words, and how often it was seen."""

    type: LoopType
    details: str
    count: int


def shorten_text(text: str) -> str:
    """Enough of a text to know it by, on one line."""
    line = " ".join(text[: 4 * MAX_SHOWN_CHARS].split())
    return line if len(line) <= MAX_SHOWN_CHARS else f"{line[:MAX_SHOWN_CHARS]}…"
