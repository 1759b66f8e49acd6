"""Reading a session: document and journal together, line by line, changing no file.

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
from ollm.store.session_files.document import Document, own_layout
from ollm.store.session_files.lenient import parse_object
from ollm.store.session_files.lines import BUFFER, lines
from ollm.store.session_files.sections import OddLayoutError, Sections

if TYPE_CHECKING:
    from ollm.store.session_files.scan import Scan


class _Named(msgspec.Struct):
    id: str


class _Numbered(msgspec.Struct):
    id: int = 0


_named = msgspec.json.Decoder(_Named)
_numbered = msgspec.json.Decoder(_Numbered)


class SessionReader:
    """The entries of one session as bytes, oldest first. `head` holds the other fields, journal applied."""

    def __init__(
        self, document: Path, journal_path: Path, *, waiting: bytes = b"", damage: Damage | None = None
    ) -> None:
        self.damage = damage or Damage()
        self._journal: BinaryIO | None = None
        self._document: BinaryIO | None = None
        self._entries: Document | Scan | None = None
        self.foreign = False  # missing or in another layout: to be written anew before it is added to
        self.head: JsonObject = {}
        self.partial: journal.Parts = []
        self.partial_at = ""
        self.partial_start = 0  # where in the journal the answer under way begins
        self.journal_good = 0  # bytes of whole journal lines
        self.skipped = 0  # messages up to this number are left out
        self.newest_calls: list[str] = []  # ids of the document's last calls, where messages are left out
        self._call_places: dict[str, list[int]] = {}
        try:
            self._begin(document, journal_path, waiting)
        except BaseException:
            self.close()
            raise

    def _begin(self, document: Path, journal_path: Path, waiting: bytes) -> None:
        self._journal = _with(_open(journal_path, self.damage), waiting)
        self._document = _open(document, self.damage)
        self.damage.size = sum(_size(file) for file in (self._document, self._journal) if file)
        self._read_head()
        self._read_journal_changes()

    @property
    def progress(self) -> tuple[int, int]:
        """How many bytes of the document were gone through, and how many there are."""
        size = _size(self._document) if self._document else 0
        return (min(self._entries.read, size) if self._entries else 0), size

    def close(self) -> None:
        for file in (self._journal, self._document):
            if file:
                file.close()

    def skip_to(self, number: int, least: int = 32, before: int | None = None) -> bool:
        """Leave out messages up to this number and their calls; some more are read, from one of the user's on.

        With `before` the document's messages from that one on are left out too. False when all must be read: the
        document is in another layout.
        """
        if self._document is None or not isinstance(self._entries, Document):
            return False
        try:
            sections = Sections(self._document)
            begin = sections.beginning(number, least)
            self._entries.narrow(sections.messages(begin, before), sections.calls(begin, before))
            self.newest_calls = sections.newest_calls()
        except OddLayoutError:
            return False
        self.skipped = begin
        return True

    def go_on(self, message: int, call: int) -> bool:
        """Leave out messages up to one number, and calls of messages before another. False: all must be read."""
        if self._document is None or not isinstance(self._entries, Document):
            return False
        try:
            sections = Sections(self._document)
            self._entries.narrow(sections.messages(message), sections.calls(call - 1))
        except OddLayoutError:
            return False
        return True

    def messages(self) -> Iterator[bytes]:
        """Every message; those of the journal that the document already holds come once."""
        count, data = 0, b""
        for data in self._entries.messages() if self._entries else ():
            count += 1
            yield data
        last = max(count, number_of(data))
        partial: journal.Parts = []
        for _, record in self._records(Damage()):  # what is wrong with it was told when it was read first
            if record.partial is not None:
                partial = journal.extend([] if record.anew else partial, record.partial)
            if isinstance(record.message, msgspec.Raw):
                data = continued(partial, record)
                partial = []
                number = number_of(data) or last + 1
                if number > last:
                    last = number
                    yield data
        self.partial = partial

    def calls(self) -> Iterator[bytes]:
        """Every call in its newest state, in the order in which they were first asked."""
        waiting = dict(self._call_places)
        for data in self._entries.calls() if self._entries else ():
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
            self.foreign = True
            return
        first = own_layout(self._document)
        if first:
            self._entries = Document(self._document, first, self.damage)
        else:
            from ollm.store.session_files.scan import Scan

            self._entries = Scan(self._document, self.damage)
            self.foreign = True
        self.head = self._entries.head
        size = os.fstat(self._document.fileno()).st_size
        if size > MAX_BYTES:
            self.damage.refuse(f"the file is too large to read ({size // 1_000_000} MB)")
        metadata = self.head.get("metadata")
        self.head["metadata"] = dict(metadata) if isinstance(metadata, dict) else {}

    def _read_journal_changes(self) -> None:
        """What the journal says of the head, and where its calls stand."""
        for place, record in self._records(self.damage):
            journal.change_head(self.head, record)
            if isinstance(record.call, msgspec.Raw):
                self._call_places.setdefault(_name(bytes(record.call)), []).append(place)
            if record.partial is not None:
                self.partial_start = self.partial_start if self.partial_at else place
                self.partial_at = record.at
            elif isinstance(record.message, msgspec.Raw):
                self.partial_at = ""

    def _records(self, damage: Damage) -> Iterator[tuple[int, journal.Record]]:
        """Whole lines only, with their places: a torn last one was never promised to anybody."""
        if not self._journal:
            return
        strange, size = False, _size(self._journal)
        for start, end, data in lines(self._journal):
            if end > MAX_BYTES:
                damage.refuse(f"the journal is too large to read ({size // 1_000_000} MB)")
                return
            if end == size and not data.endswith(b"\n"):
                return
            self.journal_good = end
            try:
                yield start, journal.parse(data)
                strange = False
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                if not strange:
                    damage.lose(f"the journal is damaged at byte {start}")
                strange = True


def _size(file: BinaryIO) -> int:
    return len(file.getbuffer()) if isinstance(file, io.BytesIO) else os.fstat(file.fileno()).st_size


def continued(partial: journal.Parts, record: journal.Record) -> bytes:
    """A recorded message whole: one that goes on from the partial answer holds only what was new in it."""
    assert isinstance(record.message, msgspec.Raw)
    if not record.continues:
        return bytes(record.message)
    found = parse_object(bytes(record.message))
    return journal.encode({**found, "parts": journal.extend(partial, found.get("parts") or [])})


def number_of(data: bytes) -> int:
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
    return os.fdopen(descriptor, "rb", buffering=BUFFER)
