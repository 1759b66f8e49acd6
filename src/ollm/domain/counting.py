"""Counts in words: a number with its noun, one of them or many."""

from __future__ import annotations


def format_count(count: int, noun: str, plural: str = "") -> str:
    """`1 file`, `1,204 files`; `plural` where an s does not make it."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
