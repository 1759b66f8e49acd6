"""Reading a session: document and journal together, line by line, changing no file.

The journal is opened before the document: whatever is folded in between is then found in the document.
"""

from __future__ import annotations

import contextlib
import itertools
import os
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


MAX_HELD_BYTES = 1 << 22  # a longer journal is read twice instead of held
_OTHER_SESSION = "the journal holds messages that are not this session's"
_DISORDER = "the journal's records are out of order"
_NO_MESSAGE = 0, b""
_NUMBER_TAIL_BYTES = 20
PlacedRecord = tuple[Range, journal.JournalRecord]


class SessionPart(NamedTuple):
    """The messages after a number and before another. Some more are read: from one of the user's on, and at least so
    many. With a `least` of 0 nobody asks for messages."""

    after: int
    least: int = 32
    before: int | None = None


class SessionReader:
    """The entries of one session as bytes, oldest first. `head` holds the other fields, journal applied.

    Only `part` of a long session is read. `follows`: this process wrote the journal, after the document, so that its
    messages are new and in order. Of a journal whose beginning is known it is read from `begin` on, over a `head`.
    """

    foreign = False  # missing or in another layout: to be written again before it is added to
    partial_at = ""
    partial_start = 0  # where in the journal the answer under way begins
    narrowed = False  # messages up to number `skipped` are left out
    skipped = 0
    mark: journal.JournalMark | None = None  # the last one, if only a part is read
    _journal: SessionFile | None = None
    _document: SessionFile | None = None
    _entries: SessionDocument | DocumentScan | None = None
    _in_order = True  # the numbers of the journal's messages rise
    _numbers = 0, 0  # of the first and the last of them
    _left_out = 0  # messages up to this number are not read from the document
    _head_place = 0  # in the journal: the head is as it was here

    def __init__(
        self,
        document: Path | None,
        journal_path: Path | None,
        *,
        waiting: bytes = b"",
        damage: DamageReport | None = None,
        part: SessionPart | None = None,
        follows: bool = False,
        begin: int = 0,
        head: JsonObject | None = None,
    ) -> None:
        self.damage = damage or DamageReport()
        self._follows = follows
        self.head: JsonObject = head or {}
        self.partial: journal.Parts = []
        self.journal_good = begin  # bytes of whole journal records
        self.newest_calls: list[str] = []  # ids of the document's last calls, if messages are left out
        self._journal_range = begin, MAX_BYTES
        self._held: list[PlacedRecord] = []  # what was read of a journal that is not long
        self._call_places: dict[str, list[Range]] = {}
        try:
            self._open(document, journal_path, waiting, part)
        except BaseException:
            self.close()
            raise
        heard = DamageReport() if part and part.before else self.damage  # messages in between are left out
        self.missing = MissingEntries(heard, self.head, part=bool(begin or part))

    def _open(self, document: Path | None, journal_path: Path | None, waiting: bytes, part: SessionPart | None) -> None:
        self._journal = self._open_file(journal_path, waiting)
        self._document = self._open_file(document)
        self.damage.size = sum(file.size for file in (self._document, self._journal) if file)
        self._read_head(expected=document is not None)
        if part:
            self._narrow(part)
        self._read_journal_changes()

    def _open_file(self, path: Path | None, waiting: bytes = b"") -> SessionFile | None:
        """Open a file as UTF-8; one in another encoding is rewritten."""
        descriptor = open_file(path, self.damage) if path else None
        if descriptor is not None:
            converted = convert_to_utf8(descriptor)
            if converted is not None:
                os.close(descriptor)
                descriptor, self.foreign = converted, True
        return SessionFile(descriptor, waiting) if descriptor is not None or waiting else None

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes read of the document, and their total."""
        size = self._document.size if self._document else 0
        return (min(self._entries.read, size) if self._entries else 0), size

    def close(self) -> None:
        for file in (self._journal, self._document):
            if file:
                file.close()

    def _narrow(self, part: SessionPart) -> None:
        """Leave out the rest, if the document is in our own layout."""
        if not isinstance(self._entries, SessionDocument) or not self._document:
            return
        if self._narrow_journal(part, self._document):
            self._entries.narrow((0, 0), (0, 0))
            self.narrowed = True
        elif part.least:
            with contextlib.suppress(OddLayoutError):
                sections = DocumentSections(self._document)
                begin = sections.find_beginning(part.after, part.least)
                messages, calls = sections.find_messages(begin, part.before), sections.find_calls(begin, part.before)
                self.newest_calls = sections.list_newest_calls()
                self._entries.narrow(messages, calls)
                self.skipped, self._left_out, self.narrowed = begin, begin, True

    def _narrow_journal(self, part: SessionPart, document: SessionFile) -> bool:
        """Begin at a mark of the journal if everything needed is behind one; otherwise read all of it."""
        marks = journal.iter_marks(self._journal) if self._journal and not self.foreign else iter(())
        newest = next(marks, None)
        if newest is None or not journal.is_same_document(newest.mark.document, document.stamp):
            return False
        self.mark, self._head_place, self.head = newest.mark, newest.place, dict(newest.mark.head)
        self.head["metadata"] = dict(self.head.get("metadata") or {})
        wanted, begin, stop = min(part.after, newest.mark.last - part.least), None, MAX_BYTES
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

    def continue_after(self, message: int, call: int) -> bool:
        """Leave out messages up to one number, and calls of messages before another. False: all must be read."""
        if not isinstance(self._entries, SessionDocument) or not self._document:
            return False
        try:
            sections = DocumentSections(self._document)
            self._entries.narrow(sections.find_messages(message), sections.find_calls(call - 1))
        except OddLayoutError:
            return False
        self._left_out = message
        self.missing = MissingEntries(self.damage, self.head, part=True)
        return True

    def iter_messages(self) -> Iterator[bytes]:
        """Every message in the order of its number; one that document and journal both hold comes once."""
        held = self._entries.iter_messages() if self._entries else iter(())
        return self._merge_messages(held) if self._journal else held

    def _merge_messages(self, held: Iterator[bytes]) -> Iterator[bytes]:
        added = self._iter_journal_messages()
        if self._follows:
            yield from held
            yield from (data for _, data in added)
            return
        number, data = next(added, _NO_MESSAGE)
        last = 0
        for count, kept in enumerate(held, 1):
            if number:
                last = read_number(kept) or count
                while number and number < last:
                    if number > self._left_out:
                        self.damage.note(f"message {number} is in the journal only")
                        yield data
                    number, data = next(added, _NO_MESSAGE)
                if number == last:
                    if hash_message(data) != hash_message(kept):
                        self.damage.note(_OTHER_SESSION)
                    number, data = next(added, _NO_MESSAGE)
            yield kept
        if number:
            yield data
            yield from (data for _, data in added)

    def _iter_journal_messages(self) -> Iterator[tuple[int, bytes]]:
        """The journal's messages with their numbers, rising; `partial` is then the answer under way."""
        found = self._iter_recorded_messages()
        if self._in_order:
            yield from found
            return
        by_number: dict[int, bytes] = {}
        last = 0
        for number, data in found:
            if number < last and number not in by_number:
                self.damage.note(_DISORDER)
            last = number
            if hash_message(by_number.setdefault(number, data)) != hash_message(data):
                self.damage.note(_OTHER_SESSION)
        yield from sorted(by_number.items())

    def _iter_recorded_messages(self) -> Iterator[tuple[int, bytes]]:
        partial: journal.Parts = []
        last = (
            self._numbers[0] or MAX_MESSAGE_NUMBER
        ) - 1  # a first message without a number comes before those that have one
        for _, record in self._held or self._iter_records(DamageReport(), *self._journal_range):  # its damage is noted
            if record.partial is not None:
                partial = journal.extend_parts([] if record.anew else partial, record.partial)
            if isinstance(record.message, msgspec.Raw):
                if record.continues and not partial:
                    self.damage.note("the journal lacks the beginning of an answer")
                data = _complete_message(partial, record)
                partial = []
                last = (not self._follows and read_number(data)) or last + 1
                yield last, data
        self.partial = partial

    def iter_calls(self) -> Iterator[bytes]:
        """Every call in its newest state, in the order in which they were first asked."""
        held = self._entries.iter_calls() if self._entries else iter(())
        return self._update_calls(held) if self._call_places else held

    def _update_calls(self, held: Iterator[bytes]) -> Iterator[bytes]:
        waiting = dict(self._call_places)
        for data in held:
            updates = waiting.pop(_read_call_id(data), None) if waiting else None
            yield self._apply_updates(data, updates) if updates else data
        for places in waiting.values():
            yield self._apply_updates(b"{}", places)

    def find_call_start(self, call_id: str) -> int:
        """Find the first record of a call in the journal; 0 if there is none."""
        return self._call_places.get(call_id, [(0, 0)])[0][0]

    def _apply_updates(self, data: bytes, places: list[Range]) -> bytes:
        """Apply the journal's records to a call; a start never overrides an end."""
        assert self._journal
        found: JsonObject = {}
        with contextlib.suppress(ValueError, RecursionError):
            found = parse_object(data)
        changes = []
        for place in places:
            record = parse_record_leniently(self._journal.read(*place))
            if isinstance(record.call, msgspec.Raw):
                changes.append(parse_object(bytes(record.call)))
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

    def _read_journal_changes(self) -> None:
        """Apply the journal to the head, and note where its calls are and whether its messages are in order."""
        if not self._journal:
            return
        begin, stop = self._journal_range
        records = self._iter_records(self.damage, begin, stop)
        if self._journal.size - begin <= MAX_HELD_BYTES:
            self._held = list(records)
            records = iter(self._held)
        for place, record in records:
            if isinstance(record.call, msgspec.Raw):
                self._call_places.setdefault(_read_call_id(bytes(record.call)), []).append(place)
            elif not self._follows and isinstance(record.message, msgspec.Raw):
                first, last = self._numbers
                number = read_number(bytes(record.message))
                self._in_order = self._in_order and number > last
                self._numbers = first or number, number
            if place[0] >= self._head_place:
                self._change_head(place, record)
        if stop != MAX_BYTES:
            for place, record in self._iter_records(self.damage, self._head_place, MAX_BYTES):
                self._change_head(place, record)

    def _change_head(self, place: Range, record: journal.JournalRecord) -> None:
        if record.append:
            self._check_growth(place, record.append)
        journal.change_head(self.head, record)
        if record.partial is not None:
            self.partial_start = self.partial_start if self.partial_at else place[0]
            self.partial_at = record.at
        elif isinstance(record.message, msgspec.Raw):
            self.partial_at = ""

    def _check_growth(self, place: Range, grown: journal.GrownLists) -> None:
        """Check that the lists which a record continues are as long as they were when it was written."""
        held = self.head.get("metadata") or {}
        for name, (start, _) in grown.items():
            if isinstance(before := held.get(name), list) and len(before) < start:
                self.damage.note(f"the journal lacks a record before byte {place[0]}")

    def _iter_records(self, damage: DamageReport, begin: int, stop: int) -> Iterator[PlacedRecord]:
        """Every whole record with its place. A torn last one was never acknowledged."""
        if not self._journal:
            return
        strange, before, size = False, b"", self._journal.size
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
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
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
                yield from (((start + first, start + last), one) for first, last, one in found)
            else:
                strange = False
                self.journal_good = end
                yield (start, end), record


def _complete_message(partial: journal.Parts, record: journal.JournalRecord) -> bytes:
    """Complete a recorded message: one that continues a partial answer holds only its new part."""
    assert isinstance(record.message, msgspec.Raw)
    if not record.continues:
        return bytes(record.message)
    found = parse_object(bytes(record.message))
    return journal.encode_json({**found, "parts": journal.extend_parts(partial, found.get("parts") or [])})


def read_number(data: bytes) -> int:
    """The number of a message; 0 without one."""
    head, _, last = data[-_NUMBER_TAIL_BYTES:].rpartition(b',"id":')
    if head and last[-1:] == b"}" and last[:-1].isdigit():  # our own lines end so: no need to parse them
        number = int(last[:-1])
    else:
        try:
            number = message_key_decoder.decode(data).id
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return 0
    return number if 0 < number <= MAX_MESSAGE_NUMBER else 0


def _read_call_id(data: bytes) -> str:
    try:
        return journal.read_call_id(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
