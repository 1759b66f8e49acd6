"""Reading a session: document and journal together, line by line, changing no file (design 3.8, safety 6).

The journal is opened before the document: whatever is folded in between is then found in the document.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from ollm.domain.errors import StorageError
from ollm.domain.messages import JsonObject
from ollm.store.session_files import journal
from ollm.store.session_files.damage import MAX_BYTES, Damage
from ollm.store.session_files.layout import CLOSE, MIDDLE, OPEN
from ollm.store.session_files.lenient import parse_object
from ollm.store.session_files.sections import CALL, OddLayoutError, Sections

if TYPE_CHECKING:
    from ollm.store.session_files.scan import Scan


class _Named(msgspec.Struct):
    id: str


class _Numbered(msgspec.Struct):
    id: int = 0


_BUFFER = 1 << 18
_named = msgspec.json.Decoder(_Named)
_numbered = msgspec.json.Decoder(_Numbered)


class SessionReader:
    """The entries of one session as bytes, oldest first. `head` holds the other fields, journal applied."""

    def __init__(self, document: Path, journal_path: Path, *, waiting: bytes = b"") -> None:
        self.damage = Damage()
        self._journal = _with(_open(journal_path, self.damage), waiting)
        self._document = _open(document, self.damage)
        self._scan: Scan | None = None
        self.head: JsonObject = {}
        self.partial: journal.Parts = []
        self.partial_at = ""
        self.partial_start = 0  # where in the journal the answer under way begins
        self.journal_good = 0  # bytes of whole journal lines
        self.skipped = 0  # messages up to this number are left out
        self.newest_calls: list[str] = []  # ids of the document's last calls, where messages are left out
        self._ranges: dict[bool, tuple[int, int]] = {}
        self._call_places: dict[str, list[int]] = {}
        self._read_head()
        self._read_journal_changes()

    @property
    def foreign(self) -> bool:
        """The document is missing or in another layout, so that it must be written anew before it is added to."""
        return self._document is None or self._scan is not None

    def close(self) -> None:
        for file in (self._journal, self._document):
            if file:
                file.close()

    def skip_to(self, number: int, least: int = 32, before: int | None = None) -> bool:
        """Leave out messages up to this number and their calls; some more are read, from one of the user's on.

        With `before` the document's messages from that one on are left out too. False when all must be read: the
        document is in another layout.
        """
        if self._document is None or self.foreign:
            return False
        try:
            sections = Sections(self._document)
            begin = sections.beginning(number, least)
            self._ranges = {False: sections.messages(begin, before), True: sections.calls(begin, before)}
            self.newest_calls = sections.newest_calls()
        except OddLayoutError:
            return False
        self.skipped = begin
        return True

    def messages(self) -> Iterator[bytes]:
        """Every message; those of the journal that the document already holds come once."""
        count, data = 0, b""
        for data in self._document_lines(calls=False):
            count += 1
            yield data
        last = max(count, _number(data))
        partial: journal.Parts = []
        for record in self._records():
            if record.partial is not None:
                partial = journal.extend([] if record.anew else partial, record.partial)
            if isinstance(record.message, msgspec.Raw):
                data = continued(partial, record)
                partial = []
                number = _number(data) or last + 1
                if number > last:
                    last = number
                    yield data
        self.partial = partial

    def calls(self) -> Iterator[bytes]:
        """Every call in its newest state, in the order in which they were first asked."""
        waiting = dict(self._call_places)
        for data in self._document_lines(calls=True):
            updates = waiting.pop(_name(data), None)
            yield self._updated(data, updates) if updates else data
        for places in waiting.values():
            yield self._updated(b"{}", places)

    def _updated(self, data: bytes, places: list[int]) -> bytes:
        """A call with the records of the journal laid over it."""
        assert self._journal
        found: JsonObject = {}
        with contextlib.suppress(ValueError, RecursionError):
            found = parse_object(data)
        for place in places:
            self._journal.seek(place)
            record = journal.parse(self._journal.readline())
            if isinstance(record.call, msgspec.Raw):
                found |= parse_object(bytes(record.call))
        return journal.encode(found)

    def _read_head(self) -> None:
        if not self._document:
            return
        first = self._document.readline(MAX_BYTES)
        try:
            if not first.endswith(OPEN):
                raise ValueError("not our layout")
            self.head = parse_object(first[: -len(OPEN)] + b"}")
        except (ValueError, RecursionError):
            from ollm.store.session_files.scan import Scan

            self._scan = Scan(self._document, self.damage)
            self.head = self._scan.head
        size = os.fstat(self._document.fileno()).st_size
        if size > MAX_BYTES:
            self.damage.refuse(f"the file is too large to read ({size // 1_000_000} MB)")
        metadata = self.head.get("metadata")
        self.head["metadata"] = dict(metadata) if isinstance(metadata, dict) else {}

    def _read_journal_changes(self) -> None:
        """What the journal says of the head, and where its calls stand."""
        for place, record in self._records_with_places():
            journal.change_head(self.head, record)
            if isinstance(record.call, msgspec.Raw):
                self._call_places.setdefault(_name(bytes(record.call)), []).append(place)
            if record.partial is not None:
                self.partial_start = self.partial_start if self.partial_at else place
                self.partial_at = record.at
            elif isinstance(record.message, msgspec.Raw):
                self.partial_at = ""

    def _document_lines(self, *, calls: bool) -> Iterator[bytes]:
        if not self._document:
            return
        if self._scan:
            yield from self._until_hopeless(self._scan.calls() if calls else self._scan.messages())
            return
        if self.skipped:
            yield from self._range_lines(*self._ranges[calls])
            return
        self._document.seek(0)
        size = len(self._document.readline())
        section = False
        while line := self._document.readline(MAX_BYTES):
            size += len(line)
            if size > MAX_BYTES or self.damage.hopeless:
                return
            if line == MIDDLE:
                section = True
            elif line == CLOSE:
                self._note_rest(size)
                return
            elif (section or line.startswith(CALL)) is calls and (entry := line.rstrip(b",\n")):
                yield entry
        self.damage.note("the file ends before its end")

    def _range_lines(self, start: int, end: int) -> Iterator[bytes]:
        assert self._document
        self._document.seek(start)
        while start < end and (line := self._document.readline()):
            start += len(line)
            yield line.rstrip(b",\n")

    def _note_rest(self, size: int) -> None:
        assert self._document
        if os.fstat(self._document.fileno()).st_size > size:
            self.damage.note("something stands behind the end of the file")

    def _until_hopeless(self, entries: Iterator[bytes]) -> Iterator[bytes]:
        for entry in entries:
            if self.damage.hopeless:
                return
            yield entry

    def _records(self) -> Iterator[journal.Record]:
        return (record for _, record in self._records_with_places())

    def _records_with_places(self) -> Iterator[tuple[int, journal.Record]]:
        """Whole lines only: a torn last one was never promised to anybody."""
        if not self._journal:
            return
        place = 0
        self._journal.seek(0)
        while line := self._journal.readline():
            if not line.endswith(b"\n"):
                break
            try:
                yield place, journal.parse(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self.damage.lose(f"the journal is damaged at byte {place}")
            place += len(line)
            self._journal.seek(place)
        self.journal_good = place


def continued(partial: journal.Parts, record: journal.Record) -> bytes:
    """A recorded message whole: one that goes on from the partial answer holds only what was new in it."""
    assert isinstance(record.message, msgspec.Raw)
    if not record.continues:
        return bytes(record.message)
    found = parse_object(bytes(record.message))
    return journal.encode({**found, "parts": journal.extend(partial, found.get("parts") or [])})


def _number(data: bytes) -> int:
    try:
        return _numbered.decode(data).id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0


def _name(data: bytes) -> str:
    try:
        return _named.decode(data).id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def _with(file: BinaryIO | None, waiting: bytes) -> BinaryIO | None:
    """The journal and, behind it, the records that are not on disk yet."""
    if not waiting:
        return file
    with contextlib.closing(file or io.BytesIO()) as source:
        return io.BytesIO(source.read() + waiting)


def _open(path: Path, damage: Damage) -> BinaryIO | None:
    """The file for reading, or None when it is not there; never through a link, never a device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if path.is_symlink():
            damage.refuse(f"{path.name} is a symbolic link and is not followed")
            return None
        raise StorageError(
            f"{path} cannot be read: {error.strerror}.", action="Check the permissions of the file."
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        damage.refuse(f"{path.name} is not a regular file")
        return None
    return os.fdopen(descriptor, "rb", buffering=_BUFFER)
