"""Read a session from document and journal together, without changing any file.

The files are read line by line as the writer writes them. All others are imported, in memory. The journal is opened
before the document, so that entries folded in between are found in the document.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from ollm.domain.messages import JsonObject
from ollm.store.session_files import journal
from ollm.store.session_files.document import (
    CALL,
    CLOSE,
    MESSAGE,
    MIDDLE,
    OPEN,
    ReadCall,
    ReadMessage,
    fits_metadata,
    is_valid_json,
    parse_call,
    parse_message,
    read_number,
)
from ollm.store.session_files.entry_table import EntryTable, IrregularFilesError, Range
from ollm.store.session_files.files import (
    CONTAINED,
    MAX_BYTES,
    DamageReport,
    SessionFile,
    get_file_time,
    open_file,
)
from ollm.store.session_files.missing import MissingEntries
from ollm.store.session_files.waypoints import REQUEST, KnownState, Waypoint

_ID_CHARS = 36  # of a session's id, which names its files
OVERSIZED_BYTES = 1 << 24  # that are imported of a file over the limit


class SessionPart(msgspec.Struct, frozen=True):
    """The messages between two numbers, with their calls. Some more are read: from a waypoint on, and at least `least`.
    With a `least` of 0 no messages are needed. Without a `known` state everything is read."""

    known: KnownState | None
    after: int
    least: int = 32
    before: int | None = None


class SessionReader:
    """The entries of one session, oldest first. `head` holds the other fields, with the journal applied.

    Of a long session only `part` is read.
    """

    foreign = False  # missing, damaged or in another form: to be written again before it is added to
    is_original = False  # in another layout, of which a copy is kept
    known: KnownState | None = None  # the state from which reading began, if only a part is read
    skipped = 0  # messages up to this number are left out
    read = 0  # bytes of the entries that were taken
    journal_good = 0  # bytes of whole journal records
    _journal_range = 0, MAX_BYTES
    table: EntryTable
    _regular = 0  # bytes of the document that are as the writer writes them

    def __init__(
        self,
        document: Path | None,
        journal_path: Path | None,
        *,
        waiting: bytes = b"",
        damage: DamageReport | None = None,
        part: SessionPart | None = None,
    ) -> None:
        self.damage = damage or DamageReport()
        self.written_at = get_file_time(document, journal_path)
        self.head: JsonObject = {}
        self._name = document.stem if document else ""
        self._files: list[SessionFile] = []
        self._unreadable: set[int] = set()  # messages that a second reading must not count again
        try:
            self._journal = self._open_file(journal_path, waiting)
            self._document = self._open_file(document)
            self.damage.size = sum(file.size for file in self._files)
            self._read_files(part)
            if document and not self._files[1].size and not self.damage.too_large:
                self.damage.note("the session's document is missing")
        except BaseException:
            self.close()
            raise
        heard = DamageReport() if part and part.before else self.damage  # messages in between are left out
        self.missing = MissingEntries(heard, self.head, self.table, part=self.known is not None)

    @property
    def partial(self) -> journal.Parts:
        """The parts of an answer that is not finished."""
        return self.table.partial.parts

    def _open_file(self, path: Path | None, waiting: bytes = b"") -> SessionFile:
        file = SessionFile(open_file(path, self.damage) if path else None, waiting)
        self._files.append(file)
        return file

    def _read_files(self, part: SessionPart | None) -> None:
        try:
            self._read_own(part)
        except (IrregularFilesError, *journal.DECODE_ERRORS):
            self._import_files()

    def _import_files(self) -> None:
        """Read everything readable into memory."""
        from ollm.store.session_files.importing import SessionImporter  # for such files only

        lines, document = map(self._limit_size, self._files)
        begun = self.table if self._regular and not self.known else None
        found = SessionImporter(document, lines, self.damage, begun, self._regular if begun else 0)
        self.foreign, self.is_original = True, not found.was_ours
        self.known, self.skipped, self.journal_good = None, 0, lines.size
        self.table, self.head = found.make_table(), found.head
        self._check_head()

    def _limit_size(self, file: SessionFile) -> SessionFile:
        if file.size > MAX_BYTES:
            self.damage.refuse(f"the file is too large to read ({file.size // 1_000_000} MB)")
        return SessionFile(None, file.read(0, OVERSIZED_BYTES)) if self.damage.too_large else file

    def _read_own(self, part: SessionPart | None) -> None:
        """Read the files as the writer writes them. Raises `IrregularFilesError` if they are different."""
        body = self._read_head()
        self._skip_contained()
        ranges = self._narrow(part) if part else None
        self.table = EntryTable(self._document, self._journal, self.known, self.skipped)
        if ranges is None:
            self._read_lines(body)
        for begin, end in ranges or ():
            self._read_part(begin, end)
        self._read_journal()
        self.table.finish()

    def make_known(self, count: int, last: int, calls: int) -> KnownState | None:
        """Make the state of these files, or return None if they are not as we write them."""
        if self.foreign or not self._document.stamp or self.damage.text:
            return None
        return KnownState(
            document=self._document.stamp,
            journal=self._journal.inode,
            size=self.journal_good,
            head=self.head,
            count=count,
            last=last,
            calls=calls,
            end=self.table.notes.end,
            waypoints=self.table.notes.list_waypoints(),
        )

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes of the entries read so far, and of all files."""
        return min(self.read, self.damage.size), self.damage.size

    def close(self) -> None:
        for file in self._files:
            file.close()

    def iter_messages(self, leave_out: tuple[bytes, ...] = ()) -> Iterator[ReadMessage]:
        """Iterate over the messages by number, each with its line. Those whose line begins so are left out unread."""
        self.missing.message_count = 0
        for number, data in zip(self.table.numbers, self.table.iter_messages(), strict=True):
            if leave_out and data.startswith(leave_out):
                continue
            self.read += len(data)
            message = parse_message(data)
            found = (message, data) if message else self._repair_message(number, data)
            if found:
                self.missing.add_message(found[0])
                yield found
        self.missing.report()

    def _repair_message(self, number: int, data: bytes) -> ReadMessage | None:
        from ollm.store.session_files.repair import repair_line  # for damaged sessions only

        if number in self._unreadable:
            return None
        found = repair_line(data, number, self.damage)
        if not found:
            self._unreadable.add(number)
            self.missing.add_gap(number)
        return found

    def iter_calls(self) -> Iterator[ReadCall]:
        """Iterate over the calls in their newest state, each with its line, as they were first requested."""
        yield from map(self.read_call, list(self.table.calls))
        self.missing.report()

    def read_call(self, call_id: str) -> ReadCall:
        """Read a call in its newest state, with its line."""
        data = self.table.read_call(call_id)
        self.read += len(data)
        found = parse_call(data)
        assert found
        return found, data

    def _read_head(self) -> int:
        """Read the first line of a document, and return its length."""
        line = next((line for _, _, line in self._document.iter_lines()), b"")
        if not line.endswith(OPEN) or self._document.size > MAX_BYTES:
            raise IrregularFilesError
        self.head = journal.parse_object(line.removesuffix(OPEN) + b"}")
        if self.head.keys() & {"messages", "toolCalls"} or not isinstance(self.head.get("metadata", {}), dict):
            raise IrregularFilesError
        self._check_head()
        return len(line)

    def _check_head(self) -> None:
        """Report fields of the head that are not plausible."""
        metadata = self.head.setdefault("metadata", {})
        named = self.head.get("sessionId")
        if isinstance(named, str) and len(self._name) == _ID_CHARS and named.lower() != self._name:
            self.damage.note("the document has the id of another session")
        for name in [name for name, value in metadata.items() if not fits_metadata(name, value)]:
            self.damage.note(f"{name} is not what it should be")

    def _skip_contained(self) -> None:
        """Skip a journal that the document contains: its writer ended before the journal was removed."""
        contained = self.head["metadata"].pop(CONTAINED, None)
        if contained and contained == self._journal.compute_checksum():
            self._journal = SessionFile(None)

    def compute_journal_checksum(self) -> str:
        return self._files[0].compute_checksum()

    def _narrow(self, part: SessionPart) -> list[Range] | None:
        """Find the parts of the document that are needed, or return None if it must be read whole."""
        known, document = part.known, self._document
        if not known or document.stamp != known.document:
            return [] if part.least == 0 else None
        inode, size = self._journal.inode, self._journal.size
        begin = known.find_begin(max(0, min(part.after, known.last - part.least)) + 1)
        if size < known.size or (known.size and inode != known.journal) or not (begin or part.least == 0):
            return None
        end = known.find_end(part.before) if part.before else None
        begin = begin if begin and part.least else Waypoint(known.last + 1, document.size + known.size, 0)
        self.known, self.skipped, self.journal_good = known, begin.number - 1, known.size
        self.head = {**known.head, "metadata": dict(known.head.get("metadata") or {})}
        self._journal_range = max(0, begin.place - document.size), end.place - document.size if end else MAX_BYTES
        if begin.place >= document.size:
            return []
        end = end if end and end.place < document.size else known.end
        return [(begin.place, end.place), (begin.call_place, end.call_place)]

    def _read_lines(self, body: int) -> None:
        """Add all entries of the document, and note where its parts end."""
        middle = end = 0
        for start, stop, line in self._document.iter_lines(body):
            self._regular = start
            if line.startswith(MESSAGE) and not middle:
                self._add_message(line, start)
            elif line.startswith(CALL) and middle:
                self.table.add_call(line.rstrip(b",\n"), start)
            elif line == MIDDLE and not middle:
                middle = start
            elif line == CLOSE and middle and stop == self._document.size:
                end = start
            else:
                raise IrregularFilesError
        self._regular = self._document.size
        if not end:
            raise IrregularFilesError
        self.table.notes.end = Waypoint(self.table.last_number + 1, middle, end)

    def _read_part(self, begin: int, end: int) -> None:
        """Add the messages or the calls between two places of the document."""
        for start, _, line in self._document.iter_lines(begin):
            if start >= end:
                return
            if line.startswith(MESSAGE):
                self._add_message(line, start)
            else:
                self.table.add_call(line.rstrip(b",\n"), start)

    def _add_message(self, line: bytes, start: int) -> None:
        entry, number = line.rstrip(b",\n"), self.table.last_number + 1
        if not entry.endswith(b',"id":%d}' % number):
            if not is_valid_json(entry):
                raise IrregularFilesError
            number = read_number(entry)
        self.table.add_message(number, start, start + len(entry))
        if line.startswith(REQUEST) and self.table.notes.is_due(number, start):
            self.table.notes.add_request(number, start)

    def _read_journal(self) -> None:
        """Apply the journal to the head, and add its entries."""
        begin, stop = self._journal_range
        applied = self.known.size if self.known else 0
        for place, data, record in self._iter_records(begin, stop):
            self.table.add_record(record, data, self.table.journal_place + place)
            if place >= applied:
                self._change_head(record)
        if stop != MAX_BYTES:
            for _, _, record in self._iter_records(max(applied, stop), MAX_BYTES):
                self._change_head(record)

    def _change_head(self, record: journal.JournalRecord) -> None:
        if journal.lacks_record(self.head["metadata"], record):
            raise IrregularFilesError
        journal.change_head(self.head, record)

    def _iter_records(self, begin: int, stop: int) -> Iterator[tuple[int, bytes, journal.JournalRecord]]:
        """Iterate over the complete records with place and bytes. A truncated last one was never acknowledged."""
        for start, end, line in self._journal.iter_lines(begin):
            if start >= stop:
                return
            if end > MAX_BYTES:
                self.damage.refuse(f"the journal is too large to read ({self.damage.size // 1_000_000} MB)")
                return
            try:
                record = journal.parse_record(line)
            except journal.DECODE_ERRORS:
                if end == self._journal.size and journal.is_torn_record(line) and b'"partial":' not in line:
                    return
                raise
            self.journal_good = end
            yield start, line, record
