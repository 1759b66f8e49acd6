"""Marks in a long journal: from each of them on it can be read without what is before. Found from its end."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from ollm.domain.messages import JsonObject
from ollm.store.session_files import journal

_RECORD = b'{"at":"'
_MARK = b'","mark":{'
_STAMP_CHARS = len("2026-01-27T10:00:00.000Z")
_BLOCK_BYTES = 1 << 18
_MARK_BYTES = 1 << 12  # of most marks
MAX_SEARCHED_BYTES = 32 << 20  # from the end back; without a mark there all of a journal is read


MARK_EVERY_BYTES = 1 << 18
MARK_EVERY_MARKS = 8  # and no more of a journal than one part in so many is marks


class PlacedMark(NamedTuple):
    """A mark and where its line starts."""

    place: int
    mark: journal.JournalMark


class MarkSchedule:
    """When a journal that is written gets its next mark, and what that says of calls."""

    def __init__(self) -> None:
        self._place = -1  # of the last mark
        self.next = MARK_EVERY_BYTES  # how long the journal is when the next one is due
        self._calls = 0

    def restart(self) -> None:
        """The journal begins anew."""
        self._place, self.next = -1, MARK_EVERY_BYTES

    def continue_journal(self, path: Path, calls: int, document: str) -> None:
        """Go on with a journal that is there, after so many calls. Where its marks are not about this document,
        as in a copy, the next one is due at once."""
        self.restart()
        self._calls = calls
        with contextlib.suppress(OSError), path.open("rb") as file:
            if last := next(iter_marks(file), None):
                due = last.place + MARK_EVERY_BYTES if is_same_document(last.mark.document, document) else 0
                self._place, self.next = last.place, due

    def note_call(self, call_id: str) -> None:
        self._calls = max(self._calls, read_call_number(call_id))

    def make_line(self, place: int, at: str, document: str, head: JsonObject, numbers: tuple[int, int]) -> bytes:
        """The line of a mark that is to be at `place`."""
        count, last = numbers
        mark = journal.JournalMark(
            previous=self._place, document=document, head=head, count=count, last=last, calls=self._calls
        )
        line = journal.encode_line(journal.JournalRecord(at=at, mark=mark))
        self._place, self.next = place, place + max(MARK_EVERY_BYTES, len(line) * MARK_EVERY_MARKS)
        return line


def is_marked(path: Path) -> bool:
    """Whether a journal is long enough to have marks."""
    try:
        return path.lstat().st_size >= MARK_EVERY_BYTES
    except OSError:
        return False


def is_same_document(marked: str, found: str) -> bool:
    """Whether two stamps (inode, size, time) are one document's; a copy that kept its time is the same one."""
    return marked.partition(",")[2] == found.partition(",")[2] != ""


def read_call_number(call_id: str) -> int:
    """The number in a call's id of ours, else 0."""
    number = call_id[1:] if call_id[:1] == "c" else ""
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0


def iter_marks(file: BinaryIO) -> Iterator[PlacedMark]:
    """The marks of a journal, newest first, reading little more than themselves."""
    found = None if isinstance(file, io.BytesIO) else _find_last(file.fileno())
    while found:
        yield found
        previous = found.mark.previous
        found = _read_mark(file.fileno(), previous) if 0 <= previous < found.place else None


def _find_last(descriptor: int) -> PlacedMark | None:
    size = os.fstat(descriptor).st_size
    end, least = size if size >= MARK_EVERY_BYTES else 0, max(0, size - MAX_SEARCHED_BYTES)
    reach = len(_RECORD) + _STAMP_CHARS + len(_MARK)
    while end > least:
        start = max(0, end - _BLOCK_BYTES)
        block = os.pread(descriptor, _BLOCK_BYTES + reach, start)
        for place in _iter_candidates(block, start):
            if found := _read_mark(descriptor, place):
                return found
        end = start
    return None


def _iter_candidates(block: bytes, start: int) -> Iterator[int]:
    """Where lines begin that look like a mark, last first."""
    before = len(_RECORD) + _STAMP_CHARS
    place = block.rfind(_MARK)
    while place >= 0:
        if place >= before and block[place - before :].startswith(_RECORD):
            yield start + place - before
        place = block.rfind(_MARK, 0, place)


def _read_mark(descriptor: int, place: int) -> PlacedMark | None:
    """The mark on the line that begins here; None when no line does, or it holds none."""
    if place and os.pread(descriptor, 1, place - 1) != b"\n":
        return None
    line = b""
    while b"\n" not in line:
        piece = os.pread(descriptor, max(_MARK_BYTES, len(line)), place + len(line))
        if not piece:
            return None
        line += piece
    try:
        record = journal.parse_record(line.partition(b"\n")[0])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return PlacedMark(place, record.mark) if record.mark else None
