"""Open a session's files for reading, split them into lines, and collect damage and missing entries."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ollm.domain.errors import StorageError

if TYPE_CHECKING:
    from ollm.domain.messages import JsonObject, Message
    from ollm.domain.tools import ToolCallRecord

MAX_BYTES = 500_000_000
MAX_DEPTH = 100
MAX_NOTES = 5
LAST_MESSAGE = "lastMessage"  # in the metadata: the number of the document's last message
MISSING = "missing"  # in the metadata: gaps that the user was told about
CONTAINED = "containedJournal"  # in the metadata: the checksum of a journal whose records the document holds already
MAX_MESSAGE_NUMBER = 10**7  # files of MAX_BYTES hold fewer messages: a higher number is damage
Range = tuple[int, int]


class DamageFoundError(Exception):
    """Error that ends strict reading at the first damage, without details."""


class DamageReport:
    """Damage found while files are read. `too_large` means that the session can be viewed but must not be written.

    A `strict` report raises `DamageFoundError` at the first damage.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self.notes: list[str] = []
        self.lost = 0
        self.missing = ""  # a sentence about messages and calls that are missing
        self.too_large = False
        self.size = 0  # of the files that are read, in bytes

    def note(self, text: str) -> None:
        self.stop_if_strict(text)
        if len(self.notes) < MAX_NOTES and text not in self.notes:
            self.notes.append(text)

    def count_lost_entry(self, text: str = "") -> None:
        """Count one more entry that could not be read."""
        self.stop_if_strict(text)
        self.lost += 1
        if text:
            self.note(text)

    def report_missing(self, messages: list[Range], calls: int) -> None:
        """Report missing entries after everything was read."""
        if not self.too_large:
            self.missing = format_missing(messages, calls)
            if self.missing:
                self.stop_if_strict(self.missing)

    def refuse(self, text: str) -> None:
        self.stop_if_strict(text)
        self.too_large = True
        if text not in self.notes:
            self.notes.insert(0, text)

    def stop_if_strict(self, text: str) -> None:
        if self._strict:
            raise DamageFoundError(text)

    def refuse_depth(self) -> None:
        size = f"{self.size} bytes" if self.size < 1_000_000 else f"{self.size // 1_000_000} MB"
        self.refuse(f"too large to read ({size}, nested deeper than {MAX_DEPTH} levels)")

    @property
    def text(self) -> str | None:
        """Description of the damage, or None if everything was read."""
        said = "; ".join(filter(None, (*self.notes, self.missing)))
        lost = f"{self.lost} {'entry' if self.lost == 1 else 'entries'} could not be read" if self.lost else ""
        return f"{said} ({lost})" if said and lost else said or lost or None


class MissingEntries:
    """Tracker of the messages and calls read from a session. It reports gaps once both were read to their end.

    Gaps that `head` lists as known are not reported. In a `part`, only gaps between its messages are found. `highest`
    is the last number of an entry, readable or not.
    """

    def __init__(self, damage: DamageReport, head: JsonObject, highest: int, *, part: bool) -> None:
        metadata = head.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        self._damage = damage
        self._highest = highest
        self._part = part
        self._known, self._known_calls = _parse_known(metadata.get(MISSING))
        promised: Any = metadata.get(LAST_MESSAGE)
        self.promised: int = promised if _is_number(promised) and not part else 0
        self.restart_messages()
        self.restart_calls()

    def restart_messages(self) -> None:
        self._gaps: list[Range] = []  # rising
        self.next_number = 0 if self._part else 1  # the number that follows; 0 before the first message of a part
        self._named: set[str] = set()
        self._asked: tuple[str, ...] = ()  # last, and those of them that have a result
        self._answered: list[str] = []
        self._messages_read = self._under_way = False

    def restart_calls(self) -> None:
        self._found: set[str] = set()
        self._of_message = 0  # the highest number of a message that a call belongs to
        self._calls_read = False

    def add_message(self, message: Message) -> None:
        number = message.id
        self.expect(number)
        self.next_number = max(number, self.next_number - 1) + 1
        if message.role != "user" and (names := message.call_ids):
            self._named.update(names)
            if message.role == "assistant":
                self._asked, self._answered = names, []
            else:
                self._answered.extend(names)

    def expect(self, number: int) -> None:
        """Note that everything before this number must have been read."""
        if 0 < self.next_number < number:
            self._gaps.append((self.next_number, number - 1))
            self.next_number = number

    def add_call(self, call: ToolCallRecord) -> None:
        self._found.add(call.id)
        self._of_message = max(self._of_message, call.message_id)

    def end_messages(self, *, under_way: bool) -> None:
        """Note the end of the messages. `under_way`: an answer without a number follows, and may have started calls."""
        self._messages_read, self._under_way = True, under_way
        self._report()

    def end_calls(self) -> None:
        self._calls_read = True
        self._report()

    @property
    def has_messages(self) -> bool:
        return self.next_number > 1

    @property
    def nothing_read(self) -> bool:
        return not self.has_messages and not self._found

    @property
    def last_number(self) -> int:
        """The highest message number ever used, as far as known; numbers are never reused."""
        return max(self.next_number - 1, self._highest, self.promised, *(end for _, end in self._known), 0)

    def describe_known(self) -> JsonObject:
        """Describe the gaps for the session's metadata, since the user is notified of them."""
        self.promised = max(self.promised, self._of_message)  # an answer under way has a number from now on
        return {"messages": [list(gap) for gap in self._list_gaps()], "calls": self._count_calls()}

    def _report(self) -> None:
        if self._part and self._messages_read:
            self._damage.report_missing(self._find_unknown(self._gaps), 0)
        elif self._messages_read and self._calls_read:
            self.promised = max(self.promised, self._of_message - self._under_way)
            calls = max(0, self._count_calls() - self._known_calls)
            self._damage.report_missing(self._find_unknown(self._list_gaps()), calls)

    def _find_unknown(self, gaps: list[Range]) -> list[Range]:
        return [gap for gap in gaps if gap not in self._known]

    def _list_gaps(self) -> list[Range]:
        behind = self.next_number, self.last_number
        return [*self._gaps, behind] if behind[0] <= behind[1] else self._gaps

    def _count_calls(self) -> int:
        not_begun = set(self._asked).difference(self._answered)  # the program may have ended before
        return len(self._named - self._found - not_begun)


def _parse_known(value: Any) -> tuple[list[Range], int]:
    found = value if isinstance(value, dict) else {}
    ranges, calls = found.get("messages"), found.get("calls")
    pairs = [one for one in (ranges if isinstance(ranges, list) else ()) if isinstance(one, list) and len(one) == 2]
    known = [(first, last) for first, last in pairs if _is_number(first) and _is_number(last)]
    return sorted(known), calls if isinstance(calls, int) else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and 0 < value <= MAX_MESSAGE_NUMBER


def format_missing(messages: list[Range], calls: int, shown: int = 4) -> str:
    """Describe in a sentence how much is missing, or return "" if nothing is."""
    words = [str(first) if first == last else f"{first} to {last}" for first, last in messages[:shown]]
    if rest := sum(last - first + 1 for first, last in messages[shown:]):
        words.append(f"{rest} more")
    if words and calls:
        return f"{_join_numbers(words, messages)} and {_count_calls(calls)} are missing from this session's files"
    if words:
        verb = "is" if messages[0][0] == messages[-1][1] else "are"
        return f"{_join_numbers(words, messages)} {verb} missing from this session's files"
    return f"{_count_calls(calls)} {'is' if calls == 1 else 'are'} missing from this session's files" if calls else ""


def _join_numbers(words: list[str], messages: list[Range]) -> str:
    name = "message" if messages[0][0] == messages[-1][1] else "messages"
    return f"{name} {' and '.join(filter(None, (', '.join(words[:-1]), words[-1])))}"


def _count_calls(calls: int) -> str:
    return f"{calls:,} tool call{'' if calls == 1 else 's'}"


BUFFER_BYTES = 1 << 18
LONG_LINE_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 14
_LINE_BYTES = 1 << 12  # that are read at first for one line


Line = tuple[int, int, bytes]
"""Start and end of a line, and the line with its end, which only the last of a file may lack. Of a long one that
cannot be an entry, or is longer than any that is asked for, only the beginning is kept."""


class SessionFile:
    """A file read by position, with its size fixed when opened; `waiting` is read after its end."""

    def __init__(self, descriptor: int | None, waiting: bytes = b"") -> None:
        self.descriptor = descriptor
        self._on_disk = os.fstat(descriptor).st_size if descriptor is not None else 0
        self._waiting = waiting
        self._buffer, self._buffered = b"", 0  # bytes read before, and their place
        self.size = self._on_disk + len(waiting)

    @property
    def stamp(self) -> str:
        """Inode, size and time, which distinguish a document from a later one."""
        found = os.fstat(self.require_descriptor())
        return f"{found.st_ino},{found.st_size},{found.st_mtime_ns}"

    @property
    def inode(self) -> int:
        return os.fstat(self.descriptor).st_ino if self.descriptor is not None else 0

    def compute_checksum(self) -> str:
        """Compute a checksum of the size and the last few kilobytes: enough for a file that only grows."""
        import zlib  # rarely needed

        return f"{self.size},{zlib.crc32(self.read(max(0, self.size - _BLOCK_BYTES), self.size))}"

    def require_descriptor(self) -> int:
        assert self.descriptor is not None
        return self.descriptor

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def read(self, start: int, end: int) -> bytes:
        """Read the bytes between two places, as far as there are any."""
        on_disk = self._on_disk
        if end <= on_disk:
            return os.pread(self.require_descriptor(), end - start, start)
        data = os.pread(self.require_descriptor(), on_disk - start, start) if start < on_disk else b""
        return data + self._waiting[max(0, start - on_disk) : end - on_disk]

    def read_buffered(self, start: int, end: int) -> bytes:
        """Read like `read`, for many short reads one after the other."""
        if not self._buffered <= start <= end <= self._buffered + len(self._buffer):
            self._buffer, self._buffered = self.read(start, max(end, start + _BLOCK_BYTES)), start
        return self._buffer[start - self._buffered : end - self._buffered]

    def read_line(self, place: int, longest: int = MAX_BYTES) -> bytes:
        """Read from `place` to the end of the line, or no more than about `longest` bytes."""
        line, step = b"", _LINE_BYTES
        while len(line) < longest and (block := self.read(place + len(line), place + len(line) + step)):
            end = block.find(b"\n")
            if end >= 0:
                return line + block[: end + 1]
            line, step = line + block, step * 4
        return line

    def iter_lines(self, place: int = 0, longest: int = MAX_BYTES) -> Iterator[Line]:
        """Iterate over the lines from `place` on."""
        read, rest = place, b""
        while block := self.read(read, read + BUFFER_BYTES):
            read += len(block)
            lines = io.BytesIO(rest + block).readlines()  # `split` looks at each byte by itself
            rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
            for line in lines:
                start, place = place, place + len(line)
                yield start, place, line
            if len(rest) >= LONG_LINE_BYTES:
                read = self._find_line_end(read)
                whole = rest.startswith(b"{") and read - place <= longest
                yield place, read, self.read(place, read) if whole else rest
                place, rest = read, b""
        if rest:
            yield place, read, rest

    def _find_line_end(self, place: int) -> int:
        """Find the end of the line that continues at `place`, without keeping it."""
        while place <= MAX_BYTES and (block := self.read(place, place + LONG_LINE_BYTES)):
            end = block.find(b"\n")
            if end >= 0:
                return place + end + 1
            place += len(block)
        return place


def open_file(path: Path, damage: DamageReport) -> int | None:
    """Open a file for reading, or return None if it is not there; never through a link, never a device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if path.is_symlink():
            damage.refuse(f"{path.name} is a symbolic link and is not followed")
            return None
        raise StorageError(
            f"Cannot read {path}: {error.strerror}.", action="Check the permissions of the file."
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        damage.refuse(f"{path.name} is not a regular file")
        return None
    return descriptor


def get_file_time(*paths: Path | None) -> datetime:
    """Return the time when the newest of these files was last written."""
    times = [0.0]
    for path in filter(None, paths):
        with contextlib.suppress(OSError):
            times.append(path.lstat().st_mtime)
    return datetime.fromtimestamp(max(times), UTC)
