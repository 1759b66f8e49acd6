"""A session's title: the first sentence the person wrote, not what they pasted around it (W)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ollm.domain.messages import Message

MAX_TITLE_CHARS = 80
MAX_READ_CHARS = 20_000
MIN_SENTENCE_CHARS = 10
MIN_LETTERS = 0.75  # share of letters and blanks in a line of prose
_FENCES = ("```", "~~~")
_NOT_PROSE = (  # compiled when there is more than one line: most messages are one
    r"Traceback |File \"|at [\w.$<]+[(:]|(import|from) \S+( import .*)?$|commit [0-9a-f]{7,}|diff --git "
    r"|(def|class|return|const|let|var|function|public|private) .*[:;({=.]|.*[;{}]$|\w+(Error|Exception)\b"
    r"|(INFO|DEBUG|WARN|WARNING|ERROR|FATAL|E|W)\b[ :\]]"
)
_SENTENCE_ENDS = (". ", "! ", "? ", "。", "！", "？")


def make_title(message: Message) -> str:
    """The first sentence of its first line of prose, else its first line, cut."""
    lines = [line.strip() for line in message.text[:MAX_READ_CHARS].splitlines() if line.strip()]
    prose = lines[0] if len(lines) == 1 else next(filter(_is_prose, _iter_outside_code(lines)), "")
    return _shorten_line(_take_sentence(prose) if prose else next(iter(lines), ""))


def _iter_outside_code(lines: list[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        if line.startswith(_FENCES):
            inside = not inside
        elif not inside and not line.startswith((">", "|")):
            yield line


def _is_prose(line: str) -> bool:
    """Whether a person would have typed it: it begins with a letter and is mostly words."""
    if not line[0].isalpha() or re.match(_NOT_PROSE, line):
        return False
    written = sum(letter.isalpha() or letter == " " for letter in line)
    return written >= MIN_LETTERS * len(line) and (" " in line or not line.isascii())


def _take_sentence(line: str) -> str:
    ends = [place + 1 for mark in _SENTENCE_ENDS if (place := line.find(mark, MIN_SENTENCE_CHARS)) >= 0]
    return line[: min(ends)] if ends else line


def _shorten_line(line: str) -> str:
    """Cut between two words where there is a place to."""
    if len(line) <= MAX_TITLE_CHARS:
        return line
    cut = line[: MAX_TITLE_CHARS - 1]
    head, blank, _ = cut.rpartition(" ")
    return f"{head if blank and len(head) > MAX_TITLE_CHARS // 2 else cut}".rstrip() + "…"
