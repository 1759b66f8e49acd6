"""Read a session that is damaged or in another layout: each object by its shape, wherever it stands."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import mmap
import re
from array import array
from collections.abc import Iterator

import msgspec

from ollm.domain.messages import JsonObject
from ollm.store.session_files import journal
from ollm.store.session_files.document import CLOSE, MAX_HEAD_BYTES, read_number, salvage_head
from ollm.store.session_files.files import (
    FIND_SECONDS,
    LAST_MESSAGE,
    LONG_LINE_BYTES,
    MAX_BYTES,
    DamageReport,
    SessionFile,
)
from ollm.store.session_files.journal import JournalRecord
from ollm.store.session_files.lenient import (
    TooDeepError,
    find_end,
    hash_message,
    is_deeper_than,
    is_torn_record,
    is_valid_json,
    parse_object,
    read_shape,
)

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_START = re.compile(rb'(?m:^)\{|\{\s*+"(?:id|role|parts|timestamp|at)"\s*+:')
_STRUCTURE = re.compile(rb'"(?:messages|toolCalls)"\s*+:|[\s,\[\]{}]++')
_HEAD = re.compile(rb'\{\s*+"sessionId"')
_OPEN = re.compile(rb',\s*+"messages"\s*+:\s*+\[')
_BLANK = rb"\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8b\xa8\xa9\xaf]|\xe2\x81[\x9f\xa0]|\xe3\x80\x80|\xef\xbb\xbf"
_NEXT_LINE = b'\n{"'  # that none of our objects, and none of an indented document, reaches over
_ANSWER = b'{"role":"assistant"'
_MOVED = "lines of the document are not in their place"
_ARRAYS = ("messages", "toolCalls")
_SESSION_FIELDS = {"sessionId", "startTime", "messages"}
_CHECK_EVERY_ENTRIES = 256
OVERSIZED_BYTES = 1 << 24  # that are read of a file over the limit
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_entries_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class _Piece(msgspec.Struct, frozen=True):
    """A record of an answer under way: its number among those of the answer, and what it adds."""

    answer: int
    number: int
    anew: bool
    at: str
    parts: journal.Parts
    place: int  # how many messages stand before it


class Salvage:
    """All entries of a session. Messages keep their numbers where these can be right."""

    partial_at = ""
    is_promise_wrong = False  # of the number of the document's last message
    answer = 0  # the number of the answer under way, if it has one

    def __init__(
        self, document: SessionFile | None, lines: SessionFile | None, damage: DamageReport, *, in_lines: bool
    ) -> None:
        self.head: JsonObject = {}
        self.partial: journal.Parts = []
        self._damage = damage
        self._in_lines = in_lines
        self._in_document = 0
        self._numbers, self._starts, self._ends = array("Q"), array("Q"), array("Q")  # of the messages, as they stand
        self._made: dict[int, bytes] = {}  # messages that are not in the files so, by their place among all
        self._calls: dict[str, list[list[bytes]]] = {}  # the records of each call with an id
        self._next: dict[bytes, int] = {}
        self._pieces: list[_Piece] = []  # whose message was not found
        self._endings: list[tuple[int, JournalRecord]] = []  # the places of messages that may end an answer
        self._views = [_open_document(document, damage), lines.read(0, lines.size) if lines else b""]
        self._base = len(self._views[0])  # where the journal begins: places are those in both files together
        if document and (in_lines or not (self._read_whole(self._views[0]) or self._read_cleaned())):
            self._scan(0)
            self._check_ends(b"]}" if in_lines else b"}")
        self._in_document = len(self._numbers)
        self._scan(1)
        self._end_answers()
        self._order = self._arrange()

    def _check_ends(self, end: bytes) -> None:
        if not self.head and not self._numbers:
            self._damage.note("the file is not a JSON document")
        elif not bytes(self._views[0][-16:]).rstrip().endswith(end):
            moved = self._views[0].find(b"\n" + CLOSE) >= 0
            self._damage.note(_MOVED if moved else "the file is truncated")
        if not self.head and self._numbers and not self._damage.lost:
            self._damage.note("the file header is missing")

    def iter_messages(self, after: int = 0) -> Iterator[bytes]:
        for number, place in self._order:
            if number > after:
                data = self._read(place)
                yield data if self._numbers[place] == number else _renumber(data, number)

    def iter_calls(self) -> Iterator[bytes]:
        for records in itertools.chain.from_iterable(self._calls.values()):
            yield records[0] if len(records) == 1 else journal.join_call(map(parse_object, records))

    def _read(self, place: int) -> bytes:
        if place in self._made:
            return self._made[place]
        start, end = self._starts[place], self._ends[place]
        view, base = (self._views[1], self._base) if start >= self._base else (self._views[0], 0)
        return bytes(view[start - base : end - base])

    def _read_whole(self, view: mmap.mmap | bytes) -> bool:
        """Read an undamaged document that is not in lines as ours is."""
        try:
            fields = _fields_decoder.decode(view)
            named = _SESSION_FIELDS & fields.keys()
            lists = {name: bytes(fields.pop(name, b"[]")) for name in _ARRAYS}
            if any(is_deeper_than(bytes(value)) for value in fields.values()):
                self._damage.refuse_depth()
                return False
            head = {name: parse_object(b'{"v":' + bytes(value) + b"}")["v"] for name, value in fields.items()}
            entries = {name: _entries_decoder.decode(value) for name, value in lists.items()}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError):
            return False
        if not named and not any(entries.values()):
            self._damage.note("the file is not a session")
        self.head = head
        for name, found in entries.items():
            for data in map(bytes, found):
                self._take_listed(name, data)
        return True

    def _take_listed(self, name: str, data: bytes) -> None:
        if not data.startswith(b"{"):
            self._damage.count_lost_entry(f"{name} contains something that is not an object")
            return
        record = read_shape(data)
        if record is None:
            raw = msgspec.Raw(data)
            record = JournalRecord(at="", message=raw) if name == "messages" else JournalRecord(at="", call=raw)
        self._take(record, data, 0, made=True)

    def _read_cleaned(self) -> bool:
        """Read a document with blanks that JSON does not know."""
        view = self._views[0]
        if not re.search(rb'[\s{}\[\],:"](?:' + _BLANK + rb')[\s{}\[\],:"\xc2\xe1-\xef]', view):
            return False
        token = re.compile(rb"(" + _STRING + rb")|(?:" + _BLANK + rb")", re.DOTALL)
        cleaned = token.sub(lambda match: match[1] or b" " * len(match[0]), view)
        if cleaned == view[:] or not self._read_whole(cleaned):
            return False
        self._damage.note("blanks that JSON does not know were read as spaces")
        return True

    def _scan(self, file: int) -> None:
        """Take every object that has the shape of an entry, and look at what stands between them."""
        view, count, done, place = self._views[file], 0, 0, 0
        self._next = {}
        while found := _START.search(view, place):
            start = found.start()
            end, record = self._read_object(view, start)
            if record is None:
                place = start + 1
            else:
                self._look_between(file, done, start)
                self._take(record, bytes(view[start:end]), start + self._base * file)
                done = place = end
            count += 1
            if count % _CHECK_EVERY_ENTRIES == 0 and self._damage.has_taken(FIND_SECONDS):
                self._damage.refuse("the file takes too long to read")
                return
        self._look_between(file, done, len(view))

    def _read_object(self, view: mmap.mmap | bytes, start: int) -> tuple[int, JournalRecord | None]:
        feed = self._find_next(view, b"\n", start)
        line = bytes(view[start:feed]).rstrip(b"\r,") if feed - start <= LONG_LINE_BYTES else b""
        if is_valid_json(line):  # as almost all are
            return start + len(line), read_shape(line)
        data = memoryview(view)[: self._find_next(view, _NEXT_LINE, start + 1)]
        try:
            end = find_end(data, start)
        except TooDeepError:
            self._damage.refuse_depth()
            return start, None
        if end is not None:
            return end, read_shape(bytes(data[start:end]))
        whole_line = bytes(view[start : min(feed, start + LONG_LINE_BYTES)])
        until = start + len(whole_line)
        whole = journal.complete_piece(whole_line)
        if whole is None and (whole := journal.repair_piece(whole_line)):
            self._damage.note("the text of an answer is damaged in the journal")
        return until, journal.parse_record(whole) if whole else None

    def _find_next(self, view: mmap.mmap | bytes, mark: bytes, start: int) -> int:
        """Find where a mark is next, or the end. It is kept, since it may be far away from many objects."""
        if self._next.get(mark, -1) < start:
            found = view.find(mark, start)
            self._next[mark] = found if found >= 0 else len(view)
        return self._next[mark]

    def _look_between(self, file: int, start: int, end: int) -> None:
        """Look for the head between two entries, and report what is nothing at all."""
        text = bytes(self._views[file][start : min(end, start + MAX_HEAD_BYTES)])
        if self._in_lines and start > 0 and end < len(self._views[file]) and b"\n" not in text:
            self._damage.note(f"lines are joined at byte {start}")
        if not _STRUCTURE.sub(b"", text) or (file == 0 and end - start == len(self._views[0]) and b'"' not in text):
            return
        if b'"sessionId"' in text or b'"metadata"' in text:
            if file == 0:
                self._take_head(text, start)
            else:
                self._damage.note("the journal holds the lines of a document")
        elif file == 1 and end == len(self._views[1]) and is_torn_record(text.lstrip()):
            return  # it was never acknowledged
        else:
            name = "unreadable data" if file == 0 else "the journal is damaged"
            first = start + len(text) - len(text.lstrip(b"\r\n,]}"))
            self._damage.count_lost_entry(f"{name} at byte {first}")

    def _take_head(self, text: bytes, start: int) -> None:
        begin, opened = _HEAD.search(text), _OPEN.search(text)
        line = text[begin.start() if begin else 0 : opened.start() if opened else 0] + b"}"
        found: JsonObject = {}
        with contextlib.suppress(ValueError, RecursionError):
            found = parse_object(line) if not is_deeper_than(line) else {}
        if not opened or not found:
            self._damage.count_lost_entry("the file header is damaged")
            found = salvage_head(text)
        elif self.head.keys() & _SESSION_FIELDS:
            self._damage.note("the file holds more than one document, and their messages were joined")
        elif start or not begin or begin.start():
            self._damage.note(_MOVED)
        if opened and _STRUCTURE.sub(b"", text[opened.end() :]):
            self._damage.count_lost_entry()
        self.head = {**found, **self.head}

    def _take(self, record: JournalRecord, data: bytes, start: int, *, made: bool = False) -> None:
        place = len(self._numbers)
        if isinstance(record.message, msgspec.Raw):
            message = bytes(record.message)
            if record.continues or message.startswith(_ANSWER):
                self._endings.append((place, record))
            self._add_message(message, start, -1 if made else data.find(message))
        if record.partial is not None:
            answer, number = record.piece or (0, 0)
            self._pieces.append(_Piece(answer, number, record.anew, record.at, record.partial, place))
        if isinstance(record.call, msgspec.Raw):
            self._add_call(bytes(record.call), bare=bytes(record.call) == data)
        if record.at:
            held = self.head.get("metadata")
            self.head["metadata"] = held if isinstance(held, dict) else {}
            journal.change_head(self.head, record)

    def _add_message(self, message: bytes, start: int, offset: int) -> None:
        if offset < 0:
            self._made[len(self._numbers)] = message
        self._numbers.append(read_number(message))
        self._starts.append(start + max(0, offset))
        self._ends.append(start + max(0, offset) + len(message))

    def _add_call(self, call: bytes, *, bare: bool) -> None:
        try:
            name = journal.read_call_id(call)
        except journal.DECODE_ERRORS:
            name = ""
        known = self._calls.setdefault(name, [])
        if bare and any(call == records[0] for records in known):
            self._damage.note(f"tool call {name} is in the document twice")
        elif same := [records for records in known if self._is_same(records[0], call)]:
            same[-1].append(call)
        else:
            known.append([call])

    def _is_same(self, one: bytes, other: bytes) -> bool:
        try:
            return journal.is_same_call(one, other)
        except journal.DECODE_ERRORS:
            return False

    def _find_pieces(self, place: int, record: JournalRecord) -> list[_Piece]:
        """Find the pieces of the answer that a message ends, and take them from the others. Those that follow its last
        one belong to another answer."""
        number = self._numbers[place]
        answer, limit = record.piece or (number, 0)
        older = [piece for piece in self._pieces if piece.answer == 0 and piece.place <= place]
        found = older or [piece for piece in self._pieces if piece.answer in (answer, number)]
        if not record.continues:
            found = [piece for piece in found if piece.place <= place]  # the message holds all of them
        elif limit and not older:
            found = [piece for piece in found if piece.number < limit]
        chosen, others = self._sort_pieces(found)
        self._pieces = [piece for piece in self._pieces if piece not in found or piece in others]
        if record.continues and limit and (chosen[-1].number if chosen else 0) != limit - 1:
            self._damage.note("the journal lacks a part of an answer")
        return chosen

    def _sort_pieces(self, pieces: list[_Piece]) -> tuple[list[_Piece], list[_Piece]]:
        """Return the pieces of an answer by number, each once, from the last that starts anew; and the others."""
        chosen: dict[int, _Piece] = {}
        others: list[_Piece] = []
        for piece in pieces:
            number = piece.number or len(chosen) + 1  # older versions gave none
            known = chosen.setdefault(number, piece)
            if known is not piece and known.parts == piece.parts:
                self._damage.note("a record is twice in the journal")
            elif known is not piece:
                others.append(piece)
        ordered = [chosen[number] for number in sorted(chosen)]
        if list(chosen.values()) != ordered:
            self._damage.note("the journal's records are out of order")
        begin = max((place for place, piece in enumerate(ordered) if piece.anew), default=0)
        found = ordered[begin:]
        first = found[0].number if found and found[0].anew else 1
        if found and found[0].number and [piece.number for piece in found] != list(range(first, first + len(found))):
            self._damage.note("the journal lacks a part of an answer")
        return found, others

    def _end_answers(self) -> None:
        """Join the answers with their pieces, and make an interrupted message of each that no message ends."""
        joined: dict[bytes, bytes] = {}
        for place, record in self._endings:
            data = self._read(place)
            if data in joined:
                self._made[place] = joined[data]  # a repetition
            elif (found := self._find_pieces(place, record)) and record.continues:
                self._made[place] = joined[data] = _join_answer(found, data)
        made: list[tuple[int, int, bytes]] = []
        waiting = [[piece for piece in self._pieces if piece.answer == one] for one in {p.answer for p in self._pieces}]
        last = max(self._numbers, default=0)
        while waiting:
            found, others = self._sort_pieces(waiting.pop())
            waiting += [others] if others else []
            place, answer, parts, at = found[0].place, found[0].answer, _join_parts(found), found[-1].at
            if place == len(self._numbers) and (answer == 0 or answer > max(last, self.answer)) and not self.partial:
                self.partial, self.partial_at, self.answer = parts, at, answer
            else:
                shaped = {"role": "assistant", "parts": parts, "timestamp": at, "id": answer, "interrupted": True}
                if place < len(self._numbers):
                    self._damage.note("the journal lacks the end of an answer")
                made.append((place, answer, journal.encode_json(shaped)))
        for place, number, message in sorted(made, reverse=True):
            for values, value in ((self._numbers, number), (self._starts, 0), (self._ends, 0)):
                values.insert(place, value)
            self._made = {at + (at >= place): data for at, data in self._made.items()} | {place: message}
            self._in_document += place < self._in_document

    def _arrange(self) -> list[tuple[int, int]]:
        """Give each message its number; one that cannot have its own gets a free one where it stands, or the next."""
        kept = self._drop_repeated()
        steady = _find_rising(self._numbers, kept)
        taken = {self._numbers[place]: place for place in steady}
        last = max(taken, default=0)
        odd: list[int] = []
        for place in sorted(set(kept).difference(steady)):
            number = self._numbers[place]
            if number and number not in taken and (number <= last or self._find_free(steady, taken, place) == 0):
                taken[number] = place
            else:
                odd.append(place)
        order = [taken[number] for number in sorted(taken)]
        if order != sorted(order):
            self._damage.note("messages are out of order, and are sorted by number")
        self._number_anew(odd, steady, taken)
        self._check_promise(max(taken, default=0))
        return sorted(taken.items())

    def _number_anew(self, odd: list[int], steady: list[int], taken: dict[int, int]) -> None:
        named = any(self._numbers) or any(b'"id"' in self._read(place)[-40:] for place in odd[:1])
        last = max(taken, default=0)
        given: list[int] = []
        for place in odd:
            number = self._find_free(steady, taken, place)
            if not number:
                number = last = max(last, *taken, 0) + 1
            taken[number] = place
            given.append(number)
        if named and len(given) > 1:
            self._damage.note(f"{len(given)} messages had wrong numbers")
        elif named and given:
            self._damage.note(f"message {given[0]} had a wrong number")

    def _find_free(self, steady: list[int], taken: dict[int, int], place: int) -> int:
        """Find a number that is free between those of the steady messages before and after this place, or return 0."""
        at = bisect.bisect(steady, place)
        begin = self._numbers[steady[at - 1]] if at else 0
        end = self._numbers[steady[at]] if at < len(steady) else max(taken, default=0) + 2
        return next((number for number in range(begin + 1, end) if number not in taken), 0)

    def _drop_repeated(self) -> list[int]:
        """List the places of the messages without exact repetitions. That the journal repeats the document is usual."""
        first: dict[int, list[int]] = {}
        for place, number in enumerate(self._numbers):
            first.setdefault(number, []).append(place)
        dropped: set[int] = set()
        repeated: list[int] = []
        for number, places in first.items():
            known: dict[int, int] = {}
            for place in places if number and len(places) > 1 else ():
                original = known.setdefault(hash_message(self._read(place)), place)
                if original != place:
                    dropped.add(place)
                    if (original < self._in_document) == (place < self._in_document):
                        repeated.append(place)
        if len(repeated) > 1:
            self._damage.note(f"{len(repeated)} messages are in the files twice")
        elif repeated:
            number = self._numbers[repeated[0]]
            file = "document" if repeated[0] < self._in_document else "journal"
            self._damage.note(f"message {number} is in the {file} twice")
        return [place for place in range(len(self._numbers)) if place not in dropped]

    def _check_promise(self, last: int) -> None:
        """Forget the number of the document's last message if the journal contradicts it."""
        held = self.head.get("metadata")
        promised = held.get(LAST_MESSAGE) if isinstance(held, dict) else None
        first = min((number for number in self._numbers[self._in_document :] if number), default=0)
        before = max(self._numbers[: self._in_document], default=0)
        if isinstance(promised, int) and promised > last and before < first <= promised:
            del self.head["metadata"][LAST_MESSAGE]
            self.is_promise_wrong = True
            self._damage.note(f"{LAST_MESSAGE} is not what it should be")


def _open_document(file: SessionFile | None, damage: DamageReport) -> mmap.mmap | bytes:
    """Open the bytes of a document, without zeros at its end."""
    if file is None:
        return b""
    size = min(OVERSIZED_BYTES, file.size) if file.size > MAX_BYTES else file.find_data_end()
    if size < file.size <= MAX_BYTES:
        damage.note(f"nothing was ever written after byte {size}")
    return mmap.mmap(file.require_descriptor(), size, access=mmap.ACCESS_READ) if size else b""


def _find_rising(numbers: array[int], places: list[int]) -> list[int]:
    """Find the longest row of messages whose numbers rise as they stand. Of two with one number the second belongs to
    it if a number is free before, which the first can have."""
    tails: list[int] = []
    ends: list[int] = []
    before: dict[int, int] = {}
    for place in places:
        if number := numbers[place]:
            at = bisect.bisect_left(tails, number)
            if tails[at : at + 1] == [number] and number - 1 == (tails[at - 1] if at else 0):
                continue
            before[place] = ends[at - 1] if at else -1
            tails[at : at + 1], ends[at : at + 1] = [number], [place]
    row, place = [], ends[-1] if ends else -1
    while place >= 0:
        row.append(place)
        place = before[place]
    return row[::-1]


def _join_parts(pieces: list[_Piece]) -> journal.Parts:
    parts: journal.Parts = []
    for piece in pieces:
        parts = journal.extend_parts(parts, piece.parts)
    return parts


def _join_answer(pieces: list[_Piece], message: bytes) -> bytes:
    found = parse_object(message)
    more = found.get("parts") or []
    parts = journal.extend_parts(_join_parts(pieces), more if isinstance(more, list) else [more])
    return journal.encode_json({**found, "parts": parts})


def _renumber(data: bytes, number: int) -> bytes:
    try:
        return journal.encode_json({**parse_object(data), "id": number})
    except (ValueError, RecursionError):
        return data
