"""A document in our own layout (see `layout`), read line by line. A damaged line costs what cannot be read in it."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
from collections.abc import Iterator
from typing import BinaryIO

from ollm.domain.messages import JsonObject
from ollm.domain.patterns import compile_late
from ollm.store.session_files.damage import MAX_BYTES, DamageReport
from ollm.store.session_files.layout import CLOSE, FIELDS, MIDDLE, OPEN
from ollm.store.session_files.lenient import is_deeper_than, is_valid_json, parse_object
from ollm.store.session_files.lines import Line, Range, iter_lines
from ollm.store.session_files.objects import TooDeepError, find_end, find_entries
from ollm.store.session_files.sections import CALL, MESSAGE, DocumentSections, OddLayoutError

_ENTRY = compile_late(rb'\{"(?:role|id)":.*\},?\n', re.DOTALL)
_MAX_HEAD_BYTES = 1 << 26
MAX_LINE_BYTES = 1 << 24  # bytes of a line that are held


class SessionDocument:
    """The entries of a document as bytes. `read` is how many bytes were gone through."""

    def __init__(self, file: BinaryIO, first: Line, damage: DamageReport) -> None:
        self.read = 0
        self._file = file
        self._damage = damage
        _, self._body, head = first
        self._only: tuple[Range, Range] | None = None
        self._calls_at: int | None = None  # where calls begin, once that is known
        self.head = self._parse_head(head)
        if not _is_closed(file):
            damage.note("the file is truncated")

    def open_sections(self) -> DocumentSections:
        """Where its entries stand. Raises `OddLayoutError` where they do not stand as we write them."""
        return DocumentSections(self._file)

    def narrow(self, messages: Range, calls: Range) -> None:
        """Read only what is between these places."""
        self._only = messages, calls

    def iter_messages(self) -> Iterator[bytes]:
        if self._only:
            yield from self._iter_between(*self._only[0])
            return
        last = self._body
        for start, data in self._iter_entries(self._body):
            if data.startswith(MESSAGE):
                yield data.rstrip(b",\n")
                last = start
            elif data == MIDDLE:
                self._calls_at = start if self._calls_at is None else self._calls_at
                return
            elif not data.startswith(CALL):
                yield data.rstrip(b",\n")
                last = start
            elif self._calls_at is None:
                self._calls_at = last  # the line in the middle is damaged, and the one before may hold a call too
        self._calls_at = last if self._calls_at is None else self._calls_at

    def iter_calls(self) -> Iterator[bytes]:
        if self._only:
            yield from self._iter_between(*self._only[1])
            return
        after_middle = False
        for _, data in self._iter_entries(self._find_calls() if self._calls_at is None else self._calls_at):
            if data == MIDDLE:
                after_middle = True
            elif after_middle or CALL in data:
                yield data.rstrip(b",\n")

    def _find_calls(self) -> int:
        """Where calls begin, for who asks before all messages were read."""
        with contextlib.suppress(OddLayoutError):
            return self.open_sections().middle
        last = self._body
        for start, end, data in iter_lines(self._file, last):
            if data == MIDDLE:
                return start
            if data.startswith(CALL) or end > MAX_BYTES:
                break
            last = start
        return last

    def _iter_between(self, place: int, until: int) -> Iterator[bytes]:
        for start, _, data in iter_lines(self._file, place):
            if start >= until:
                return
            yield data.rstrip(b",\n")

    def _iter_entries(self, place: int) -> Iterator[tuple[int, bytes]]:
        """The lines that may hold an entry, and the one in the middle; what else there is is told once a stretch."""
        strange = False
        before = b""
        for start, end, data in iter_lines(self._file, place, MAX_LINE_BYTES):
            if end > MAX_BYTES:
                return
            self.read = end
            entry, whole = data.startswith(b"{"), end - start == len(data)
            if not (entry and before.endswith(b",\n")) and before.startswith(b"{"):
                self._check_comma(before, data, start)
            before = data if whole else b""
            if not whole and (entry or _looks_like_entry(data)):
                yield from self._iter_inside(start, end)
            elif entry or data == MIDDLE:
                strange = False
                yield start, data
            elif data == CLOSE:
                self._note_rest(end)
                return
            elif _looks_like_entry(data):
                yield start, data
            elif not strange:
                strange = True
                self._damage.count_lost_entry(f"unreadable data at byte {start}")
        self._damage.note("the file is truncated")

    def _iter_inside(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """A line that is too long to be held: the entries in it, one by one from where they are."""
        data = memoryview(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))[:end]
        try:
            for count, (first, last) in enumerate(find_entries(data, start, lambda: self._damage.is_late(0))):
                if count or end - last > len(b",\n"):
                    self._damage.note(f"merged lines at byte {start}")
                yield first, bytes(data[first:last])
        except TooDeepError:
            self._damage.refuse_depth()

    def _check_comma(self, before: bytes, data: bytes, start: int) -> None:
        """Between two entries there is a comma, and behind the last there is none."""
        comma = before.endswith(b",\n")
        if comma != data.startswith(b"{") and data.startswith((b"{", b"]")):
            self._damage.note(f"a comma is {'too many' if comma else 'missing'} at byte {start}")

    def _note_rest(self, end: int) -> None:
        if os.fstat(self._file.fileno()).st_size > end:
            self._damage.note("extra data after the end of the file")

    def _parse_head(self, first: bytes) -> JsonObject:
        head = first.removesuffix(OPEN) + b"}"
        if is_deeper_than(head):
            self._damage.refuse_depth()
            return salvage_head(head)
        try:
            found = parse_object(head)
            if not is_valid_json(head):
                self._damage.note("the file header is not valid JSON and was read as well as it could be")
            elif "messages" in found or "toolCalls" in found or has_repeated_name(head):
                self._damage.note("the file header names something twice")
            return found
        except (ValueError, RecursionError):
            self._damage.count_lost_entry("the file header is damaged")
            return salvage_head(head)


def _looks_like_entry(data: bytes) -> bool:
    return MESSAGE in data or CALL in data


def _is_closed(file: BinaryIO) -> bool:
    """Whether the last bytes are what they should be: most of what goes wrong goes wrong there."""
    descriptor = file.fileno()
    return os.pread(descriptor, len(CLOSE), max(0, os.fstat(descriptor).st_size - len(CLOSE))) == CLOSE


def detect_own_layout(file: BinaryIO) -> Line | None:
    """The first line of a document in our layout, or None when it is in another."""
    found = iter_lines(file, longest=_MAX_HEAD_BYTES)
    first = next(found, None)
    if first is None or first[1] > _MAX_HEAD_BYTES or not first[2].endswith(b"\n"):
        return None
    if first[2].endswith(OPEN):
        return first
    second = next(found, None)
    return first if second and _ENTRY.fullmatch(second[2]) else None


def has_repeated_name(head: bytes) -> bool:
    """Whether an object in the head gives two values to one name: a reader of JSON sees the last of them only."""
    if all(head.count(f'"{name}":'.encode()) < 2 for name in ("title", *FIELDS)):
        return False
    repeated = False

    def take_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) < len(pairs)
        return found

    json.loads(head, object_pairs_hook=take_object, parse_int=str)
    return repeated


def salvage_head(text: bytes) -> JsonObject:
    """The fields of a damaged head that can still be read."""
    head: JsonObject = {}
    for name in FIELDS:
        place = text.find(f'"{name}":'.encode())
        start = place + len(name) + 3
        try:
            end = find_end(memoryview(text), start) if place >= 0 else None
            if end is not None and not is_deeper_than(text[start:end]):
                head[name] = parse_object(b'{"v":' + text[start:end] + b"}")["v"]
        except (ValueError, RecursionError, TooDeepError):
            continue
    return head
