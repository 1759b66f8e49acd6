"""Texts of any size, told to be harmless and cut into pieces quickly."""

from __future__ import annotations

import re
from collections.abc import Iterator

SLICE = 1 << 20
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_ASCII_CONTROL = bytes({*range(32), 127} - {9, 10})


def is_plain(text: str) -> bool:
    """Whether there is nothing in it but printable characters, line ends and tabs."""
    if text.isascii():  # most texts are, and this is quicker to tell
        return len(text.encode("ascii").translate(None, _ASCII_CONTROL)) == len(text)
    return text.replace("\n", "").replace("\t", "").isprintable()


def visible(text: str) -> str:
    """The text with control characters other than line ends and tabs written as escapes."""
    return text if is_plain(text) else _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def slices(text: str) -> Iterator[str]:
    """A long text in pieces, cut behind a line end where there is one."""
    start = 0
    while len(text) - start > SLICE:
        end = text.rfind("\n", start, start + SLICE) + 1 or start + SLICE
        yield text[start:end]
        start = end
    yield text[start:] if start else text
