"""The messages, calls and unfinished answers in a session's files, put in order.

Entries are kept by their place in the files, so that little of a long session is in memory. Messages are sorted by
number. One without a number, or whose number is taken, gets a free one. Only exact repetitions are dropped.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from ollm.store.session_files import journal
from ollm.store.session_files.document import hash_message, parse_object, read_number
from ollm.store.session_files.files import DamageReport, SessionFile
from ollm.store.session_files.journal import JournalRecord
from ollm.store.session_files.waypoints import REQUEST, KnownState, WaypointNotes

MIN_AFTER_MESSAGES = 32  # that a large session is continued with


class PartialAnswer(NamedTuple):
    """An answer under way: the time of its last record, how many records it has, and its parts."""

    at: str
    pieces: int
    parts: journal.Parts


class EntryTable:
    """Entries in the order in which they stand: first those of the document, then those of the journal."""

    def __init__(
        self,
        document: SessionFile | None,
        lines: SessionFile | None,
        damage: DamageReport,
        known: KnownState | None = None,
    ) -> None:
        self._document, self._journal, self._damage = document, lines, damage
        self.journal_place = document.size if document else 0  # places are those in both files together
        self._made_place = self.journal_place + (lines.size if lines else 0)
        self._made = bytearray()  # entries that are not in the files in the form in which they are read
        self._numbers, self._starts, self._ends = array("Q"), array("Q"), array("Q")  # of the messages
        self._call_starts, self._call_ends = array("Q"), array("Q")
        self.calls: dict[str, list[int]] = {}  # by id: the first record of each call with it
        self._call_changes: dict[int, list[int]] = {}  # by the first record of a call: its others
        self._is_part = known is not None
        self.notes = WaypointNotes(known)
        self._answers: dict[int, PartialAnswer] = {}  # by number; 0 in journals of older versions
        self._order: Sequence[int] = ()
        self._given: dict[int, int] = {}  # numbers that messages did not have
        self.answer = 0  # the number of the answer under way
        self.partial = PartialAnswer("", 0, [])

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
        key, index = journal.CallKey(""), len(self._call_starts)
        with contextlib.suppress(*journal.DECODE_ERRORS):
            key = journal.read_call_key(data)
        if self._is_part and key.id not in self.calls and b'"name"' not in data:
            return  # the call began before this part
        self._call_starts.append(place)
        self._call_ends.append(place + len(data))
        if place < self.journal_place:
            self.notes.add_call(key.message_id, place)
        same = self.calls.setdefault(key.id, [])
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
            number = read_number(message)
            if message.startswith(REQUEST) and self.notes.is_due(number, place):
                self.notes.add_request(number, place)
            start = self._locate(message, data, place)
            if not message.startswith(REQUEST):
                named = self._answers.pop(record.piece[0] if record.piece else number, None)
                begun = named or self._answers.pop(0, None)
                if begun and record.continues:
                    message = _continue_answer(begun.parts, message)
                    start = self._keep(message)
            self.add_message(number, start, start + len(message))
        if record.partial is not None:
            self._add_piece(record, record.partial)
        if isinstance(record.call, msgspec.Raw):
            call = bytes(record.call)
            self.add_call(call, self._locate(call, data, place))

    def _locate(self, entry: bytes, data: bytes, place: int) -> int:
        offset = data.find(entry)
        return place + offset if offset >= 0 else self._keep(entry)

    def _keep(self, data: bytes) -> int:
        self._made += data
        return self._made_place + len(self._made) - len(data)

    def _add_piece(self, record: JournalRecord, parts: journal.Parts) -> None:
        answer, number = record.piece or (0, 0)
        before = self._answers.get(answer) or PartialAnswer("", 0, [])
        if record.anew:
            before = PartialAnswer("", number - 1, [])
        if 0 < number <= before.pieces:
            return  # a repetition
        if number > before.pieces + 1:
            self._damage.note("the journal lacks a part of an answer")
        self._answers[answer] = PartialAnswer(record.at, number, journal.extend_parts(before.parts, parts))

    def finish(self) -> None:
        """Find the answer under way, make messages of other unfinished answers, and number the messages."""
        last = max(self._numbers, default=0)
        for answer, found in sorted(self._answers.items()):
            if answer == max(self._answers) and (answer == 0 or answer > last):
                self.answer, self.partial = answer, found
            elif not self._holds(answer, found.parts):  # otherwise its pieces are repeated behind it
                self._damage.note("the journal lacks the end of an answer")
                shaped = {"role": "assistant", "parts": found.parts, "timestamp": found.at, "id": answer}
                data = journal.encode_json({**shaped, "interrupted": True})
                start = self._keep(data)
                self.add_message(answer, start, start + len(data))
        self._number_messages()

    def _holds(self, number: int, parts: journal.Parts) -> bool:
        """Return True if the message with this number contains the text of these parts."""
        held = self._read_message(self._numbers.index(number)) if number in self._numbers else b""
        return all(journal.encode_json(part.get("text", ""))[1:-1] in held for part in parts)

    def _number_messages(self) -> None:
        numbers = self._numbers
        self._order = range(len(numbers))
        if not numbers or (numbers[0] and all(map(operator.lt, numbers, itertools.islice(numbers, 1, None)))):
            return
        taken: dict[int, int] = {0: -1}
        odd = [index for index, number in enumerate(numbers) if taken.setdefault(number, index) != index]
        highest = max(taken)
        for index in odd:
            number = numbers[index]
            if number and self._is_repeated(taken[number], index):
                continue
            before = self._given.get(index - 1) or (numbers[index - 1] if index else 0)
            number = before + 1 if before + 1 not in taken else highest + 1
            taken[number] = index
            self._given[index], highest = number, max(highest, number)
        self._order = [taken[number] for number in sorted(taken)[1:]]
        if self._order != sorted(self._order):
            self._damage.note("messages are out of order, and are sorted by number")
        if self._given and any(numbers):
            self._damage.note("messages had wrong numbers")

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
            if found <= number + 1 and self._read_message(index).startswith(REQUEST):
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
        return self._read(self._starts[index], self._ends[index])

    def _read(self, start: int, end: int) -> bytes:
        if start < self.journal_place and self._document:
            return self._document.read_buffered(start, end)
        if start < self._made_place and self._journal:
            return self._journal.read_buffered(start - self.journal_place, end - self.journal_place)
        return bytes(self._made[start - self._made_place : end - self._made_place])


def _continue_answer(begun: journal.Parts, data: bytes) -> bytes:
    """Join a message of an older version with the partial answer that it continues."""
    found = parse_object(data)
    more = found.get("parts") or []
    parts = journal.extend_parts(begun, more if isinstance(more, list) else [more])
    return journal.encode_json({**found, "parts": parts})


def _renumber(data: bytes, number: int) -> bytes:
    try:
        return journal.encode_json({**parse_object(data), "id": number})
    except (ValueError, RecursionError):
        return data
