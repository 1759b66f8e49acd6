"""A document in our own layout (see `layout`), read line by line. A damaged line costs what cannot be read in it."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

import msgspec

from ollm.domain.messages import JsonObject
from ollm.domain.patterns import compile_late
from ollm.store.session_files.files import MAX_BYTES, DamageReport, Line, Range, iter_lines
from ollm.store.session_files.journal import encode_json
from ollm.store.session_files.lenient import (
    TooDeepError,
    find_end,
    find_entries,
    is_deeper_than,
    is_valid_json,
    parse_object,
)

OPEN = b',"messages":[\n'
MIDDLE = b'],"toolCalls":[\n'
CLOSE = b"]}\n"
FIELDS = ("sessionId", "startTime", "lastActivity", "model", "provider", "metadata")


def iter_document(head: JsonObject, messages: Iterable[bytes], calls: Iterable[bytes]) -> Iterator[bytes]:
    """The document's bytes, part by part."""
    yield from join_document(encode_head(head), messages, calls)


def encode_head(head: JsonObject) -> bytes:
    """The fields of a document besides its messages and calls, in their order, as one JSON object."""
    ordered = {name: head[name] for name in FIELDS if name in head}
    ordered |= {name: value for name, value in head.items() if name not in ("messages", "toolCalls", *ordered)}
    return encode_json(ordered)


def join_document(head: bytes, messages: Iterable[bytes], calls: Iterable[bytes]) -> Iterator[bytes]:
    """The document's bytes from its encoded head and the lines of its entries."""
    yield head[:-1] + OPEN
    yield from _iter_lines(messages)
    yield MIDDLE
    yield from _iter_lines(calls)
    yield CLOSE


def _iter_lines(items: Iterable[bytes]) -> Iterator[bytes]:
    first = True
    for item in items:
        if not first:
            yield b",\n"
        yield item
        first = False
    if not first:
        yield b"\n"


MAX_LINE_BYTES = 1 << 26
_USER = b'{"role":"user"'
MESSAGE = b'{"role":'  # how we write a message's line
CALL = b'{"id":"'  # how a call's line starts and a message's never does


class OddLayoutError(Exception):
    """The document is not laid out as we write it, and must be read whole."""


class _Message(msgspec.Struct):
    id: int
    role: str = ""


class _Call(msgspec.Struct, rename="camel"):
    id: str
    message_id: int


_section_message_decoder = msgspec.json.Decoder(_Message)
_section_call_decoder = msgspec.json.Decoder(_Call)


class DocumentSections:
    """Raises `OddLayoutError` wherever a line is not what it should be. `block` bytes are read through, not halved."""

    def __init__(self, file: BinaryIO, block: int = 64 * 1024) -> None:
        self._file = file
        self._block = block
        file.seek(0)
        self._messages = len(self._read_line())
        self._end = file.seek(0, 2) - len(CLOSE)
        if self._end > MAX_BYTES:
            raise OddLayoutError
        if self._end < self._messages or self._read_lines(self._end, self._end + len(CLOSE)) != [CLOSE]:
            raise OddLayoutError
        self.middle = self._find_first(self._messages, self._end, _is_behind_messages)
        self._calls = self.middle + len(MIDDLE)
        if self._read_lines(self.middle, self._calls) != [MIDDLE]:
            raise OddLayoutError

    def find_messages(self, after: int, before: int | None = None) -> tuple[int, int]:
        """From where to where the messages between two numbers are."""

        def find_behind(number: int) -> int:
            return self._find_first(self._messages, self.middle, lambda line: read_section_number(line) > number)

        return find_behind(after), find_behind(before - 1) if before else self.middle

    def find_calls(self, after: int, before: int | None = None) -> tuple[int, int]:
        """From where to where the calls of the messages between two numbers are."""

        def find_behind(number: int) -> int:
            return self._find_first(self._calls, self._end, lambda line: _parse_call(line).message_id > number)

        return find_behind(after), find_behind(before - 1) if before else self._end

    def find_beginning(self, number: int, least: int) -> int:
        """A number not over `number`, which a message of the user's follows, and `least` messages where there are."""
        newest = self._read_newest(self._messages, self.middle)
        last = read_section_number(newest[-1]) if newest else 0
        wanted, step = min(number, last - least), least
        while wanted > 0 and step < 2 * wanted:
            lines = self._read_lines(*self.find_messages(wanted - step, wanted + 2))
            asked = next((line for line in reversed(lines) if _is_user_message(line)), None)
            if asked:
                return read_section_number(asked) - 1
            step *= 2
        return 0

    def list_newest_calls(self) -> list[str]:
        """The ids of the last few calls there are."""
        return [_parse_call(line).id for line in self._read_newest(self._calls, self._end)]

    def _find_first(self, low: int, end: int, is_behind: Callable[[bytes], bool]) -> int:
        """The place of the first line that `is_behind` the one looked for; all that follow it are."""
        high = end
        while high - low > self._block:
            half = (low + high) // 2
            self._file.seek(half - 1)
            place = half - 1 + len(self._read_line())
            line = self._read_line() if place < high else b""
            if place >= high or is_behind(line):
                high = half
            else:
                low = place + len(line)
        self._file.seek(low)
        while low < end and not is_behind(line := self._read_line()):
            low += len(line)
        return low

    def _read_line(self) -> bytes:
        """The next line; one without end is a hole in the file, and no entry."""
        line = self._file.readline(MAX_LINE_BYTES)
        if len(line) == MAX_LINE_BYTES:
            raise OddLayoutError
        return line

    def _read_newest(self, start: int, end: int) -> list[bytes]:
        """The last lines between two places, whole ones: at least one, where there is one."""
        size = self._block
        while end - size > start:
            found = self._read_lines(end - size, end)[1:]
            if found:
                return found
            size *= 2
        return self._read_lines(start, end)

    def _read_lines(self, start: int, end: int) -> list[bytes]:
        self._file.seek(start)
        *lines, rest = self._file.read(end - start).split(b"\n")
        if rest:
            raise OddLayoutError
        return [line + b"\n" for line in lines]


def read_section_number(line: bytes) -> int:
    return _parse_message(line).id


def _parse_message(line: bytes) -> _Message:
    try:
        found = _section_message_decoder.decode(line.rstrip(b",\n"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise OddLayoutError from error
    if found.id <= 0:
        raise OddLayoutError
    return found


def _is_user_message(line: bytes) -> bool:
    """A message of another layout, kept as it was, may have blanks or name its role further back."""
    return line.startswith(_USER) or (not line.startswith(MESSAGE + b'"') and _parse_message(line).role == "user")


def _parse_call(line: bytes) -> _Call:
    try:
        return _section_call_decoder.decode(line.rstrip(b",\n"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise OddLayoutError from error


def _is_behind_messages(line: bytes) -> bool:
    if not line.startswith((b"{", b"]")):
        raise OddLayoutError
    return line == MIDDLE or line.startswith(CALL)


_ENTRY = compile_late(rb'\{"(?:role|id)":.*\},?\n', re.DOTALL)
MAX_HEAD_BYTES = 1 << 26
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
        """Find the entries. Raises `OddLayoutError` if they are not laid out as we write them."""
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
        """Find the beginning of calls before all messages were read."""
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
        """Iterate over the lines that may hold an entry, and the one in the middle; report other content once per
        span."""
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
        """Check that a comma separates two entries, and none follows the last."""
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
    """Return True if the last bytes are as they should be: most damage is there."""
    descriptor = file.fileno()
    return os.pread(descriptor, len(CLOSE), max(0, os.fstat(descriptor).st_size - len(CLOSE))) == CLOSE


def detect_own_layout(file: BinaryIO) -> Line | None:
    """The first line of a document in our layout, or None when it is in another."""
    found = iter_lines(file, longest=MAX_HEAD_BYTES)
    first = next(found, None)
    if first is None or first[1] > MAX_HEAD_BYTES or not first[2].endswith(b"\n") or first[2].startswith(MESSAGE):
        return None
    if first[2].endswith(OPEN):
        return first
    second = next(found, None)
    return first if second and _ENTRY.fullmatch(second[2]) else None


def has_repeated_name(head: bytes) -> bool:
    """Return True if an object in the head gives two values to one name: a JSON reader sees only the last of them."""
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
