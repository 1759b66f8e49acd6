"""Text by the cells it takes on a terminal: wide characters take two."""

from __future__ import annotations

from prompt_toolkit.utils import get_cwidth

CHOICE_GAP = " · "


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


def wrap_choices(choices: str, width: int, indent: str = "") -> str:
    """The choices on as many lines as they need, broken between two of them; one that is longer than a line, between
    its words."""
    lines: list[str] = []
    for choice in choices.split(CHOICE_GAP):
        if lines and get_cwidth(lines[-1]) + len(CHOICE_GAP) + get_cwidth(choice) <= width:
            lines[-1] += CHOICE_GAP + choice
        else:
            lines += wrap_words(choice, width, indent)
    return "\n".join(lines)


def wrap_words(text: str, width: int, indent: str = "") -> list[str]:
    """A text as lines that fit, broken between words; a word that is longer than a line is broken where it must."""
    lines = [indent]
    for word in text.split(" "):
        beside = lines[-1] if lines[-1] == indent else f"{lines[-1]} "
        if get_cwidth(beside) + get_cwidth(word) <= width or lines[-1] == indent:
            lines[-1] = beside + word
        else:
            lines.append(indent + word)
    return lines
