"""A file's lines, read once and forward, so that no file is ever held whole and several can read it side by side."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BUFFER_BYTES = 1 << 18
LONG_LINE_BYTES = 1 << 20


Line = tuple[int, int, bytes]
"""Where a line starts and ends, and the line with its end, which only the last of a file may lack. Of a long one that
cannot be an entry, or is longer than any that is asked for, only the beginning is kept."""


class _FilePosition(io.RawIOBase):
    """A place of its own in a file that is open already."""

    def __init__(self, descriptor: int, place: int) -> None:
        self._descriptor = descriptor
        self._place = place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = os.preadv(self._descriptor, [buffer], self._place)
        self._place += count
        return count

    def seek(self, offset: int, whence: int = 0) -> int:
        self._place = offset if whence == 0 else self._place + offset
        return self._place

    def tell(self) -> int:
        return self._place


def iter_lines(file: BinaryIO, place: int = 0, longest: int = sys.maxsize) -> Iterator[Line]:
    """The lines from `place` on. Moves nothing in `file`, which several may read at once."""
    if isinstance(file, io.BytesIO):
        source: BinaryIO = io.BytesIO(file.getbuffer())
        source.seek(place)
    else:
        source = io.BufferedReader(_FilePosition(file.fileno(), place), BUFFER_BYTES)
    while data := source.readline(LONG_LINE_BYTES):
        start, place = place, place + len(data)
        if len(data) == LONG_LINE_BYTES and not data.endswith(b"\n"):
            place = _find_line_end(source, place)
            if data.startswith(b"{") and place - start <= longest:
                source.seek(start)
                data = source.read(place - start)
            source.seek(place)
        yield start, place, data


def _find_line_end(source: BinaryIO, place: int) -> int:
    """Where the line that goes on at `place` ends, without keeping it."""
    while data := source.readline(LONG_LINE_BYTES):
        place += len(data)
        if data.endswith(b"\n"):
            break
    return place
