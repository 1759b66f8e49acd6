"""Text measured in terminal cells: wide characters take two."""

from __future__ import annotations

from collections.abc import Iterable

from prompt_toolkit.utils import get_cwidth

CHOICE_GAP = " · "


def truncate_cells(text: str, cells: int) -> str:
    if text.isascii():
        return text[:cells]
    used = 0
    for place, letter in enumerate(text):
        used += get_cwidth(letter)
        if used > cells:
            return text[:place]
    return text


def shorten_line(text: str, cells: int) -> str:
    """Shorten a line to fit, and mark the cut. Cuts after a word if one ends in the second half."""
    short = truncate_cells(text, cells)
    if short == text:
        return text
    short = truncate_cells(text, cells - 1)
    head = short if text[len(short)] == " " else short.rpartition(" ")[0]
    return f"{(head if len(head) > len(short) // 2 else short).rstrip()}…"


def pad_cells(text: str, cells: int) -> str:
    short = truncate_cells(text, cells)
    return short + " " * (cells - get_cwidth(short))


def join_fitting(parts: Iterable[str], cells: int, shown: int = 1) -> str:
    """Join as many parts as fit. The first ones (`shown`) are cut rather than left out, a path at its beginning."""
    line, *more = parts
    if get_cwidth(line) > cells:
        return f"…{line[-cells + 1 :]}" if line[0] in "/~" else f"{line[: cells - 1]}…"
    for number, part in enumerate(more, start=1):
        if get_cwidth(line + CHOICE_GAP + part) > cells:
            room = cells - get_cwidth(line) - len(CHOICE_GAP) - 1
            return f"{line}{CHOICE_GAP}{truncate_cells(part, room)}…" if number < shown and room > 1 else line
        line += CHOICE_GAP + part
    return line


def wrap_choices(choices: str, width: int) -> str:
    """Wrap choices onto as many lines as needed, without breaking a choice unless it is longer than a line."""
    lines: list[str] = []
    for choice in choices.split(CHOICE_GAP):
        if lines and get_cwidth(lines[-1]) + len(CHOICE_GAP) + get_cwidth(choice) <= width:
            lines[-1] += CHOICE_GAP + choice
        else:
            lines += wrap_words(choice, width)
    return "\n".join(lines)


def wrap_words(text: str, width: int, indent: str = "") -> list[str]:
    """Wrap a text between words. A word that is longer than a line is broken."""
    lines = [indent]
    for word in text.split(" "):
        beside = lines[-1] if lines[-1] == indent else f"{lines[-1]} "
        if get_cwidth(beside) + get_cwidth(word) <= width or lines[-1] == indent:
            lines[-1] = beside + word
        else:
            lines.append(indent + word)
    return lines
