"""Read a session from document and journal together, without changing any file.

The files are read line by line in one pass. Lines that are not as the writer writes them are salvaged, in memory. The
journal is opened before the document, so that entries folded in between are found in the document.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.messages import JsonObject, Message
from ollm.domain.session import SCHEMA_VERSION, Session
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.store.session_files import journal
from ollm.store.session_files.document import (
    CALL,
    CLOSE,
    MESSAGE,
    MIDDLE,
    OPEN,
    ReadCall,
    ReadMessage,
    complete_head,
    fits_metadata,
    is_valid_json,
    iter_document,
    make_session,
    parse_call,
    parse_message,
    read_number,
)
from ollm.store.session_files.entry_table import EntryTable, IrregularEntryError, IrregularFilesError, Range
from ollm.store.session_files.files import (
    CONTAINED,
    MAX_BYTES,
    DamageReport,
    SessionFile,
    get_file_time,
    open_file,
)
from ollm.store.session_files.missing import MissingEntries
from ollm.store.session_files.waypoints import REQUEST, KnownState, SessionPart, Waypoint

if TYPE_CHECKING:
    from ollm.store.session_files.salvage import Salvager

_ENDS = b" \t\r\n,"  # Lines end so in any editor.
_MIDDLE, _CLOSE = MIDDLE.rstrip(), CLOSE.rstrip()
_MESSAGES, _CALLS, _ENDED = range(3)  # These are the sections of a document.
_MOVED = "lines of the document are not in their place"
_ID_CHARS = 36  # A session's id names its files.
OVERSIZED_BYTES = 1 << 24  # So much is read of a file over the limit.
_OTHERS = tuple(b'{"role":"%s"' % role for role in (b"assistant", b"tool", b"system"))
INTERRUPTED_TEXT = "ollm stopped before this call finished. It may or may not have taken effect."


class SessionReader:
    """The entries of one session, oldest first, read on demand and not kept. `head` holds the other fields, with the
    journal applied.

    Of a long session only `part` is read. The damage grows while entries are read, the messages first. Calls that can
    no longer finish, because no process is `alive`, count as interrupted.
    """

    foreign = False  # The files have to be written again before they are added to.
    is_original = False  # The document has another layout: a copy is kept.
    known: KnownState | None = None  # Reading began from this state, if only a part is read.
    skipped = 0  # Messages up to this number are left out.
    read = 0  # The entries taken so far have so many bytes.
    journal_good = 0  # The whole records of the journal have so many bytes.
    table: EntryTable
    unfinished: Message | None = None  # This is the unfinished answer, once the messages before it are read.

    def __init__(
        self,
        document: Path | None,
        journal_path: Path | None,
        *,
        waiting: bytes = b"",
        part: SessionPart | None = None,
        alive: bool = True,
    ) -> None:
        self.report = DamageReport()
        self.written_at = get_file_time(document, journal_path)
        self.head: JsonObject = {}
        self._name = document.stem if document else ""
        self._alive = alive
        self._found: set[str] = set()
        self._files: list[SessionFile] = []
        self._odd: list[tuple[int, bytes]] = []  # These lines wait for the salvager, with their places.
        try:
            self._opened_journal = self._open_file(journal_path, waiting)
            self._document = self._open_file(document)
            self.report.size = sum(file.size for file in self._files)
            try:
                self._read_files(part)
            except IrregularFilesError:
                self._read_files(None)
            if document and not self._files[1].size and not self.report.too_large:
                self.report.note("the session's document is missing")
        except BaseException:
            self.close()
            raise
        heard = DamageReport() if part and part.before else self.report  # The messages in between are left out.
        self.missing = MissingEntries(heard, self.head, self.table, part=self.known is not None)

    @cached_property
    def session(self) -> Session:
        """The session without its messages and calls."""
        return make_session(self.head, self._name, self.written_at)

    @property
    def damage(self) -> str | None:
        return self.report.text

    @property
    def unreadable(self) -> bool:
        """Return True if the files are damaged and nothing could be read; valid after reading."""
        return self.damage is not None and not (self.missing.message_count or self.table.calls or self.partial)

    @property
    def read_only(self) -> str | None:
        """Reason why the session must not be written, or None if it may be."""
        if self.report.too_large:
            return self.damage
        version = self.session.metadata.schema_version
        return f"it was written by a newer version (schema {version})" if version > SCHEMA_VERSION else None

    @property
    def partial(self) -> journal.Parts:
        """The parts of an answer that is not finished."""
        return self.table.partial.parts

    def _open_file(self, path: Path | None, waiting: bytes = b"") -> SessionFile:
        file = SessionFile(open_file(path, self.report) if path else None, waiting)
        self._files.append(file)
        if file.size <= MAX_BYTES:
            return file
        self.report.refuse(f"the file is too large to read ({file.size // 1_000_000} MB)")
        return SessionFile(None, file.read(0, OVERSIZED_BYTES))

    def _read_files(self, part: SessionPart | None) -> None:
        """Read the head, then all lines or those of a part, then the journal."""
        self.known, self.skipped, self.journal_good, self._journal_range = None, 0, 0, (0, MAX_BYTES)
        self._journal, self.head = self._opened_journal, {}
        body = self._read_head()
        ranges = self._narrow(part) if part and body else None
        self.table = EntryTable(self._document, self._journal, self.known, self.skipped, self.report)
        self._section, self._odd = _MESSAGES, []
        if ranges is None:
            self._read_document(body)
        for self._section, (begin, end) in enumerate(ranges or ()):
            self._read_lines(begin, end)
        if not body:
            self._check_head()
        self.table.end_document()
        self._read_journal()
        self.table.finish()
        self.foreign |= not self.table.in_order
        self.journal_good = self._journal.size if self.foreign else self.journal_good

    def make_known(self, last: int, calls: int) -> KnownState | None:
        """Make the state of these files, or return None if they are not as we write them."""
        if self.foreign or not self._document.stamp or self.report.text:
            return None
        return KnownState(
            document=self._document.stamp,
            journal=self._journal.inode,
            size=self.journal_good,
            head=self.head,
            last=last,
            calls=calls,
            end=self.table.notes.end,
            waypoints=self.table.notes.list_waypoints(),
        )

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes of the entries read so far, and of all files."""
        return min(self.read, self.report.size), self.report.size

    def close(self) -> None:
        for file in self._files:
            file.close()

    def read_messages(self, leave_out: tuple[bytes, ...] = ()) -> Iterator[ReadMessage]:
        """Yield the messages by number, each with its line, and the unfinished answer as far as it got. Those whose
        line begins with one of `leave_out` are skipped unread."""
        self.missing.message_count = 0
        unreadable: set[int] = set()
        for number, data in zip(self.table.numbers, self.table.iter_messages(), strict=True):
            if leave_out and data.startswith(leave_out):
                continue
            self.read += len(data)
            message = parse_message(data)
            if found := (message, data) if message else self._salvager.repair_line(data, number):
                self.missing.add_message(found[0])
                yield found
            else:
                unreadable.add(number)
        self.table.drop_messages(unreadable)
        self.missing.report()
        if self.partial:
            self.unfinished = self._make_unfinished()
            yield self.unfinished, journal.encode_json(self.unfinished)

    def _make_unfinished(self) -> Message:
        partial = self.table.partial
        number = max(partial.number, self.missing.last_number + 1)
        shaped = {"role": "assistant", "parts": partial.parts, "timestamp": partial.at}
        return msgspec.convert({**shaped, "id": number, "interrupted": True}, Message)

    def iter_messages(self) -> Iterator[Message]:
        for message, _ in self.read_messages():
            yield message

    def read_user_words(self) -> dict[int, str]:
        """Read the user's messages by number, skipping all others unread."""
        messages = self.read_messages(leave_out=_OTHERS)
        return {message.id: message.text for message, _ in messages if message.role == "user"}

    def read_calls(self) -> Iterator[ReadCall]:
        """Yield the calls in their newest state, each with its line, as they were first requested."""
        yield from filter(None, map(self._read_call, list(self.table.calls)))
        self.missing.report()

    def _read_call(self, call_id: str) -> ReadCall | None:
        data = self.table.read_call(call_id)
        self.read += len(data)
        if call := parse_call(data):
            return call, data
        self.foreign = True
        found = self._salvager.repair_call(data)
        if not found:
            del self.table.calls[call_id]
        return found

    def iter_calls(self) -> Iterator[ToolCallRecord]:
        """Iterate over all calls. One that can no longer finish counts as interrupted."""
        for call, _ in self.read_calls():
            yield self._end_call(call)

    def find_call(self, call_id: str) -> ToolCallRecord | None:
        """Find a call; it is returned once."""
        if call_id in self._found or call_id not in self.table.calls:
            return None
        self._found.add(call_id)
        found = self._read_call(call_id)
        return self._end_call(found[0]) if found else None

    def iter_other_calls(self) -> Iterator[ToolCallRecord]:
        """Iterate over the calls not returned by `find_call`; no readable message names them."""
        yield from filter(None, map(self.find_call, list(self.table.calls)))
        self.missing.report()

    def _end_call(self, call: ToolCallRecord) -> ToolCallRecord:
        return mark_interrupted(call) if call.status == "running" and not self._alive else call

    def iter_document(self, head: JsonObject | None = None) -> Iterator[bytes]:
        """Yield everything readable as one JSON document; undamaged entries stay unchanged."""
        head = complete_head(self.head, self.session) if head is None else head
        messages, calls = self.read_messages(), self.read_calls()
        return iter_document(head, (line for _, line in messages), (line for _, line in calls))

    def _read_head(self) -> int:
        """Read the first line of a document in our layout, and return its length; 0 for any other document."""
        line = next((line for _, _, line in self._document.iter_lines()), b"")
        with contextlib.suppress(*journal.DECODE_ERRORS):
            if (start := line.rstrip()).endswith(OPEN.rstrip()):
                head = journal.parse_object(start.removesuffix(OPEN.rstrip()) + b"}")
                if not head.keys() & {"messages", "toolCalls"} and isinstance(head.get("metadata", {}), dict):
                    self.head = head
                    self._check_head()
                    return len(line)
        return 0

    def _check_head(self) -> None:
        """Report fields of the head that are not plausible, and skip a journal that the document contains: its writer
        ended before the journal was removed."""
        metadata, named = self.head.setdefault("metadata", {}), self.head.get("sessionId")
        if not isinstance(metadata, dict):
            metadata = self.head["metadata"] = {}
            self.report.note("the metadata is damaged")
        if isinstance(named, str) and len(self._name) == _ID_CHARS and named.lower() != self._name:
            self.report.note("the document has the id of another session")
        for name in [name for name, value in metadata.items() if not fits_metadata(name, value)]:
            self.report.note(f"{name} is not what it should be")
        contained = metadata.pop(CONTAINED, None)
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

    def _read_document(self, body: int) -> None:
        """Add all entries of the document. One in another layout is converted."""
        document = self._document
        if not body and document.size:
            self._note_irregular()
            if self._salvager.add_document(document.read(0, document.size)):
                self.is_original = True
                return
            self.report.note("the document is not valid JSON")
        if document.size:
            self._read_lines(body, document.size)
            if self._section < _ENDED:
                self._note_irregular("the file is truncated")

    def _read_lines(self, begin: int, stop: int) -> None:
        """Add the entries between two places of the document."""
        for start, _, line in self._document.iter_lines(begin):
            if start >= stop:
                break
            try:
                if line.startswith((MESSAGE, CALL)):
                    if self._odd:
                        self._salvage_lines()
                    self._add_entry(line, start)
                elif entry := line.strip():
                    self._change_section(entry, start)
            except (IrregularEntryError, *journal.DECODE_ERRORS):
                self._odd.append((start, line))
        self._salvage_lines()

    def _add_entry(self, line: bytes, start: int) -> None:
        is_message = line.startswith(MESSAGE)
        if is_message:
            self._add_message(line, start)
        else:
            self.table.add_call(line.rstrip(_ENDS), start)
        if is_message != (self._section == _MESSAGES):
            self._note_irregular(_MOVED)

    def _change_section(self, entry: bytes, start: int) -> None:
        """Note where the parts of the document end."""
        if entry not in (_MIDDLE, _CLOSE):
            raise IrregularEntryError
        last, notes = self._section, self.table.notes
        self._section = _CALLS if entry == _MIDDLE else _ENDED
        if last + 1 != self._section:
            self._note_irregular(_MOVED)
        notes.end = Waypoint(self.table.last_number + 1, start if last == _MESSAGES else notes.end.place, start)

    def _add_message(self, line: bytes, start: int) -> None:
        entry, number = line.rstrip(_ENDS), self.table.last_number + 1
        if not entry.endswith(b',"id":%d}' % number):
            number = read_number(entry) if is_valid_json(entry) else 0
            if not number:
                raise IrregularEntryError
        self.table.add_message(number, start, start + len(entry))
        if line.startswith(REQUEST):
            self.table.notes.add_request(number, start)

    def _note_irregular(self, text: str = "") -> None:
        """Note that the files have to be written again. A part of them is not enough then."""
        if self.known:
            raise IrregularFilesError
        self.foreign = True
        if text:
            self.report.note(text)

    @property
    def _salvager(self) -> Salvager:
        from ollm.store.session_files.salvage import Salvager  # Only damaged sessions need it.

        return Salvager(self.table, self.head, self.report, self._change_head)

    def _salvage_lines(self) -> None:
        """Salvage the lines before this one that are not as the writer writes them."""
        if self._odd:
            self._note_irregular()
            odd, self._odd = self._odd, []
            self._salvager.add_bytes(b"".join(line for _, line in odd), odd[0][0])

    def _read_journal(self) -> None:
        """Apply the journal to the head, and add its entries."""
        begin, stop = self._journal_range
        applied = self.known.size if self.known else 0
        for place, data, record in self._iter_records(begin, stop):
            self._salvage_lines()
            try:
                self.table.add_record(record, data, self.table.journal_place + place)
            except (IrregularEntryError, *journal.DECODE_ERRORS):
                self._odd.append((place, data))
                continue
            if place >= applied:
                self._change_head(record)
        self._salvage_lines()
        if stop != MAX_BYTES:
            for _, _, record in self._iter_records(max(applied, stop), MAX_BYTES):
                self._change_head(record)

    def _change_head(self, record: journal.JournalRecord) -> None:
        metadata = self.head.setdefault("metadata", {})
        if journal.lacks_record(metadata, record):
            self._note_irregular("the journal lacks a record")
        journal.change_head(self.head, record)

    def _iter_records(self, begin: int, stop: int) -> Iterator[tuple[int, bytes, journal.JournalRecord]]:
        """Iterate over the complete records with place and bytes. A truncated last one was never acknowledged."""
        for start, end, line in self._journal.iter_lines(begin):
            if start >= stop:
                return
            try:
                record = journal.parse_record(line)
            except journal.DECODE_ERRORS:
                if end < self._journal.size or not journal.is_torn_record(line):
                    if line.startswith(journal.RECORD_START):
                        self._salvage_lines()
                    self._odd.append((start, line))
                continue
            self.journal_good = end
            yield start, line, record


def mark_interrupted(call: ToolCallRecord) -> ToolCallRecord:
    """Mark a call as interrupted, because the program ended before it did."""
    return msgspec.structs.replace(
        call,
        status="interrupted",
        result=call.result or RecordedResult(llm_content=INTERRUPTED_TEXT),
        error=ErrorInfo(type="Interrupted", message=INTERRUPTED_TEXT),
    )
