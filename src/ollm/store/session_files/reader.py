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
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ollm.domain.messages import JsonObject
from ollm.store.session_files import journal
from ollm.store.session_files.document import (
    DocumentSections,
    OddLayoutError,
    SessionDocument,
    detect_own_layout,
    message_key_decoder,
)
from ollm.store.session_files.files import (
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
    find_records,
    fits_metadata,
    hash_message,
    is_torn_record,
    parse_object,
    parse_record_leniently,
)

if TYPE_CHECKING:
    from ollm.store.session_files.scan import DocumentScan


_OTHER_SESSION = "the journal holds messages that are not this session's"
_DISORDER = "the journal's records are out of order"
_NUMBER_TAIL_BYTES = 20
_NO_MESSAGE = 0, b""


class SessionPart(NamedTuple):
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
    _entries: SessionDocument | DocumentScan | None = None
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
        self._numbers = array("Q")  # of the journal's messages, and the place of each
        self._places = array("Q")
        self._begun: dict[int, list[Range]] = {}  # for a message that continues a partial answer: where that is
        self._partial_places: list[Range] = []
        self._mended: dict[int, bytes] = {}  # messages and calls of damaged records, by place
        self._call_places: dict[str, list[Range]] = {}
        try:
            self._journal = self._open_file(journal_path, waiting)
            self._document = self._open_file(document)
            self.damage.size = sum(file.size for file in (self._document, self._journal) if file)
            self._read_head(expected=document is not None)
            if part:
                self._narrow(part)
            self._read_journal()
            self.partial = self._join_partial(self._partial_places)  # the answer under way
        except BaseException:
            self.close()
            raise
        heard = DamageReport() if part and part.before else self.damage  # messages in between are left out
        self.missing = MissingEntries(heard, self.head, part=part is not None)

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

    def _narrow(self, part: SessionPart) -> None:
        """Skip everything outside `part`, if the document is in our own layout."""
        if not isinstance(self._entries, SessionDocument) or not self._document:
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
        """Iterate over the messages by number; one that document and journal both contain comes once."""
        held = self._entries.iter_messages() if self._entries else iter(())
        return self._merge_messages(held) if self._numbers else held

    def _merge_messages(self, held: Iterator[bytes]) -> Iterator[bytes]:
        added = self._iter_journal_messages()
        number, data = next(added, _NO_MESSAGE)
        for count, kept in enumerate(held, 1):
            last = (read_number(kept) or count) if number else 0
            while number and number < last:
                if number > self.skipped:
                    self.damage.note(f"message {number} is in the journal only")
                    yield data
                number, data = next(added, _NO_MESSAGE)
            if number and number == last:
                if hash_message(data) != hash_message(kept):
                    self.damage.note(_OTHER_SESSION)
                number, data = next(added, _NO_MESSAGE)
            yield kept
        if number:
            yield data
            yield from (data for _, data in added)

    def _iter_journal_messages(self) -> Iterator[tuple[int, bytes]]:
        """Iterate over the journal's messages with their numbers, ascending."""
        order: list[int] | range = range(len(self._numbers))
        if any(later <= number for number, later in itertools.pairwise(self._numbers)):
            order = sorted(order, key=self._numbers.__getitem__)
            self._note_disorder()
        last, before = 0, b""
        for place in order:
            number, data = self._numbers[place], self._read_message(place)
            if number != last:
                yield number, data
                last, before = number, data
            elif hash_message(before) != hash_message(data):
                self.damage.note(_OTHER_SESSION)

    def _note_disorder(self) -> None:
        known: set[int] = set()
        last = 0
        for number in self._numbers:
            if number < last and number not in known:
                self.damage.note(_DISORDER)
            known.add(number)
            last = number

    def _read_message(self, place: int) -> bytes:
        """Read a recorded message. One that continues a partial answer is joined with it."""
        data = self._read_entry(self._places[2 * place], self._places[2 * place + 1])
        if place not in self._begun:
            return data
        found, partial = parse_object(data), self._join_partial(self._begun[place])
        more = found.get("parts") or []
        parts = journal.extend_parts(partial, more if isinstance(more, list) else [more])
        return journal.encode_json({**found, "parts": parts})

    def _join_partial(self, places: list[Range]) -> journal.Parts:
        parts: journal.Parts = []
        for place in places:
            parts = journal.extend_parts(parts, parse_record_leniently(self._read_entry(*place)).partial or [])
        return parts

    def _read_entry(self, start: int, end: int) -> bytes:
        """Read a message or call at a place found before."""
        assert self._journal
        return self._mended.get(start) or self._journal.read(start, end)

    def iter_calls(self) -> Iterator[bytes]:
        """Iterate over the calls in their newest state, in the order in which they were first requested."""
        waiting = dict(self._call_places)
        for data in self._entries.iter_calls() if self._entries else ():
            updates = waiting.pop(_read_call_id(data), None) if waiting else None
            yield self._apply_updates(data, updates) if updates else data
        for places in waiting.values():
            yield self._apply_updates(b"{}", places)

    def _apply_updates(self, data: bytes, places: list[Range]) -> bytes:
        """Apply the journal's records to a call; a start never overrides an end."""
        found: JsonObject = {}
        with contextlib.suppress(ValueError, RecursionError):
            found = parse_object(data)
        changes = [parse_object(self._read_entry(*place)) for place in places]
        for change in sorted(changes, key=lambda change: change.get("status") != "running"):
            found |= change
        return journal.encode_json(found)

    def _read_head(self, expected: bool) -> None:
        if not self._document:
            self.foreign = True
            if expected and not self.damage.too_large:
                self.damage.note("the session's document is missing")
            return
        first = detect_own_layout(self._document)
        if first:
            self._entries = SessionDocument(self._document, first, self.damage)
        else:
            from ollm.store.session_files.scan import DocumentScan

            self._entries = DocumentScan(self._document, self.damage)
            self.foreign = True
        self.head = self._entries.head
        size = self._document.size
        if size > MAX_BYTES:
            self.damage.refuse(f"the file is too large to read ({size // 1_000_000} MB)")
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
                self._partial_places = [] if record.anew else self._partial_places
                self._partial_places.append((place, place + len(data)))
            if isinstance(record.message, msgspec.Raw):
                self._add_message(place, data, bytes(record.message), record.continues)
            if place >= self._head_place:
                self._change_head(place, record)
        if stop != MAX_BYTES:
            for place, _, record in self._iter_records(self._head_place, MAX_BYTES):
                self._change_head(place, record)

    def _add_message(self, place: int, data: bytes, message: bytes, continues: bool) -> None:
        if continues and not self._partial_places:
            self.damage.note("the journal lacks the beginning of an answer")
        if continues:
            self._begun[len(self._numbers)] = self._partial_places
        self._partial_places = []
        before = self._numbers[-1] if self._numbers else MAX_MESSAGE_NUMBER - 1
        self._numbers.append(read_number(message) or before + 1)
        self._places.extend(self._note_place(place, data, message))

    def _note_place(self, place: int, data: bytes, entry: bytes) -> Range:
        """Return the place of an entry in its record; keep the entry itself if the record is damaged."""
        start = place + max(0, at := data.find(entry))
        if at < 0:
            self._mended[start] = entry
        return start, start + len(entry)

    def _change_head(self, place: int, record: journal.JournalRecord) -> None:
        held = self.head.get("metadata") or {}
        for name, (start, _) in (record.append or {}).items():
            if isinstance(before := held.get(name), list) and len(before) < start:
                self.damage.note(f"the journal lacks a record before byte {place}")
        journal.change_head(self.head, record)
        if record.partial is not None:
            self.partial_at = record.at

    def _iter_records(self, begin: int, stop: int) -> Iterator[tuple[int, bytes, journal.JournalRecord]]:
        """Iterate over the complete records with place and bytes. A truncated last one was never acknowledged."""
        if not self._journal:
            return
        damage, strange, before, size = self.damage, False, b"", self._journal.size
        for start, end, data in self._journal.iter_lines(begin):
            if start >= stop:
                return
            if end > MAX_BYTES:
                damage.refuse(f"the journal is too large to read ({size // 1_000_000} MB)")
                return
            if data == before:
                if b'"partial":' in data:  # an answer under way must not grow twice
                    damage.note(f"a record is twice in the journal, at byte {start}")
                self.journal_good = end
                continue
            before = data
            try:
                record = journal.parse_record(data)
            except journal.DECODE_ERRORS:
                if end == size and is_torn_record(data):
                    return
                found = list(find_records(data))
                if sum(last - first for first, last, _ in found) == len(data.strip()):
                    what = "a record is damaged" if len(found) == 1 else "records are joined"
                    damage.note(f"{what} in the journal at byte {start}")
                elif not strange:
                    damage.count_lost_entry(f"the journal is damaged at byte {start}")
                    strange = True
                self.journal_good = end
                yield from ((start + first, data[first:last], one) for first, last, one in found)
            else:
                strange = False
                self.journal_good = end
                yield start, data, record


def read_number(data: bytes) -> int:
    """Read the number of a message, or return 0 if it has none."""
    head, _, last = data[-_NUMBER_TAIL_BYTES:].rpartition(b',"id":')
    if head and last[-1:] == b"}" and last[:-1].isdigit():  # our own lines end so: no need to parse them
        number = int(last[:-1])
    else:
        try:
            number = message_key_decoder.decode(data).id
        except journal.DECODE_ERRORS:
            return 0
    return number if 0 < number <= MAX_MESSAGE_NUMBER else 0


def _read_call_id(data: bytes) -> str:
    try:
        return journal.read_call_id(data)
    except journal.DECODE_ERRORS:
        return ""
