"""Text by the cells it takes on a terminal: wide characters take two."""

from __future__ import annotations

from prompt_toolkit.utils import get_cwidth


def truncate_cells(text: str, cells: int) -> str:
    """As much of a line as fits."""
    if len(text) <= cells and text.isascii():
        return text
    if text.isascii():
        return text[:cells]
    taken = 0
    for place, letter in enumerate(text):
        taken += get_cwidth(letter)
        if taken > cells:
            return text[:place]
    return text


def shorten_line(text: str, cells: int) -> str:
    """A line that fits, cut behind a word where one ends in its second half, with a mark that it was cut."""
    short = truncate_cells(text, cells)
    if short == text:
        return text
    short = truncate_cells(text, cells - 1)
    head = short if text[len(short)] == " " else short.rpartition(" ")[0]
    return f"{(head if len(head) > len(short) // 2 else short).rstrip()}…"


def pad_cells(text: str, cells: int) -> str:
    """Exactly so many cells: cut, or filled with blanks."""
    short = truncate_cells(text, cells)
    return short + " " * (cells - get_cwidth(short))
