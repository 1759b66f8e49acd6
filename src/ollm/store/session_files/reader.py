"""Reading a session: document and journal together, line by line, changing no file.

The journal is opened before the document: whatever is folded in between is then found in the document.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from ollm.domain.messages import JsonObject
from ollm.store.session_files import journal
from ollm.store.session_files.document import OddLayoutError, SessionDocument, detect_own_layout
from ollm.store.session_files.files import (
    MAX_BYTES,
    DamageReport,
    Range,
    convert_to_utf8,
    get_size,
    iter_lines,
    open_regular_file,
    read_range,
)
from ollm.store.session_files.journal import is_same_document, iter_marks
from ollm.store.session_files.lenient import (
    MAX_NUMBER,
    find_records,
    fits_metadata,
    hash_message,
    parse_object,
    parse_record_leniently,
)

if TYPE_CHECKING:
    from ollm.store.session_files.scan import DocumentScan


_OTHER_SESSION = "the journal holds messages that are not this session's"
_DISORDER = "the journal's records are out of order"


_NO_MESSAGE = 0, b""
_NUMBER_TAIL_BYTES = 20


class _MessageNumber(msgspec.Struct):
    id: int = 0


_message_number_decoder = msgspec.json.Decoder(_MessageNumber)


class SessionReader:
    """The entries of one session as bytes, oldest first. `head` holds the other fields, journal applied.

    With `newest` a long journal is read from its last mark on until `skip_to` says how much is wanted of it. `follows`:
    this process wrote the journal, after the document, so that its messages are new and in order.
    """

    def __init__(
        self,
        document: Path,
        journal_path: Path | None,
        *,
        waiting: bytes = b"",
        damage: DamageReport | None = None,
        newest: bool = False,
        follows: bool = False,
    ) -> None:
        self.damage = damage or DamageReport()
        self._follows = follows
        self._journal: BinaryIO | None = None
        self._document: BinaryIO | None = None
        self._entries: SessionDocument | DocumentScan | None = None
        self.foreign = False  # missing or in another layout: to be written again before it is added to
        self.head: JsonObject = {}
        self.partial: journal.Parts = []
        self.partial_at = ""
        self.partial_start = 0  # where in the journal the answer under way begins
        self.journal_good = 0  # bytes of whole journal records
        self._in_order = True  # the numbers of the journal's messages rise
        self._numbers = 0, 0  # of the first and the last of them
        self._left_out = 0  # messages up to this number are not read from the document
        self.skipped = 0  # messages up to this number are left out
        self.empty = True  # no message and no call was read so far
        self.newest_calls: list[str] = []  # ids of the document's last calls, where messages are left out
        self.mark: journal.JournalMark | None = None  # the last one: what is before it was not read
        self._journal_range = 0, MAX_BYTES
        self._call_places: dict[str, list[Range]] = {}
        try:
            self._open_files(document, journal_path, waiting, newest=newest)
        except BaseException:
            self.close()
            raise

    def _open_files(self, document: Path, journal_path: Path | None, waiting: bytes, *, newest: bool) -> None:
        self._journal = _append_waiting(self._open_file(journal_path) if journal_path else None, waiting)
        self._document = self._open_file(document)
        self.damage.size = sum(get_size(file) for file in (self._document, self._journal) if file)
        self._read_head()
        if newest:
            self._begin_at_mark()
        self._read_journal_changes()

    def _begin_at_mark(self) -> None:
        """Leave out what is before the journal's last mark, when that is about this document."""
        if not self._journal or not self._document or self.foreign:
            return
        found = next(iter_marks(self._journal), None)
        stat_ = os.fstat(self._document.fileno())
        if found and is_same_document(found.mark.document, f"{stat_.st_ino},{stat_.st_size},{stat_.st_mtime_ns}"):
            self.mark, self.head = found.mark, dict(found.mark.head)
            self.head["metadata"] = dict(self.head.get("metadata") or {})
            self._journal_range = found.place, MAX_BYTES

    def _open_file(self, path: Path) -> BinaryIO | None:
        """Open a file as UTF-8; one in another encoding is rewritten."""
        file = open_regular_file(path, self.damage)
        converted = convert_to_utf8(file) if file else None
        if file is None or converted is None:
            return file
        file.close()
        self.foreign = True
        return converted

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes read of the document, and their total."""
        size = get_size(self._document) if self._document else 0
        return (min(self._entries.read, size) if self._entries else 0), size

    def close(self) -> None:
        for file in (self._journal, self._document):
            if file:
                file.close()

    def skip_to(self, number: int, least: int = 32, before: int | None = None) -> bool:
        """Leave out messages up to this number and their calls; some more are read, from one of the user's on.

        With `before` the document's messages from that one on are left out too. False when all must be read: the
        document is in another layout.
        """
        if not isinstance(self._entries, SessionDocument):
            return False
        if self._skip_in_journal(self._entries, number, least, before):
            return True
        try:
            sections = self._entries.open_sections()
            begin = sections.find_beginning(number, least)
            self._entries.narrow(sections.find_messages(begin, before), sections.find_calls(begin, before))
            self.newest_calls = sections.list_newest_calls()
        except OddLayoutError:
            return False
        self.skipped = self._left_out = begin
        return True

    def _skip_in_journal(self, document: SessionDocument, number: int, least: int, before: int | None) -> bool:
        """Begin at a mark of the journal if everything needed is behind one; otherwise read all of it."""
        if not self.mark or not self._journal:
            return False
        wanted, stop, begin = min(number, self.mark.last - least), MAX_BYTES, None
        for placed in iter_marks(self._journal):
            if before and placed.mark.last >= before - 1:
                stop = placed.place
            if placed.mark.last <= wanted:
                begin = placed
                break
        self._widen_journal(begin.place if begin else 0, stop)
        if not begin:
            return False
        document.narrow((0, 0), (0, 0))
        self.skipped, self.newest_calls = begin.mark.last, [f"c{self.mark.calls}"]
        return True

    def _widen_journal(self, begin: int, stop: int) -> None:
        """Read from an earlier place on, and up to another; what is between is looked at for the first time."""
        behind, self._call_places = self._call_places, {}
        self._journal_range = begin, min(stop, self._journal_range[0])
        (first, _), self._numbers = self._numbers, (0, 0)
        for place, record in self._iter_records(self.damage):
            self._note_call(place, record)
            self._check_order(record)
        self._in_order = self._in_order and (not first or self._numbers[1] < first)
        for name, places in behind.items():
            self._call_places.setdefault(name, []).extend(places)
        self._journal_range = begin, stop
        if stop != MAX_BYTES:
            self._call_places = {name: found for name, found in self._call_places.items() if found[0][0] < stop}

    def continue_after(self, message: int, call: int) -> bool:
        """Leave out messages up to one number, and calls of messages before another. False: all must be read."""
        if not isinstance(self._entries, SessionDocument):
            return False
        try:
            sections = self._entries.open_sections()
            self._entries.narrow(sections.find_messages(message), sections.find_calls(call - 1))
        except OddLayoutError:
            return False
        self._left_out = message
        return True

    def iter_messages(self) -> Iterator[bytes]:
        """Every message in the order of its number; one that document and journal both hold comes once."""
        added = self._iter_journal_messages()
        if self._follows and self._entries:
            yield from self._entries.iter_messages()
            yield from (data for _, data in added)
            return
        number, data = next(added, _NO_MESSAGE)
        last = 0
        for count, held in enumerate(self._entries.iter_messages() if self._entries else (), 1):
            if number:
                last = read_number(held) or count
                while number and number < last:
                    if number > self._left_out:
                        self.damage.note(f"message {number} is in the journal only")
                        yield data
                    number, data = next(added, _NO_MESSAGE)
                if number == last:
                    if hash_message(data) != hash_message(held):
                        self.damage.note(_OTHER_SESSION)
                    number, data = next(added, _NO_MESSAGE)
            yield held
        while number:
            if number > last:
                last = number
                yield data
            number, data = next(added, _NO_MESSAGE)

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
        last = (self._numbers[0] or MAX_NUMBER) - 1  # a first message without a number comes before those that have one
        for _, record in self._iter_records(DamageReport()):  # its damage was reported at the first reading
            if record.partial is not None:
                partial = journal.extend_parts([] if record.anew else partial, record.partial)
            if isinstance(record.message, msgspec.Raw):
                if record.continues and not partial:
                    self.damage.note("the journal lacks the beginning of an answer")
                data = complete_message(partial, record)
                partial = []
                last = (not self._follows and read_number(data)) or last + 1
                yield last, data
        self.partial = partial

    def iter_calls(self) -> Iterator[bytes]:
        """Every call in its newest state, in the order in which they were first asked."""
        waiting = dict(self._call_places)
        for data in self._entries.iter_calls() if self._entries else ():
            updates = waiting.pop(_read_call_id(data), None)
            yield self._apply_updates(data, updates) if updates else data
        for places in waiting.values():
            yield self._apply_updates(b"{}", places)

    def _apply_updates(self, data: bytes, places: list[Range]) -> bytes:
        """Apply the journal's records to a call; a start never overrides an end."""
        assert self._journal
        found: JsonObject = {}
        with contextlib.suppress(ValueError, RecursionError):
            found = parse_object(data)
        changes = []
        for place in places:
            record = parse_record_leniently(read_range(self._journal, place))
            if isinstance(record.call, msgspec.Raw):
                changes.append(parse_object(bytes(record.call)))
        for change in sorted(changes, key=lambda change: change.get("status") != "running"):
            found |= change
        return journal.encode_json(found)

    def _read_head(self) -> None:
        if not self._document:
            self.foreign = True
            return
        first = detect_own_layout(self._document)
        if first:
            self._entries = SessionDocument(self._document, first, self.damage)
        else:
            from ollm.store.session_files.scan import DocumentScan

            self._entries = DocumentScan(self._document, self.damage)
            self.foreign = True
        self.head = self._entries.head
        size = os.fstat(self._document.fileno()).st_size
        if size > MAX_BYTES:
            self.damage.refuse(f"the file is too large to read ({size // 1_000_000} MB)")
        metadata = self.head.get("metadata")
        self.head["metadata"] = held = dict(metadata) if isinstance(metadata, dict) else {}
        for name in [name for name, value in held.items() if not fits_metadata(name, value)]:
            self.damage.note(f"{name} is not what it should be")

    def _read_journal_changes(self) -> None:
        """Apply the journal to the head, and note where its calls are and whether its messages are in order."""
        for place, record in self._iter_records(self.damage):
            journal.change_head(self.head, record)
            self._note_call(place, record)
            if record.partial is not None:
                self.partial_start = self.partial_start if self.partial_at else place[0]
                self.partial_at = record.at
            elif isinstance(record.message, msgspec.Raw):
                self.partial_at = ""
            if not self._follows:
                self._check_order(record)

    def _check_order(self, record: journal.JournalRecord) -> None:
        if isinstance(record.message, msgspec.Raw):
            first, last = self._numbers
            number = read_number(bytes(record.message)) or last
            self._in_order = self._in_order and number >= last
            self._numbers = first or number, number

    def _note_call(self, place: Range, record: journal.JournalRecord) -> None:
        if isinstance(record.call, msgspec.Raw):
            self._call_places.setdefault(_read_call_id(bytes(record.call)), []).append(place)

    def _iter_records(self, damage: DamageReport) -> Iterator[tuple[Range, journal.JournalRecord]]:
        """Every whole record with its place. A torn last one was never acknowledged."""
        if not self._journal:
            return
        strange, before, size = False, b"", get_size(self._journal)
        begin, stop = self._journal_range
        for start, end, data in iter_lines(self._journal, begin):
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
                found = list(find_records(data))
                torn = end == size and not data.endswith(b"\n") and journal.is_torn_record(data)
                if torn and not any(one.at for _, _, one in found):
                    return
                if sum(last - first for first, last, _ in found) == len(data.strip()):
                    damage.note(f"records are joined in the journal at byte {start}")
                elif not strange:
                    damage.count_lost_entry(f"the journal is damaged at byte {start}")
                    strange = True
                self.journal_good = end
                yield from (((start + first, start + last), one) for first, last, one in found)
            else:
                strange = False
                self.journal_good = end
                yield (start, end), record


def complete_message(partial: journal.Parts, record: journal.JournalRecord) -> bytes:
    """Complete a recorded message: one that continues a partial answer holds only its new part."""
    assert isinstance(record.message, msgspec.Raw)
    if not record.continues:
        return bytes(record.message)
    found = parse_object(bytes(record.message))
    return journal.encode_json({**found, "parts": journal.extend_parts(partial, found.get("parts") or [])})


def read_number(data: bytes) -> int:
    head, _, last = data[-_NUMBER_TAIL_BYTES:].rpartition(b',"id":')
    if head and last[-1:] == b"}" and last[:-1].isdigit():  # our own lines end so: no need to parse them
        return int(last[:-1])
    try:
        number = _message_number_decoder.decode(data).id
        return number if 0 < number <= MAX_NUMBER else 0
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0


def _read_call_id(data: bytes) -> str:
    try:
        return journal.read_call_id(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def _append_waiting(file: BinaryIO | None, waiting: bytes) -> BinaryIO | None:
    """The journal and, behind it, the records that are not on disk yet."""
    if not waiting:
        return file
    with contextlib.closing(file or io.BytesIO()) as source:
        return io.BytesIO(source.read() + waiting)
