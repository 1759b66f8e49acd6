"""A document in our own layout (see `layout`), read line by line. A damaged line loses only its unreadable part."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from ollm.domain.lazy import compile_late, decode_late
from ollm.domain.messages import JsonObject
from ollm.store.session_files.files import MAX_BYTES, MAX_MESSAGE_NUMBER, Line, Range, SessionFile
from ollm.store.session_files.journal import DECODE_ERRORS, encode_json
from ollm.store.session_files.lenient import (
    CALL,
    MESSAGE,
    TooDeepError,
    find_end,
    is_deeper_than,
    is_valid_json,
    parse_object,
)

OPEN = b',"messages":[\n'
MIDDLE = b'],"toolCalls":[\n'
CLOSE = b"]}\n"
FIELDS = ("sessionId", "startTime", "lastActivity", "model", "provider", "metadata")


def iter_document(head: JsonObject, messages: Iterable[bytes], calls: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the document's bytes in parts."""
    return join_document(encode_head(head), messages, calls)


def encode_head(head: JsonObject) -> bytes:
    """Encode the fields of a document except messages and calls, in their order, as one JSON object."""
    ordered = {name: head[name] for name in FIELDS if name in head}
    ordered |= {name: value for name, value in head.items() if name not in ("messages", "toolCalls", *ordered)}
    return encode_json(ordered)


def join_document(head: bytes, messages: Iterable[bytes], calls: Iterable[bytes]) -> Iterator[bytes]:
    """Join the encoded head and the lines of the entries into the document's bytes."""
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


_NUMBER_TAIL_BYTES = 20
_USER = b'{"role":"user"'
_ENTRY = compile_late(rb'\{"(?:role|id)":.*\},?\n', re.DOTALL)
MAX_HEAD_BYTES = 1 << 26


class OddLayoutError(Exception):
    """Error for a document that is not in our layout and must be read whole."""


class IrregularError(Exception):
    """Error for files that are not as this version writes them; `Salvage` reads them."""


class _MessageKey(msgspec.Struct):
    id: int = 0
    role: Any = ""


class _CallKey(msgspec.Struct, rename="camel"):
    id: str
    message_id: int


Key = TypeVar("Key")
message_key_decoder = decode_late(_MessageKey)
_call_key_decoder = decode_late(_CallKey)


class DocumentSections:
    """Binary search for entries. Raises `OddLayoutError` for an unexpected line. Ranges of up to `block` bytes are
    searched linearly."""

    def __init__(self, file: SessionFile, block: int = 64 * 1024) -> None:
        self._file = file
        self._block = block
        self._messages = len(self._read_line(0))
        self._end = file.size - len(CLOSE)
        if not self._messages <= self._end <= MAX_BYTES or file.read(self._end, file.size) != CLOSE:
            raise OddLayoutError
        self.middle = self._find_first(self._messages, self._end, _is_behind_messages)
        self._calls = self.middle + len(MIDDLE)
        if file.read(self.middle, self._calls) != MIDDLE:
            raise OddLayoutError

    def find_messages(self, after: int, before: int | None = None) -> Range:
        """Find the messages between two numbers."""
        return self._find_between(self._messages, self.middle, lambda line: _read_message_key(line).id, after, before)

    def find_calls(self, after: int, before: int | None = None) -> Range:
        """Find the calls of the messages between two numbers."""
        return self._find_between(self._calls, self._end, lambda line: _read_call_key(line).message_id, after, before)

    def _find_between(
        self, low: int, end: int, read_number: Callable[[bytes], int], after: int, before: int | None
    ) -> Range:
        start = self._find_first(low, end, lambda line: read_number(line) > after)
        return start, self._find_first(low, end, lambda line: read_number(line) >= before) if before else end

    def find_beginning(self, number: int, least: int) -> int:
        """Find a number up to `number` before a user message, with `least` messages after it if there are so many."""
        newest = self._read_newest(self._messages, self.middle)
        last = _read_message_key(newest[-1]).id if newest else 0
        wanted, step = min(number, last - least), least
        while wanted > 0 and step < 2 * wanted:
            lines = self._read_lines(*self.find_messages(wanted - step, wanted + 2))
            asked = next((line for line in reversed(lines) if _is_user_message(line)), None)
            if asked:
                return _read_message_key(asked).id - 1
            step *= 2
        return 0

    def list_newest_calls(self) -> list[str]:
        """List the ids of the last few calls."""
        return [_read_call_key(line).id for line in self._read_newest(self._calls, self._end)]

    def _find_first(self, low: int, end: int, is_behind: Callable[[bytes], bool]) -> int:
        """Find the place of the first line that `is_behind` the one sought; it must hold for all later lines too."""
        high = end
        while high - low > self._block:
            half = (low + high) // 2
            place = half - 1 + len(self._read_line(half - 1))
            line = self._read_line(place) if place < high else b""
            if place >= high or is_behind(line):
                high = half
            else:
                low = place + len(line)
        while low < end and not is_behind(line := self._read_line(low)):
            low += len(line)
        return low

    def _read_line(self, place: int) -> bytes:
        """Read a line. Raises `OddLayoutError` for one without an end, which is a hole in the file."""
        line = self._file.read_line(place, MAX_HEAD_BYTES)
        if not line.endswith(b"\n"):
            raise OddLayoutError
        return line

    def _read_newest(self, start: int, end: int) -> list[bytes]:
        """Read the last complete lines between two places: at least one, if there is one."""
        size = self._block
        while end - size > start:
            found = self._read_lines(end - size, end)[1:]
            if found:
                return found
            size *= 2
        return self._read_lines(start, end)

    def _read_lines(self, start: int, end: int) -> list[bytes]:
        *lines, rest = self._file.read(start, end).split(b"\n")
        if rest:
            raise OddLayoutError
        return lines


def read_number(data: bytes) -> int:
    """Read the number of a message, or return 0 if it has none."""
    head, _, last = data[-_NUMBER_TAIL_BYTES:].rpartition(b',"id":')
    if head and last[-1:] == b"}" and last[:-1].isdigit():  # our own lines end so: no need to parse them
        number = int(last[:-1])
    else:
        try:
            number = message_key_decoder.decode(data).id
        except DECODE_ERRORS:
            return 0
    return number if 0 < number <= MAX_MESSAGE_NUMBER else 0


def _read_message_key(line: bytes) -> _MessageKey:
    found = _read_key(message_key_decoder, line)
    if not 0 < found.id <= MAX_MESSAGE_NUMBER:
        raise OddLayoutError
    return found


def _read_call_key(line: bytes) -> _CallKey:
    return _read_key(_call_key_decoder, line)


def _read_key(decoder: msgspec.json.Decoder[Key], line: bytes) -> Key:
    try:
        return decoder.decode(line.rstrip(b",\n"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise OddLayoutError from error


def _is_user_message(line: bytes) -> bool:
    """Return True for a user message. One kept in another layout may have blanks, or name its role later."""
    return line.startswith(_USER) or (not line.startswith(MESSAGE + b'"') and _read_message_key(line).role == "user")


def _is_behind_messages(line: bytes) -> bool:
    if not line.startswith((b"{", b"]")):
        raise OddLayoutError
    return line == MIDDLE or line.startswith(CALL)


class SessionDocument:
    """The entries of an undamaged document as bytes. Raises `IrregularError` for a line that is not in its place."""

    def __init__(self, file: SessionFile, first: Line) -> None:
        self._file = file
        _, self._body, head = first
        self._only: tuple[Range, Range] | None = None
        self._calls_at = 0  # where calls begin, once that is known
        self.head = _parse_head(head)
        if file.read(max(0, file.size - len(CLOSE)), file.size) != CLOSE:  # most damage is there
            raise IrregularError

    def narrow(self, messages: Range, calls: Range) -> None:
        """Read only the entries between these places."""
        self._only = messages, calls

    def iter_messages(self) -> Iterator[bytes]:
        return self._iter_between(*self._only[0]) if self._only else self._iter_entries(self._body, MESSAGE, MIDDLE)

    def iter_calls(self) -> Iterator[bytes]:
        if self._only:
            return self._iter_between(*self._only[1])
        return self._iter_entries(self._calls_at or self._find_calls(), CALL, CLOSE)

    def _find_calls(self) -> int:
        """Find the start of the calls before all messages have been read."""
        with contextlib.suppress(OddLayoutError):
            return DocumentSections(self._file).middle + len(MIDDLE)
        found = next((end for _, end, data in self._file.iter_lines(self._body) if data == MIDDLE), 0)
        return found or self._file.size

    def _iter_between(self, place: int, until: int) -> Iterator[bytes]:
        for start, _, data in self._file.iter_lines(place):
            if start >= until:
                return
            yield data.rstrip(b",\n")

    def _iter_entries(self, place: int, begin: bytes, last: bytes) -> Iterator[bytes]:
        comma = first = True
        for start, end, data in self._file.iter_lines(place):
            if data.startswith(begin) and comma and end <= MAX_BYTES:
                comma, first = data.endswith(b",\n"), False
                yield data.rstrip(b",\n")
            elif data == last and (first or not comma):
                self._calls_at = end
                closing = start if last == CLOSE else self._file.find(b"\n" + CLOSE, end - 1) + 1
                if closing != self._file.size - len(CLOSE):
                    raise IrregularError("the file does not end where the document ends")
                return
            else:
                what = "a comma" if data.startswith(begin) or data == last else "a line"
                raise IrregularError(f"{what} at byte {start} is missing or not in its place")
        raise IrregularError("lines of the document are not in their place")


def _parse_head(first: bytes) -> JsonObject:
    head = first.removesuffix(OPEN) + b"}"
    if is_deeper_than(head):
        raise IrregularError
    try:
        found = parse_object(head)
    except (ValueError, RecursionError) as error:
        raise IrregularError from error
    if not first.endswith(OPEN) or not is_valid_json(head):
        raise IrregularError("the file header is not valid JSON and was read as well as it could be")
    if "messages" in found or "toolCalls" in found or has_repeated_name(head):
        raise IrregularError("the file header names something twice")
    return found


def detect_own_layout(file: SessionFile) -> Line | None:
    """Return the first line of a document in our layout, or None if it has another layout."""
    found = file.iter_lines(longest=MAX_HEAD_BYTES)
    first = next(found, None)
    if first is None or first[1] > MAX_HEAD_BYTES or not first[2].endswith(b"\n") or first[2].startswith(MESSAGE):
        return None
    if first[2].endswith(OPEN):
        return first
    second = next(found, None)
    return first if second and _ENTRY.fullmatch(second[2]) else None


def has_repeated_name(head: bytes) -> bool:
    """Return True if an object in the head repeats a name, of which a JSON reader sees only the last value."""
    if all(head.count(f'"{name}":'.encode()) < 2 for name in ("title", *FIELDS)):
        return False
    repeated = False

    def take_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) < len(pairs)
        return found

    import json

    json.loads(head, object_pairs_hook=take_object, parse_int=str)
    return repeated


def salvage_head(text: bytes) -> JsonObject:
    """Return the fields of a damaged head that can still be read."""
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
