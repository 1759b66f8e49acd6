"""The messages, calls and unfinished answer in a session's files, kept by their places: little is in memory."""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ollm.store.session_files import journal
from ollm.store.session_files.document import read_number
from ollm.store.session_files.files import MAX_MESSAGE_NUMBER, SessionFile
from ollm.store.session_files.waypoints import REQUEST, KnownState, WaypointNotes

Range = tuple[int, int]
MIN_AFTER_MESSAGES = 32  # that a large session is continued with


class IrregularFilesError(Exception):
    """The files are not as this version writes them: they have to be imported."""


class PartialAnswer(NamedTuple):
    """An answer under way: its number, how many records it has, the time of the last one, and its parts."""

    number: int = 0
    pieces: int = 0
    at: str = ""
    parts: journal.Parts = []  # noqa: RUF012 - never changed in place


class EntryTable:
    """Entries in the order in which they stand: first those of the document, then those of the journal.

    The journal may repeat what the document holds: a kill can come between folding and removing it. Anything else that
    the writer does not write raises `IrregularFilesError`.
    """

    def __init__(self, document: SessionFile, lines: SessionFile, known: KnownState | None, skipped: int) -> None:
        self._document, self._journal = document, lines
        self.journal_place = document.size  # places are those in both files together
        self._skipped = skipped
        self._numbers, self._starts, self._ends = array("Q"), array("Q"), array("Q")  # of the messages
        self.calls: dict[str, tuple[int, ...]] = {}  # by id: where each of its records begins and ends
        self.last_asker = 0  # the highest number of a message that a call belongs to
        self._is_part = known is not None
        self.notes = WaypointNotes(known)
        self.partial = PartialAnswer()

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

    def add_message(self, number: int, start: int, end: int) -> None:
        if number > self.last_number:
            self._numbers.append(number)
            self._starts.append(start)
            self._ends.append(end)
        elif start < self.journal_place or (number > self._skipped and not self._holds(number, start, end)):
            raise IrregularFilesError

    def _holds(self, number: int, start: int, end: int) -> bool:
        index = bisect_left(self._numbers, number)
        return self._numbers[index] == number and self._read_message(index) == self._read(start, end)

    def add_call(self, data: bytes, place: int) -> None:
        """Add a record of a call: its change if there is a call with its id."""
        call = journal.parse_change(data)
        held = self.calls.get(call.id, ())
        if not (held or call.is_whole) and self._is_part:
            return  # the call began before this part
        in_document = place < self.journal_place
        is_known = self._is_same_call(held, data) if held and call.name else held or call.is_whole
        if not is_known or (in_document and not call.is_whole) or abs(call.message_id) > MAX_MESSAGE_NUMBER:
            raise IrregularFilesError
        self.calls[call.id] = (*held, place, place + len(data))
        self.last_asker = max(self.last_asker, call.message_id)
        if in_document:
            self.notes.add_call(call.message_id, place)

    def _is_same_call(self, held: tuple[int, ...], data: bytes) -> bool:
        return journal.is_same_call(journal.parse_object(self._read(*held[:2])), journal.parse_object(data))

    def add_record(self, record: journal.JournalRecord, data: bytes, place: int) -> None:
        """Add the entries of a record that stands at `place`."""
        if isinstance(record.message, msgspec.Raw):
            message = bytes(record.message)
            number, start = read_number(message), place + data.find(message)
            is_request = message.startswith(REQUEST)
            if is_request and self.notes.is_due(number, place):
                self.notes.add_request(number, place)
            if not is_request and number == self.partial.number:
                self.partial = PartialAnswer()
            self.add_message(number, start, start + len(message))
        if record.partial is not None:
            self._add_piece(record, record.partial)
        if isinstance(record.call, msgspec.Raw):
            call = bytes(record.call)
            self.add_call(call, place + data.find(call))

    def _add_piece(self, record: journal.JournalRecord, parts: journal.Parts) -> None:
        answer, piece = record.piece or (0, 0)
        before = self.partial
        if record.anew or (not before.number and piece == 1):
            before = PartialAnswer(answer, piece - 1)
        if not answer or (answer, piece) != (before.number, before.pieces + 1):
            raise IrregularFilesError
        self.partial = PartialAnswer(answer, piece, record.at, journal.extend_parts(before.parts, parts))

    def take(self, numbers: Sequence[int], calls: Iterable[str], places: Sequence[int], last_asker: int) -> None:
        """Take these messages and calls. Each ends where the next begins."""
        count = len(numbers)
        self._numbers, self._starts = array("Q", numbers), array("Q", places[:count])
        self._ends = array("Q", places[1 : count + 1])
        self.calls = dict(zip(calls, zip(places[count:], places[count + 1 :], strict=False), strict=True))
        self.last_asker = last_asker

    def finish(self) -> None:
        if 0 < self.partial.number <= self.last_number:
            raise IrregularFilesError

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
        return journal.encode_json(journal.join_call(map(journal.parse_object, records)))

    def _read_message(self, index: int) -> bytes:
        return self._read(self._starts[index], self._ends[index])

    def _read(self, start: int, end: int) -> bytes:
        if start < self.journal_place:
            return self._document.read_buffered(start, end)
        return self._journal.read_buffered(start - self.journal_place, end - self.journal_place)
