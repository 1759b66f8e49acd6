"""The messages, calls and pieces of answers in a session's files, put in order.

Entries are kept by their place in the files, so that little of a long session is in memory. A message keeps its number
if that can be right. One whose number is taken, or does not fit between its neighbours, gets a free number where it
stands, or else the next one. Only exact repetitions are dropped.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from ollm.store.session_files import journal
from ollm.store.session_files.document import hash_message, parse_object, read_number
from ollm.store.session_files.files import DamageReport, Range, SessionFile
from ollm.store.session_files.journal import JournalRecord

_ANSWER, _REQUEST = b'{"role":"assistant"', b'{"role":"user"'
MIN_AFTER_MESSAGES = 32  # that a large session is continued with


class _Piece(NamedTuple):
    """A record of an answer under way."""

    at: str
    anew: bool
    place: Range


class EntryTable:
    """Entries in the order in which they stand: first those of the document, then those of the journal."""

    partial_at = ""  # time of the answer under way
    answer = 0  # its number; 0 in journals of older versions

    def __init__(self, document: SessionFile | None, lines: SessionFile | None, damage: DamageReport) -> None:
        self._document, self._journal, self._damage = document, lines, damage
        self.journal_place = document.size if document else 0  # places are those in both files together
        self._made_place = self.journal_place + (lines.size if lines else 0)
        self._made = bytearray()  # entries that are not in the files in the form in which they are read
        self._numbers, self._starts, self._ends = array("Q"), array("Q"), array("Q")  # of the messages
        self._call_starts, self._call_ends = array("Q"), array("Q")
        self.calls: dict[str, list[int]] = {}  # by id: the first record of each call with it
        self._call_changes: dict[int, list[int]] = {}  # by the first record of a call: its others
        self._pieces: dict[int, dict[int, _Piece]] = {}  # by answer and number
        self._continued: dict[int, tuple[Range, dict[int, _Piece]]] = {}
        self._begun: dict[int, list[_Piece]] = {}  # by message that continues a partial answer
        self._order: Sequence[int] = ()
        self._given: dict[int, int] = {}  # numbers that messages did not have
        self.partial: journal.Parts = []

    @property
    def last_number(self) -> int:
        last = self._order[-1] if self._order else -1
        return self._given.get(last) or self._numbers[last] if self._order else 0

    @property
    def is_empty(self) -> bool:
        return not self._numbers and not self._call_starts

    def add_message(self, number: int, start: int, end: int) -> None:
        self._numbers.append(number)
        self._starts.append(start)
        self._ends.append(end)

    def add_call(self, data: bytes, place: int) -> None:
        """Add a record of a call: its change if there is a call with its id, unless that is another call."""
        name, index = "", len(self._call_starts)
        with contextlib.suppress(*journal.DECODE_ERRORS):
            name = journal.read_call_id(data)
        self._call_starts.append(place)
        self._call_ends.append(place + len(data))
        same = self.calls.setdefault(name, [])
        if same and self._is_change(same[-1], data):
            self._call_changes.setdefault(same[-1], []).append(index)
        else:
            same.append(index)

    def _is_change(self, first: int, data: bytes) -> bool:
        with contextlib.suppress(*journal.DECODE_ERRORS):
            return b'"name"' not in data or journal.is_same_call(self._read_record(first), data)
        return False

    def add_record(self, record: JournalRecord, data: bytes, place: int) -> None:
        """Add the entries of a record that stands at `place`."""
        if isinstance(record.message, msgspec.Raw):
            message = bytes(record.message)
            number, start = read_number(message), self._locate(message, data, place)
            self._end_answer(record, number, message)
            self.add_message(number, start, start + len(message))
        if record.partial is not None:
            line = journal.encode_line(JournalRecord(at=record.at, partial=record.partial))
            exact = data.startswith(journal.RECORD_START) and data.endswith(b"\n")
            self._add_piece(record, (place, place + len(data)) if exact else self._keep(line))
        if isinstance(record.call, msgspec.Raw):
            call = bytes(record.call)
            self.add_call(call, self._locate(call, data, place))

    def _locate(self, entry: bytes, data: bytes, place: int) -> int:
        offset = data.find(entry)
        return place + offset if offset >= 0 else self._keep(entry)[0]

    def _keep(self, data: bytes) -> Range:
        start = self._made_place + len(self._made)
        self._made += data
        return start, start + len(data)

    def _add_piece(self, record: JournalRecord, place: Range) -> None:
        answer, number = record.piece or (0, 0)
        pieces = self._pieces.setdefault(answer, {})
        number = number or len(pieces) + 1  # older versions gave none
        if number in pieces and self._read(*pieces[number].place) != self._read(*place):
            pieces = self._pieces.setdefault(min(0, *self._pieces) - 1, {})  # of another answer
        pieces[number] = _Piece(record.at, record.anew, place)

    def _end_answer(self, record: JournalRecord, number: int, message: bytes) -> None:
        if record.continues:
            self._continued[len(self._numbers)] = record.piece or (number, 0), self._pieces.pop(0, {})
        elif message.startswith(_ANSWER):  # it holds the whole text
            self._pieces.pop(number, None)
            self._pieces.pop(0, None)

    def finish(self) -> None:
        """Join answers with their pieces, and number the messages."""
        for index, ((answer, limit), older) in self._continued.items():
            pieces = self._pieces.get(answer, {})
            found = older or {number: piece for number, piece in pieces.items() if not limit or number < limit}
            self._begun[index] = self._sort_pieces(found, limit)
        for (answer, limit), _ in self._continued.values():
            pieces = self._pieces.get(answer, {})
            self._pieces[answer] = {number: piece for number, piece in pieces.items() if 0 < limit <= number}
        left = {answer: pieces for answer, pieces in sorted(self._pieces.items()) if pieces}
        last = max(self._numbers, default=0)
        for answer, pieces in left.items():
            ordered = self._sort_pieces(pieces, 0)
            parts, at = self._join_parts(ordered), ordered[-1].at
            if answer == max(left) and (answer == 0 or answer > last):
                self.partial, self.partial_at, self.answer = parts, at, answer
            else:
                self._damage.note("the journal lacks the end of an answer")
                shaped = {"role": "assistant", "parts": parts, "timestamp": at, "id": max(0, answer)}
                self.add_message(max(0, answer), *self._keep(journal.encode_json({**shaped, "interrupted": True})))
        self._number_messages()

    def _sort_pieces(self, pieces: dict[int, _Piece], limit: int) -> list[_Piece]:
        """Return the pieces of an answer by number, from the last that starts anew."""
        begin = max((number for number, piece in pieces.items() if piece.anew), default=1)
        numbers = [number for number in sorted(pieces) if number >= begin]
        if numbers != [*range(begin, limit or begin + len(numbers))]:
            self._damage.note("the journal lacks a part of an answer")
        return [pieces[number] for number in numbers]

    def _join_parts(self, pieces: list[_Piece]) -> journal.Parts:
        parts: journal.Parts = []
        for piece in pieces:
            parts = journal.extend_parts(parts, journal.parse_record(self._read(*piece.place)).partial or [])
        return parts

    def _number_messages(self) -> None:
        numbers = self._numbers
        self._order = range(len(numbers))
        if not numbers or (numbers[0] and all(map(operator.lt, numbers, itertools.islice(numbers, 1, None)))):
            return
        taken: dict[int, int] = {}
        odd = [
            index
            for index, number in enumerate(numbers)
            if not number or self._is_misnumbered(index) or taken.setdefault(number, index) != index
        ]
        taken[0] = -1  # is no number
        last, counts = max(taken), Counter(numbers)
        highest = last
        for index in odd:
            number = numbers[index]
            if number and number in taken and self._is_repeated(taken[number], index):
                continue
            if number > last or counts[number] > 1 or not number:
                before = self._given.get(index - 1, numbers[index - 1] if index else 0)
                number = next(free for free in (before + 1, number, highest + 1) if free not in taken)
            taken[number], highest = index, max(highest, number)
            if number != numbers[index]:
                self._given[index] = number
        self._order = [taken[number] for number in sorted(taken)[1:]]
        if self._order != sorted(self._order):
            self._damage.note("messages are out of order, and are sorted by number")
        if self._given and any(numbers):
            self._damage.note("messages had wrong numbers")

    def _is_misnumbered(self, index: int) -> bool:
        """Return True if both neighbours fit together, but the message does not fit between them."""
        if not 0 < index < len(self._numbers) - 1:
            return False
        before, number, after = self._numbers[index - 1 : index + 2]
        return before < after and not before < number < after

    def _is_repeated(self, known: int, index: int) -> bool:
        if hash_message(self._read_message(known)) != hash_message(self._read_message(index)):
            return False
        if len({self._starts[at] < self.journal_place for at in (known, index)}) == 1:  # both files may have it
            self._damage.note(f"message {self._numbers[index]} is in the files twice")
        return True

    def find_beginning(self, number: int) -> int:
        """Find the number before the last request up to `number` that some messages follow, or return 0."""
        for index in reversed(self._order[:-MIN_AFTER_MESSAGES] if number else ()):
            found = self._given.get(index) or self._numbers[index]
            if found <= number + 1 and self._read_message(index).startswith(_REQUEST):
                return found - 1
        return 0

    def iter_messages(self, after: int) -> Iterator[bytes]:
        """Iterate over the messages after a number."""
        for index in self._order:
            number = self._given.get(index, 0)
            if (number or self._numbers[index]) > after:
                data = self._read_message(index)
                yield _renumber(data, number) if number else data

    def iter_calls(self) -> Iterator[bytes]:
        """Iterate over the calls in their newest state, in the order in which they were first requested."""
        return map(self.read_call, sorted(itertools.chain.from_iterable(self.calls.values())))

    def read_call(self, first: int) -> bytes:
        """Read a call in its newest state. `first` is the number of its first record."""
        if first not in self._call_changes:
            return self._read_record(first)
        records = map(self._read_record, (first, *self._call_changes[first]))
        return journal.join_call(map(parse_object, records))

    def _read_record(self, index: int) -> bytes:
        return self._read(self._call_starts[index], self._call_ends[index])

    def _read_message(self, index: int) -> bytes:
        """Read a message. One that continues a partial answer is joined with it."""
        data = self._read(self._starts[index], self._ends[index])
        if index not in self._begun:
            return data
        found = parse_object(data)
        more = found.get("parts") or []
        parts = journal.extend_parts(self._join_parts(self._begun[index]), more if isinstance(more, list) else [more])
        return journal.encode_json({**found, "parts": parts})

    def _read(self, start: int, end: int) -> bytes:
        if start < self.journal_place and self._document:
            return self._document.read_buffered(start, end)
        if start < self._made_place and self._journal:
            return self._journal.read_buffered(start - self.journal_place, end - self.journal_place)
        return bytes(self._made[start - self._made_place : end - self._made_place])


def _renumber(data: bytes, number: int) -> bytes:
    try:
        return journal.encode_json({**parse_object(data), "id": number})
    except (ValueError, RecursionError):
        return data
