"""Read a session from document and journal together, line by line, without changing any file.

The journal is opened before the document, so that entries folded in between are found in the document.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ollm.domain.messages import JsonObject
from ollm.store.session_files import journal
from ollm.store.session_files.document import (
    DocumentSections,
    IrregularError,
    OddLayoutError,
    SessionDocument,
    detect_own_layout,
    read_number,
)
from ollm.store.session_files.files import (
    CONTAINED,
    MAX_BYTES,
    MAX_MESSAGE_NUMBER,
    DamageReport,
    MissingEntries,
    Range,
    SessionFile,
    convert_to_utf8,
    get_file_time,
    open_file,
)
from ollm.store.session_files.lenient import (
    fits_metadata,
    hash_message,
    is_torn_record,
    parse_object,
)

if TYPE_CHECKING:
    from ollm.store.session_files.salvage import Salvage


_ID_CHARS = 36  # of a session's id, which names its files


class SessionPart(msgspec.Struct, frozen=True):
    """The messages between two numbers, with their calls. Some more are read: from a user message on, and at least
    `least`. With a `least` of 0 no messages are needed. `calls_after` adds calls of earlier messages."""

    after: int
    least: int = 32
    before: int | None = None
    calls_after: int = MAX_MESSAGE_NUMBER


class SessionReader:
    """The entries of one session as bytes, oldest first. `head` holds the other fields, with the journal applied.

    Of a long session only `part` is read.
    """

    foreign = False  # missing or in another layout: to be written again before it is added to
    partial_at = ""
    narrowed = False  # messages up to number `skipped` are left out
    skipped = 0
    read = 0  # bytes of the entries that were taken
    mark: journal.JournalMark | None = None  # the last one, if only a part is read
    journal_good = 0  # bytes of whole journal records
    journal_end = b""  # that the last of them lacks
    _entries: SessionDocument | None = None
    _salvage: Salvage | None = None
    _in_lines = False  # the document is laid out as we write it
    answer = 0  # the number of the answer under way; 0 in journals of older versions
    _next_piece = 1
    _journal: SessionFile | None = None
    _document: SessionFile | None = None
    _head_place = 0  # in the journal: the head is as it was here

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
        self.newest_calls: list[str] = []  # ids of the document's last calls, if messages are left out
        self._journal_range = 0, MAX_BYTES
        self._part, self._name = part, document.stem if document else ""
        self.partial: journal.Parts = []
        self._numbers = array("Q")  # of the journal's messages, and the place of each
        self._places = array("Q")
        self._pieces: list[Range] = []  # of the answer under way
        self._begun: dict[int, list[Range]] = {}  # for a message that continues a partial answer: where that is
        self._mended: dict[int, bytes] = {}  # entries that are not in the file as they are read, by place
        self._call_places: dict[str, list[Range]] = {}
        try:
            self._journal = self._open_file(journal_path, waiting)
            self._document = self._open_file(document)
            self.damage.size = sum(file.size for file in (self._document, self._journal) if file)
            self._read_files()
            if not self._document and document and not self.damage.too_large:
                self.damage.note("the session's document is missing")
        except BaseException:
            self.close()
            raise
        heard = DamageReport() if part and part.before else self.damage  # messages in between are left out
        self.missing = MissingEntries(heard, self.head, part=part is not None)

    def _read_files(self) -> None:
        try:
            self._read_head()
            self._check_head()
            self._skip_contained()
            if self._part:
                self._narrow(self._part)
            if not self._salvage:
                self._read_journal()
                self.partial = self._join_partial(self._pieces)
        except IrregularError as error:
            self._read_by_shape(error)
        if self._salvage:
            self.head = self._salvage.head
            self._check_head()
            self._take_salvaged()

    def _open_file(self, path: Path | None, waiting: bytes = b"") -> SessionFile | None:
        """Open a file as UTF-8, converting any other encoding."""
        descriptor = open_file(path, self.damage) if path else None
        if descriptor is not None:
            converted = convert_to_utf8(descriptor)
            if converted is not None:
                os.close(descriptor)
                descriptor, self.foreign = converted, True
        return SessionFile(descriptor, waiting) if descriptor is not None or waiting else None

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes of the entries read so far, and of all files."""
        return min(self.read, self.damage.size), self.damage.size

    def close(self) -> None:
        for file in (self._journal, self._document):
            if file:
                file.close()

    def _skip_contained(self) -> None:
        """Skip a journal that the document contains: its writer ended before the journal was removed."""
        contained = (self.head.get("metadata") or {}).pop(CONTAINED, None)
        if contained and contained == self.compute_journal_checksum() and self._journal:
            self._journal.close()
            self._journal = None

    def compute_journal_checksum(self) -> str:
        return self._journal.compute_checksum() if self._journal else ""

    def _narrow(self, part: SessionPart) -> None:
        """Skip everything outside `part`, if the document is in our own layout."""
        if not self._entries or not self._document:
            return
        if self._narrow_journal(part, self._document):
            self._entries.narrow((0, 0), (0, 0))
            self.narrowed = True
        elif part.least:
            with contextlib.suppress(OddLayoutError):
                sections = DocumentSections(self._document)
                begin = sections.find_beginning(part.after, part.least)
                messages = sections.find_messages(begin, part.before)
                calls = sections.find_calls(min(begin, part.calls_after), part.before)
                self.newest_calls = sections.list_newest_calls()
                self._entries.narrow(messages, calls)
                self.skipped, self.narrowed = begin, True

    def _narrow_journal(self, part: SessionPart, document: SessionFile) -> bool:
        """Begin at a mark of the journal if everything needed follows it; otherwise read the whole journal."""
        marks = journal.iter_marks(self._journal) if self._journal and not self.foreign else iter(())
        newest = next(marks, None)
        if newest is None or not journal.is_same_document(newest.mark.document, document.stamp):
            return False
        self.mark, self._head_place, self.head = newest.mark, newest.place, dict(newest.mark.head)
        self.head["metadata"] = dict(self.head.get("metadata") or {})
        wanted = min(part.after, part.calls_after, newest.mark.last - part.least)
        begin, stop = None, MAX_BYTES
        for placed in itertools.chain((newest,), marks):
            if part.before and placed.mark.last >= part.before - 1:
                stop = placed.place
            if placed.mark.last <= wanted:
                begin = placed
                break
        self._journal_range = begin.place if begin else 0, stop
        if begin:
            self.skipped, self.newest_calls = begin.mark.last, [f"c{newest.mark.calls}"]
        return begin is not None

    def iter_messages(self) -> Iterator[bytes]:
        """Iterate over the messages by number."""
        last = self.skipped
        try:
            for number, data in self._iter_strictly() if not self._salvage else ():
                yield data
                last = number
        except IrregularError as error:
            self._read_by_shape(error)
            self._take_salvaged()
            self.missing.promised *= not (self._salvage and self._salvage.is_promise_wrong)
        if self._salvage:
            yield from self._salvage.iter_messages(last)

    def _iter_strictly(self) -> Iterator[tuple[int, bytes]]:
        last, place = 0 if self._part else self.skipped, 0
        for data in self._entries.iter_messages() if self._entries else ():
            number = read_number(data)
            self._check_next(last, number)
            while place < len(self._numbers) and self._numbers[place] <= number:
                if self._numbers[place] == number and hash_message(self._read_message(place)) != hash_message(data):
                    raise IrregularError
                if self.skipped < self._numbers[place] < number:
                    raise IrregularError
                place += 1
            last = number
            yield number, data
        if not self._part and last < self.missing.promised:
            self._check_next(last, self.missing.promised + 1)
        for at in range(place, len(self._numbers)):
            number = self._numbers[at]
            if number > self.skipped:
                self._check_next(last, number)
                last = number
                yield number, self._read_message(at)
        if self.answer:
            self._check_next(last, self.answer)

    def _check_next(self, last: int, number: int) -> None:
        """Check that a number follows the last one, or one that is known to be missing."""
        left_out = self._part and (not last or self._part.before)
        if number <= last or not (left_out or number == last + 1 or self.missing.is_known(last + 1, number - 1)):
            raise IrregularError

    def _read_by_shape(self, error: IrregularError | None = None) -> None:
        """Read files that are not as we write them."""
        if error:
            self.damage.stop_if_strict(str(error))
        self.foreign, self.journal_good = True, self._journal.size if self._journal else 0
        from ollm.store.session_files.salvage import Salvage

        self._salvage = Salvage(self._document, self._journal, self.damage, in_lines=self._in_lines)
        if error and str(error) and not self.damage.text:
            self.damage.note(str(error))

    def _take_salvaged(self) -> None:
        if found := self._salvage:
            self.partial, self.partial_at, self.answer = found.partial, found.partial_at, found.answer

    def _read_message(self, place: int) -> bytes:
        """Read a recorded message. One that continues a partial answer is joined with it."""
        data = self._read_entry(self._places[2 * place], self._places[2 * place + 1])
        if place not in self._begun:
            return data
        found = parse_object(data)
        parts = journal.extend_parts(self._join_partial(self._begun[place]), found.get("parts") or [])
        return journal.encode_json({**found, "parts": parts})

    def _join_partial(self, pieces: list[Range]) -> journal.Parts:
        parts: journal.Parts = []
        for start, end in pieces:
            parts = journal.extend_parts(parts, journal.parse_record(self._read_entry(start, end)).partial or [])
        return parts

    def _read_entry(self, start: int, end: int) -> bytes:
        """Read a message or call at a place found before."""
        assert self._journal
        return self._mended.get(start) or self._journal.read(start, end)

    def iter_calls(self) -> Iterator[bytes]:
        """Iterate over the calls in their newest state, in the order in which they were first requested."""
        count = 0
        try:
            for data in self._iter_calls_strictly() if not self._salvage else ():
                yield data
                count += 1
        except IrregularError as error:
            self._read_by_shape(error)
        if self._salvage:
            yield from itertools.islice(self._salvage.iter_calls(), count, None)

    def _iter_calls_strictly(self) -> Iterator[bytes]:
        waiting, known = dict(self._call_places), set()
        for data in self._entries.iter_calls() if self._entries else ():
            call_id = _read_call_id(data)
            if call_id in known and journal.read_call_number(call_id):  # others may repeat their ids
                raise IrregularError
            known.add(call_id)
            updates = waiting.pop(call_id, None) if waiting else None
            yield self._apply_updates([data], updates) if updates else data
        for places in waiting.values():
            yield self._apply_updates([], places)

    def _apply_updates(self, found: list[bytes], places: list[Range]) -> bytes:
        records = [*found, *itertools.starmap(self._read_entry, places)]
        if not all(journal.is_same_call(records[0], record) for record in records[1:]):
            raise IrregularError(f"the id of tool call {_read_call_id(records[0])} is used more than once")
        return journal.join_call(map(parse_object, records))

    def _read_head(self) -> None:
        if not self._document:
            self.foreign = True
            return
        if self._document.size > MAX_BYTES:
            self.damage.refuse(f"the file is too large to read ({self._document.size // 1_000_000} MB)")
        first = detect_own_layout(self._document)
        self._in_lines = first is not None
        if not first:
            self._read_by_shape()
        else:
            self._entries = SessionDocument(self._document, first)
            self.head = self._entries.head

    def _check_head(self) -> None:
        named = self.head.get("sessionId")
        if isinstance(named, str) and len(self._name) == _ID_CHARS and named.lower() != self._name:
            self.damage.note("the document has the id of another session")
        metadata = self.head.get("metadata")
        self.head["metadata"] = held = dict(metadata) if isinstance(metadata, dict) else {}
        for name in [name for name, value in held.items() if not fits_metadata(name, value)]:
            self.damage.note(f"{name} is not what it should be")

    def _read_journal(self) -> None:
        """Apply the journal to the head, and note where its messages and calls are."""
        begin, stop = self._journal_range
        for place, data, record in self._iter_records(begin, stop):
            if isinstance(record.call, msgspec.Raw):
                call = bytes(record.call)
                self._call_places.setdefault(_read_call_id(call), []).append(self._note_place(place, data, call))
            if record.partial is not None:
                self._add_piece(place, data, record)
            if isinstance(record.message, msgspec.Raw):
                self._add_message(place, data, bytes(record.message), record)
            if place >= self._head_place:
                self._change_head(place, record)
        if stop != MAX_BYTES:
            for place, _, record in self._iter_records(self._head_place, MAX_BYTES):
                self._change_head(place, record)

    def _add_piece(self, place: int, data: bytes, record: journal.JournalRecord) -> None:
        answer, number = record.piece or (0, len(self._pieces) + 1)
        if (self._pieces and answer != self.answer) or (number != self._next_piece and not record.anew):
            raise IrregularError("the journal's records are out of order")
        if record.anew:
            self._pieces = []
        self._pieces.append((place, place + len(data)))
        self.answer, self._next_piece = answer, number + 1

    def _add_message(self, place: int, data: bytes, message: bytes, record: journal.JournalRecord) -> None:
        number, last = read_number(message), self._numbers[-1] if self._numbers else 0
        own = (self.answer or number, self._next_piece) if self._pieces else (number, 1)
        if own[0] != number or (record.continues and (record.piece or own) != own):
            raise IrregularError("the journal's records are out of order")
        if number <= last:
            raise IrregularError
        if record.continues:
            self._begun[len(self._numbers)] = self._pieces
        self._pieces, self.answer, self._next_piece = [], 0, 1
        self._numbers.append(number)
        self._places.extend(self._note_place(place, data, message))

    def _note_place(self, place: int, data: bytes, entry: bytes) -> Range:
        """Return the place of an entry in its record."""
        start = place + data.find(entry)
        return start, start + len(entry)

    def _change_head(self, place: int, record: journal.JournalRecord) -> None:
        held = self.head.get("metadata") or {}
        for name, (start, _) in (record.append or {}).items():
            if isinstance(before := held.get(name), list) and len(before) < start:
                raise IrregularError(f"the journal lacks a record before byte {place}")
        journal.change_head(self.head, record)
        if record.partial is not None:
            self.partial_at = record.at

    def _iter_records(self, begin: int, stop: int) -> Iterator[tuple[int, bytes, journal.JournalRecord]]:
        """Iterate over the complete records with place and bytes. A truncated last one was never acknowledged."""
        if not self._journal:
            return
        size = self._journal.size
        for start, end, data in self._journal.iter_lines(begin):
            if start >= stop:
                return
            if end > MAX_BYTES:
                self.damage.refuse(f"the journal is too large to read ({size // 1_000_000} MB)")
                return
            try:
                record = journal.parse_record(data)
            except journal.DECODE_ERRORS as error:
                if end == size and is_torn_record(data):
                    yield from self._complete_last(start, data)
                    return
                raise IrregularError(f"a record is damaged in the journal at byte {start}") from error
            self.journal_good = end
            yield start, data, record

    def _complete_last(self, start: int, data: bytes) -> Iterator[tuple[int, bytes, journal.JournalRecord]]:
        if whole := journal.complete_piece(data):
            self._mended[start], self.journal_end = whole, journal.PIECE_END
            self.journal_good = start + len(whole) - len(journal.PIECE_END)
            yield start, whole, journal.parse_record(whole)


def _read_call_id(data: bytes) -> str:
    try:
        return journal.read_call_id(data)
    except journal.DECODE_ERRORS:
        return ""
