"""Find entries of a long document by binary search, without reading the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ollm.domain.lazy import decode_late
from ollm.store.session_files.document import CALL, CLOSE, MAX_HEAD_BYTES, MESSAGE, MIDDLE
from ollm.store.session_files.files import MAX_BYTES, MAX_MESSAGE_NUMBER, Range, SessionFile

_USER = b'{"role":"user"'


class OddLayoutError(Exception):
    """Error for a document that is not in our layout and must be read whole."""


class _MessageKey(msgspec.Struct):
    id: int = 0
    role: Any = ""


class _CallKey(msgspec.Struct, rename="camel"):
    id: str
    message_id: int


Key = TypeVar("Key")
_message_key_decoder = decode_late(_MessageKey)
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


def _read_message_key(line: bytes) -> _MessageKey:
    found = _read_key(_message_key_decoder, line)
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
