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
    OddLayoutError,
    PlacedEntry,
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
    find_records,
    fits_metadata,
    hash_message,
    is_torn_record,
    is_valid_json,
    parse_object,
    parse_record_leniently,
)

if TYPE_CHECKING:
    from ollm.store.session_files.scan import DocumentScan


_OTHER_SESSION = "the journal holds messages that are not this session's"
_DISORDER = "the journal's records are out of order"
_NO_MESSAGE = 0, b""


class _Piece(msgspec.Struct, frozen=True, order=True):
    """A record of an answer under way: which one it is, and where."""

    number: int
    anew: bool
    start: int
    end: int


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
        self._pieces: dict[int, list[_Piece]] = {}  # by the answer's number; 0 in journals of older versions
        self._begun: dict[int, list[_Piece]] = {}  # for a message that continues a partial answer: where that is
        self._next_pieces: dict[int, int] = {}  # and the number that follows its last piece
        self._mended: dict[int, bytes] = {}  # messages and calls of damaged records, by place
        self._call_places: dict[str, list[Range]] = {}
        try:
            self._journal = self._open_file(journal_path, waiting)
            self._document = self._open_file(document)
            self.damage.size = sum(file.size for file in (self._document, self._journal) if file)
            self._read_head(expected=document is not None)
            self._skip_contained()
            if part:
                self._narrow(part)
            self._read_journal()
            self.partial = self._join_partial(self._find_under_way())
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
        """Iterate over the messages by number, each once. One whose number a different one has comes last, without."""
        strays: list[Range] = []
        held = self._iter_document_messages(strays) if self._entries else iter(())
        yield from self._merge_messages(held) if self._numbers else (data for _, data in held)
        for place in strays:
            yield self._read_unnumbered(*place)

    def _read_unnumbered(self, place: int, size: int) -> bytes:
        assert self._entries
        data = self._entries.read_message(place, size)
        with contextlib.suppress(ValueError, RecursionError):
            return journal.encode_json({**parse_object(data), "id": 0})
        return data

    def _iter_document_messages(self, strays: list[Range]) -> Iterator[PlacedEntry]:
        """Iterate over the document's messages with their numbers, or 0. From the first gap on, which a later message
        may fill, they are sorted."""
        assert self._entries
        entries, numbers, places, last = self._entries.iter_messages(), array("Q"), array("Q"), self.skipped
        for place, data in entries:
            number = read_number(data)
            if number and number != last + 1:
                yield from self._sort_messages(itertools.chain(((place, data),), entries), numbers, places, strays)
                return
            last += number > 0
            numbers.append(2 * last + (number == 0))
            places.extend((place, len(data)))
            yield number, data

    def _sort_messages(
        self, entries: Iterator[PlacedEntry], numbers: array[int], places: array[int], strays: list[Range]
    ) -> Iterator[PlacedEntry]:
        """Sort the remaining messages, after those with these `numbers`, which are doubled: odd ones follow a message
        and have no number."""
        done = len(numbers)

        def read(at: int) -> bytes:
            assert self._entries
            return self._entries.read_message(places[2 * at], places[2 * at + 1])

        for place, data in entries:
            numbers.append(2 * read_number(data) or (numbers[-1] | 1 if numbers else 1))
            places.extend((place, len(data)))
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        first: dict[int, int] = {}  # by the place of a repeated message
        for before, at in itertools.pairwise(order):
            original = first.get(before, before)
            if numbers[before] == numbers[at] and numbers[at] % 2 == 0 and is_valid_json(read(original)):
                first[at] = original
        kept = [at for at in order if at not in first]
        if any(later < at for at, later in itertools.pairwise(kept)):
            self.damage.note("messages are out of order, and are sorted by number")
        for at in kept:
            if at >= done:
                yield numbers[at] // 2 * (1 - numbers[at] % 2), read(at)
        known: set[tuple[int, int]] = set()
        for at, original in sorted(first.items()):
            known.add((numbers[at], hash_message(read(original))))
            if (key := (numbers[at], hash_message(read(at)))) in known:
                self.damage.note(f"message {numbers[at] // 2} is in the document twice")
            else:
                self.damage.note(f"two messages have number {numbers[at] // 2}; one of them comes last")
                known.add(key)
                strays.append((places[2 * at], places[2 * at + 1]))

    def _merge_messages(self, held: Iterator[PlacedEntry]) -> Iterator[bytes]:
        added = self._iter_journal_messages()
        number, data = next(added, _NO_MESSAGE)
        for count, (found, kept) in enumerate(held, 1):
            last = (found or count) if number else 0
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

    def _join_partial(self, pieces: list[_Piece]) -> journal.Parts:
        parts: journal.Parts = []
        for piece in pieces:
            data = self._read_entry(piece.start, piece.end)
            parts = journal.extend_parts(parts, parse_record_leniently(data).partial or [])
        return parts

    def _find_under_way(self) -> list[_Piece]:
        """Put the pieces of all answers in order, and return those of the answer without a message."""
        for place, pieces in self._begun.items():
            self._sort_pieces(pieces, self._next_pieces.get(place, 0))
        last = max(self._pieces, default=0)
        under_way = self._pieces[last] if self._pieces and (last == 0 or last > max(self._numbers, default=0)) else []
        if under_way:
            self._sort_pieces(under_way, 0)
        return under_way

    def _sort_pieces(self, pieces: list[_Piece], following: int) -> None:
        """Put the pieces of an answer in order, each once, from the last one on that starts anew."""
        ordered = sorted(pieces)
        if ordered != pieces:
            self.damage.note(_DISORDER)
        single = list({piece.number: piece for piece in reversed(ordered)}.values())[::-1]
        if len(single) < len(ordered):
            self.damage.note("a record is twice in the journal")
        begin = max((place for place, piece in enumerate(single) if piece.anew), default=0)
        pieces[:] = single[begin:]
        numbers = [piece.number for piece in pieces]
        first = numbers[0] if pieces and pieces[0].anew else 1
        if numbers != list(range(first, following or first + max(1, len(numbers)))):
            self.damage.note("the journal lacks a part of an answer")

    def _read_entry(self, start: int, end: int) -> bytes:
        """Read a message or call at a place found before."""
        assert self._journal
        return self._mended.get(start) or self._journal.read(start, end)

    def iter_calls(self) -> Iterator[bytes]:
        """Iterate over the calls in their newest state, in the order in which they were first requested."""
        waiting = dict(self._call_places)
        known: set[str] = set()
        for data in self._entries.iter_calls() if self._entries else ():
            call_id = _read_call_id(data)
            if call_id in known and journal.read_call_number(call_id):  # others may repeat their ids
                self.damage.note(f"tool call {call_id} is in the document twice")
                continue
            known.add(call_id)
            updates = waiting.pop(call_id, None) if waiting else None
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
                answer, number = record.piece or (0, 0)
                pieces = self._pieces.setdefault(answer, [])
                pieces.append(_Piece(number or len(pieces) + 1, record.anew, place, place + len(data)))
            if isinstance(record.message, msgspec.Raw):
                self._add_message(place, data, bytes(record.message), record)
            if place >= self._head_place:
                self._change_head(place, record)
        if stop != MAX_BYTES:
            for place, _, record in self._iter_records(self._head_place, MAX_BYTES):
                self._change_head(place, record)

    def _add_message(self, place: int, data: bytes, message: bytes, record: journal.JournalRecord) -> None:
        before = self._numbers[-1] if self._numbers else MAX_MESSAGE_NUMBER - 1
        number, unnumbered = read_number(message) or before + 1, self._pieces.pop(0, None)
        if record.continues:
            self._begun[len(self._numbers)] = unnumbered or self._pieces.setdefault(number, [])
            self._next_pieces[len(self._numbers)] = record.piece[1] if record.piece else 0
        self._numbers.append(number)
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
                    yield from self._complete_last(start, data)
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
