"""Texts of any size, made harmless and cut into pieces, quickly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MAX_SLICE_CHARS = 1 << 20
MIN_GATHERED_CHARS = 1 << 15
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?Z")
_ASCII_CONTROL = bytes({*range(32), 127} - {9, 10})


def is_plain(text: str) -> bool:
    """Whether there is nothing in it but printable characters and line ends."""
    if text.isascii():  # most texts are, and this is quicker to tell
        return len(text.encode("ascii").translate(None, _ASCII_CONTROL)) == len(text) and "\t" not in text
    return text.replace("\n", "").isprintable()


def format_time(stamp: str) -> str:
    """A stamp of a session as people read it; anything else as it is."""
    found = _STAMP.fullmatch(stamp)
    return f"{found[1]} {found[2]} UTC" if found else stamp


def gather_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """Small pieces together, so that what is done to each is done less often."""
    waiting: list[str] = []
    held = 0
    for piece in pieces:
        waiting.append(piece)
        held += len(piece)
        if held >= MIN_GATHERED_CHARS:
            yield "".join(waiting)
            waiting, held = [], 0
    yield "".join(waiting)


def slice_text(text: str) -> Iterator[str]:
    """A long text in pieces, cut behind a line end where there is one."""
    start = 0
    while len(text) - start > MAX_SLICE_CHARS:
        end = text.rfind("\n", start, start + MAX_SLICE_CHARS) + 1 or start + MAX_SLICE_CHARS
        yield text[start:end]
        start = end
    yield text[start:] if start else text
