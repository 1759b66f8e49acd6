"""Where the entries of a document of ours are, found by halving: a long one is read from where it is needed on.

Messages are in the order of their numbers, calls in the order of the messages that asked for them (`layout`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

import msgspec

from ollm.store.session_files.damage import MAX_BYTES
from ollm.store.session_files.layout import CLOSE, MIDDLE

MAX_LINE_BYTES = 1 << 26
_USER = b'{"role":"user"'
MESSAGE = b'{"role":'  # how we write a message's line
CALL = b'{"id":"'  # how a call's line starts and a message's never does


class OddLayoutError(Exception):
    """The document is not laid out as we write it: it has to be read whole."""


class _Message(msgspec.Struct):
    id: int
    role: str = ""


class _Call(msgspec.Struct, rename="camel"):
    id: str
    message_id: int


_message_decoder = msgspec.json.Decoder(_Message)
_call_decoder = msgspec.json.Decoder(_Call)


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
            return self._find_first(self._messages, self.middle, lambda line: read_number(line) > number)

        return find_behind(after), find_behind(before - 1) if before else self.middle

    def find_calls(self, after: int, before: int | None = None) -> tuple[int, int]:
        """From where to where the calls of the messages between two numbers are."""

        def find_behind(number: int) -> int:
            return self._find_first(self._calls, self._end, lambda line: _parse_call(line).message_id > number)

        return find_behind(after), find_behind(before - 1) if before else self._end

    def find_beginning(self, number: int, least: int) -> int:
        """A number not over `number`, which a message of the user's follows, and `least` messages where there are."""
        newest = self._read_newest(self._messages, self.middle)
        last = read_number(newest[-1]) if newest else 0
        wanted, step = min(number, last - least), least
        while wanted > 0 and step < 2 * wanted:
            lines = self._read_lines(*self.find_messages(wanted - step, wanted + 2))
            asked = next((line for line in reversed(lines) if _is_user_message(line)), None)
            if asked:
                return read_number(asked) - 1
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


def read_number(line: bytes) -> int:
    return _parse_message(line).id


def _parse_message(line: bytes) -> _Message:
    try:
        found = _message_decoder.decode(line.rstrip(b",\n"))
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
        return _call_decoder.decode(line.rstrip(b",\n"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise OddLayoutError from error


def _is_behind_messages(line: bytes) -> bool:
    if not line.startswith((b"{", b"]")):
        raise OddLayoutError
    return line == MIDDLE or line.startswith(CALL)
