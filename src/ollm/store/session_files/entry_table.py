"""The messages, calls and unfinished answer in a session's files, kept by their places: little is in memory."""

from __future__ import annotations

import contextlib
import itertools
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from ollm.domain.messages import JsonObject
from ollm.store.session_files import journal
from ollm.store.session_files.document import read_number
from ollm.store.session_files.files import MAX_MESSAGE_NUMBER, DamageReport, SessionFile
from ollm.store.session_files.waypoints import REQUEST, KnownState, WaypointNotes

Range = tuple[int, int]
Row = tuple[int, int, int]  # The number of a message, and where it begins and ends.
MIN_AFTER_MESSAGES = 32  # A large session is continued with at least so many.


class IrregularEntryError(Exception):
    """An entry is not as this version writes it: it has to be salvaged."""


class IrregularFilesError(Exception):
    """A part of the files is not enough: they have to be read whole."""


class AnswerText(NamedTuple):
    """Text of an answer under way, or a piece of it: the answer's number, the time, and the parts. Journals of older
    versions have no number: it is 0."""

    number: int = 0
    at: str = ""
    parts: journal.Parts = []  # noqa: RUF012 - never changed in place


class EntryTable:
    """Entries in the order in which they stand: first those of the document, then those of the journal.

    The journal may repeat what the document holds: a kill can come between folding and removing it. Entries that were
    salvaged are kept in memory, and have places behind both files.
    """

    def __init__(
        self, document: SessionFile, lines: SessionFile, known: KnownState | None, skipped: int, damage: DamageReport
    ) -> None:
        self._document, self._journal, self._damage = document, lines, damage
        self.journal_place = document.size  # Places count through both files.
        self._salvaged_place, self._salvaged = document.size + lines.size, bytearray()
        self._skipped = skipped
        self._numbers, self._starts, self._ends = (array("Q") for _ in range(3))  # These columns are the messages.
        self._document_count = -1  # The messages of the document, or -1 while it is read.
        self.in_order = True
        self.calls: dict[str, tuple[int, ...]] = {}  # By id, these are the places of its records.
        self._renamed: dict[str, str] = {}  # The newest of several calls with one id gets another.
        self.last_asker = 0  # This is the highest number of a message with a call.
        self._is_part = known is not None
        self.notes = WaypointNotes(known)
        self._answers: dict[int, dict[int, AnswerText]] = {}
        self.partial = AnswerText()

    @property
    def in_document(self) -> bool:
        return self._document_count < 0

    @property
    def last_number(self) -> int:
        return self._numbers[-1] if self._numbers else self._skipped

    def list_gaps(self) -> list[Range]:
        """List the numbers that are missing between the messages."""
        first = self._numbers[0] - 1 if self._is_part and self._numbers else 0
        if self.last_number - first == len(self._numbers) and self.partial.number in (0, self.last_number + 1):
            return []
        under_way = (self.partial.number,) if self.partial.number else ()
        pairs = itertools.pairwise((first, *self._numbers, *under_way))
        return [(before + 1, number - 1) for before, number in pairs if number > before + 1]

    def keep(self, line: bytes) -> Range:
        """Keep a salvaged entry, and return its place."""
        start = self._salvaged_place + len(self._salvaged)
        self._salvaged += line
        return start, start + len(line)

    def end_document(self) -> None:
        self._document_count = len(self._numbers)

    def add_message(self, number: int, start: int, end: int) -> None:
        if number <= self.last_number:
            if number and not self.in_document and (number <= self._skipped or self._holds(number, start, end)):
                return
            if self._is_part:
                raise IrregularFilesError
            self.in_order = False
        self._numbers.append(number)
        self._starts.append(start)
        self._ends.append(end)

    def _holds(self, number: int, start: int, end: int) -> bool:
        index = bisect_left(self._numbers, number)
        is_known = index < len(self._numbers) and self._numbers[index] == number
        return is_known and self._read_message(index) == self._read(start, end)

    def add_call(self, data: bytes, place: int) -> None:
        """Add a record of a call: its change if there is a call with its id. Another call with the same id gets one of
        its own."""
        call = journal.parse_change(data)
        key = self._renamed.get(call.id, call.id)
        held = self.calls.get(key, ())
        if self._is_part and not (held or call.name):
            return  # The call began before this part.
        if held and call.name and not journal.is_same_call(self._read(*held[:2]), data):
            if self._is_part:
                raise IrregularFilesError
            self._damage.note(f"several tool calls have the id {call.id[:20]}")
            self._renamed[call.id] = key = f"{call.id}-{len(self.calls) + 1}"
            held = ()
        end = place + len(data)
        if key != call.id:
            place, end = self.keep(journal.encode_json({**journal.parse_object(data), "id": key}))
        self.calls[key] = (*held, place, end)
        if abs(call.message_id) <= MAX_MESSAGE_NUMBER:
            self.last_asker = max(self.last_asker, call.message_id)
        if self.in_document:
            self.notes.add_call(call.message_id, place)

    def has_only_begun(self, call_id: str) -> bool:
        """Return True for a call of the journal without a record of its end."""
        places = self.calls.get(call_id, ())
        if len(places) != 2 or places[0] < self.journal_place:
            return False
        return journal.parse_object(self._read(*places)).get("status") == "running"

    def add_record(self, record: journal.JournalRecord, data: bytes, place: int) -> None:
        """Add the entries of a record that stands at `place`."""
        if isinstance(record.message, msgspec.Raw):
            message = bytes(record.message)
            number, start = read_number(message), place + data.find(message)
            if not number:
                raise IrregularEntryError
            if message.startswith(REQUEST):
                self.notes.add_request(number, place)
            else:
                self.take_answer(number)
            self.add_message(number, start, start + len(message))
        if record.partial is not None:
            answer, number = record.piece or (0, 0)
            self.add_piece(number, AnswerText(answer, record.at, record.partial))
        if isinstance(record.call, msgspec.Raw):
            call = bytes(record.call)
            self.add_call(call, place + data.find(call))

    def add_piece(self, number: int, piece: AnswerText) -> None:
        """Add what an answer has grown by. Records of older versions have no number."""
        held = self._answers.setdefault(piece.number, {})
        number = number or len(held) + 1
        if number > 1 and number - 1 not in held:
            self._damage.note("the journal lacks a part of an answer")
        held.setdefault(number, piece)

    def take_answer(self, number: int) -> journal.Parts:
        """Return the text of an answer whose message is there now, and forget its records."""
        if not self._answers:
            return []
        held = self._answers.pop(number, None) or self._answers.pop(0, None) or {}
        return _join_pieces(held)

    def finish(self) -> None:
        """Put the messages in order, after everything was added."""
        last = max(self._numbers, default=self._skipped) if not self.in_order else self.last_number
        for answer, held in sorted(self._answers.items()):
            if not (parts := _join_pieces(held)):
                continue
            at = held[max(held)].at
            if answer == max(self._answers) and (answer == 0 or answer > last):
                self.partial = AnswerText(answer, at, parts)
            elif not self._holds_text(answer, parts):  # Its records may be repeated behind it.
                if self._is_part:
                    raise IrregularFilesError
                self._damage.note("the journal lacks the end of an answer")
                message = {"role": "assistant", "parts": parts, "timestamp": at, "id": answer, "interrupted": True}
                self.add_message(answer, *self.keep(journal.encode_json(message)))
        if not self.in_order:
            self._sort_messages()
        if self.partial.parts:
            self.partial = self.partial._replace(number=max(self.partial.number, self.last_number + 1))

    def _holds_text(self, number: int, parts: journal.Parts) -> bool:
        """Return True if the message with this number contains the text of these parts."""
        lines = b"".join(self._read(start, end) for known, start, end in self._list_rows() if known == number)
        return all(journal.encode_json(part["text"])[1:-1] in lines for part in parts)

    def _sort_messages(self) -> None:
        """Sort the messages by number. One without a number, or whose number is taken, gets a free one. Exact
        repetitions are dropped."""
        rows = self._list_rows()
        taken: dict[int, int] = {}  # By number, this is the index of its message.
        for index, (number, _, _) in enumerate(rows):
            if number:
                taken.setdefault(number, index)
        is_numbered, highest, before = bool(taken), max(taken, default=0), 0
        kept: list[Row] = []
        for index, row in enumerate(rows):
            held = taken.get(row[0])
            if held is not None and held != index and self._is_repeated(rows[held], row):
                if (held < self._document_count) == (index < self._document_count):  # Both files may have it.
                    self._damage.note(f"message {row[0]} is in the files twice")
                continue
            if held != index:
                free = before + 1 if before + 1 not in taken else highest + 1
                if not (renumbered := self._renumber(row, free)):
                    continue
                row = renumbered  # noqa: PLW2901
                taken[free], highest = index, max(highest, free)
                if is_numbered:
                    self._damage.note("messages had wrong numbers")
            before = row[0]
            kept.append(row)
        if (ordered := sorted(kept)) != kept:
            self._damage.note("messages are out of order, and are sorted by number")
        self._set_rows(ordered)

    def drop_messages(self, numbers: set[int]) -> None:
        """Forget messages that turned out to be unreadable: they are missing."""
        if numbers:
            self._set_rows([row for row in self._list_rows() if row[0] not in numbers])

    def _list_rows(self) -> list[Row]:
        return list(zip(self._numbers, self._starts, self._ends, strict=True))

    def _set_rows(self, rows: list[Row]) -> None:
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        self._numbers, self._starts, self._ends = (array("Q", column) for column in columns)

    def _renumber(self, row: Row, number: int) -> Row | None:
        fields = self._parse_row(row)
        if not fields:
            self._damage.count_lost_entry()
            return None
        return number, *self.keep(journal.encode_json({"role": "", **fields, "id": number}))

    def _is_repeated(self, known: Row, other: Row) -> bool:
        first, second = self._parse_row(known), self._parse_row(other)
        return bool(first) and all(first.get(name) == second.get(name) for name in ("role", "parts"))

    def _parse_row(self, row: Row) -> JsonObject:
        with contextlib.suppress(*journal.ERRORS):
            return journal.parse_loosely(self._read(*row[1:]))
        return {}

    def find_beginning(self, number: int) -> int:
        """Find the number before the last request up to `number` that some messages follow, or return 0."""
        last = min(bisect_left(self._numbers, number + 2), len(self._numbers) - MIN_AFTER_MESSAGES) if number else 0
        for index in range(last - 1, -1, -1):
            if self._read_message(index).startswith(REQUEST):
                return self._numbers[index] - 1
        return 0

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of the messages."""
        return self._numbers

    def iter_messages(self) -> Iterator[bytes]:
        return map(self._read, self._starts, self._ends)

    def iter_calls(self) -> Iterator[bytes]:
        """Iterate over the calls in their newest state, in the order in which they were first requested."""
        return map(self.read_call, list(self.calls))

    def read_call(self, call_id: str) -> bytes:
        """Read a call in its newest state."""
        places = self.calls[call_id]
        if len(places) == 2:
            return self._read(*places)
        records = map(self._read, places[::2], places[1::2])
        changes = (journal.parse_loosely(record, self._damage) for record in records)
        return journal.encode_json(journal.join_call(changes))

    def _read_message(self, index: int) -> bytes:
        return self._read(self._starts[index], self._ends[index])

    def _read(self, start: int, end: int) -> bytes:
        if start < self.journal_place:
            return self._document.read_buffered(start, end)
        if start < self._salvaged_place:
            return self._journal.read_buffered(start - self.journal_place, end - self.journal_place)
        return bytes(self._salvaged[start - self._salvaged_place : end - self._salvaged_place])


def _join_pieces(pieces: dict[int, AnswerText]) -> journal.Parts:
    parts: journal.Parts = []
    for number in sorted(pieces):
        parts = journal.extend_parts(parts, pieces[number].parts)
    return parts
