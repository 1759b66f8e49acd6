"""Read a session from document and journal together, without changing any file.

Lines as we write them are taken as they stand. What is left between them is searched for objects, and each is taken by
its shape, wherever it stands. The journal is opened before the document, so that entries folded in between are found in
the document.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ollm.domain.lazy import compile_late
from ollm.domain.messages import JsonObject
from ollm.store.session_files import journal
from ollm.store.session_files.document import (
    CALL,
    CLOSE,
    FIELDS,
    MAX_HEAD_BYTES,
    MESSAGE,
    MIDDLE,
    OPEN,
    fits_metadata,
    is_deeper_than,
    is_torn_record,
    is_valid_json,
    parse_object,
    read_number,
    read_shape,
)
from ollm.store.session_files.entry_table import EntryTable
from ollm.store.session_files.files import (
    CONTAINED,
    MAX_BYTES,
    DamageReport,
    MissingEntries,
    Range,
    SessionFile,
    get_file_time,
    open_file,
)
from ollm.store.session_files.waypoints import REQUEST, KnownState, Waypoint

_ID_CHARS = 36  # of a session's id, which names its files
_BLANKS = b" \t\r\n,"
_MARK = b"\xef\xbb\xbf"  # that some editors put before UTF-8
_START = compile_late(r'\{\s*+"(?:id|role|parts|timestamp|at|content|name|args)"\s*+:')
_STRUCTURE = compile_late(r'(?:"(?:messages|toolCalls)"\s*+:|\xef\xbb\xbf|[\s,\[\]{}]++)*+')
_MOVED = "lines of the document are not in their place"
_WINDOW_CHARS, _MAX_TOKEN_CHARS = 1 << 12, 16
OVERSIZED_BYTES = 1 << 24  # that are searched of a file over the limit
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_entries_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class SessionPart(msgspec.Struct, frozen=True):
    """The messages between two numbers, with their calls. Some more are read: from a waypoint on, and at least `least`.
    With a `least` of 0 no messages are needed. Without a `known` state everything is read."""

    known: KnownState | None
    after: int
    least: int = 32
    before: int | None = None


class SessionReader:
    """The entries of one session as bytes, oldest first. `head` holds the other fields, with the journal applied.

    Of a long session only `part` is read.
    """

    foreign = False  # missing, damaged or in another layout: to be written again before it is added to
    known: KnownState | None = None  # the state from which reading began, if only a part is read
    skipped = 0  # messages up to this number are left out
    read = 0  # bytes of the entries that were taken
    journal_good = 0  # bytes of whole journal records
    _journal: SessionFile | None = None
    _document: SessionFile | None = None
    _journal_range = 0, MAX_BYTES

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
        self._part, self._name = part, document.stem if document else ""
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
        self.missing = MissingEntries(heard, self.head, self.table.last_number, part=self.known is not None)

    @property
    def partial(self) -> journal.Parts:
        """The parts of an answer that is not finished."""
        return self.table.partial.parts

    def _open_file(self, path: Path | None, waiting: bytes = b"") -> SessionFile | None:
        descriptor = open_file(path, self.damage) if path else None
        return SessionFile(descriptor, waiting) if descriptor is not None or waiting else None

    def _read_files(self) -> None:
        body = self._read_head()
        self._check_head()
        self._skip_contained()
        ranges = self._narrow(self._part) if self._part and body else None
        self.table = EntryTable(self._document, self._journal, self.damage, self.known)
        if self._document and (body or not self._read_other_layout(self._document)):
            for begin, end in [(body, MAX_BYTES)] if ranges is None else ranges:
                self._read_lines(self._document, begin, end)
            self._check_ends(self._document)
        self._read_journal()
        self.table.finish()
        if self.foreign:
            self.journal_good = self._journal.size if self._journal else 0
            self._check_head()

    def make_known(self, count: int, last: int, calls: int) -> KnownState | None:
        """Make the state of these files, or return None if they are not as we write them."""
        if self.foreign or not self._document or self.damage.text:
            return None
        return KnownState(
            document=self._document.stamp,
            journal=self._journal.inode if self._journal else 0,
            size=self.journal_good,
            head=self.head,
            count=count,
            last=last,
            calls=calls,
            end=self.table.notes.end,
            waypoints=self.table.notes.list_waypoints(),
        )

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes of the entries read so far, and of all files."""
        return min(self.read, self.damage.size), self.damage.size

    def close(self) -> None:
        for file in (self._journal, self._document):
            if file:
                file.close()

    def iter_messages(self) -> Iterator[bytes]:
        """Iterate over the messages by number."""
        return self.table.iter_messages(self.skipped)

    def iter_calls(self) -> Iterator[bytes]:
        """Iterate over the calls in their newest state, in the order in which they were first requested."""
        return self.table.iter_calls()

    def _read_head(self) -> int:
        """Read the first line of a document in our layout, and return its length; 0 for any other layout."""
        line = self._document.read_line(0, MAX_HEAD_BYTES) if self._document else b""
        if self._document and self._document.size > MAX_BYTES:
            self.damage.refuse(f"the file is too large to read ({self._document.size // 1_000_000} MB)")
        head = line.removeprefix(_MARK).removesuffix(OPEN) + b"}"
        self.foreign = line.startswith(_MARK)
        if is_deeper_than(head):
            self.damage.refuse_depth()
        elif line.endswith(OPEN) and is_valid_json(head):
            self.head = parse_object(head)
            if not self.head.keys() & {"messages", "toolCalls"}:
                return len(line)
        self.head, self.foreign = {}, True
        return 0

    def _check_head(self) -> None:
        named = self.head.get("sessionId")
        if isinstance(named, str) and len(self._name) == _ID_CHARS and named.lower() != self._name:
            self.damage.note("the document has the id of another session")
        metadata = self.head.get("metadata")
        self.head["metadata"] = held = dict(metadata) if isinstance(metadata, dict) else {}
        for name in [name for name, value in held.items() if not fits_metadata(name, value)]:
            self.damage.note(f"{name} is not what it should be")

    def _skip_contained(self) -> None:
        """Skip a journal that the document contains: its writer ended before the journal was removed."""
        contained = (self.head.get("metadata") or {}).pop(CONTAINED, None)
        if contained and contained == self.compute_journal_checksum() and self._journal:
            self._journal.close()
            self._journal = None

    def compute_journal_checksum(self) -> str:
        return self._journal.compute_checksum() if self._journal else ""

    def _narrow(self, part: SessionPart) -> list[Range] | None:
        """Find the parts of the document that are needed, or return None if it must be read whole."""
        known, document = part.known, self._document
        if not known or not document or document.stamp != known.document:
            return [] if part.least == 0 else None
        inode, size = (self._journal.inode, self._journal.size) if self._journal else (0, 0)
        begin = known.find_begin(max(0, min(part.after, known.last - part.least)) + 1)
        if size < known.size or (known.size and inode != known.journal) or not (begin or part.least == 0):
            return None
        end = known.find_end(part.before) if part.before else None
        begin = begin if begin and part.least else Waypoint(known.last + 1, document.size + known.size, 0)
        self.known, self.skipped, self.journal_good = known, begin.number - 1, known.size
        self.head = {**known.head, "metadata": dict(known.head.get("metadata") or {})}
        self._journal_range = max(0, begin.place - document.size), end.place - document.size if end else MAX_BYTES
        if begin.place >= document.size:
            return []
        end = end if end and end.place < document.size else known.end
        return [(begin.place, end.place), (begin.call_place, end.call_place)]

    def _note_irregular(self, text: str = "") -> None:
        """Note that the files are not as we write them, even if all was read."""
        self.foreign = True
        self.damage.stop_if_strict(text)
        if text:
            self.damage.note(text)

    def _read_other_layout(self, document: SessionFile) -> bool:
        """Read a whole JSON document that is not in lines as ours is."""
        if document.size > MAX_BYTES:
            return False
        try:
            fields = _fields_decoder.decode(document.read(0, document.size).removeprefix(_MARK))
            lists = {name: _entries_decoder.decode(fields.pop(name, b"[]")) for name in ("messages", "toolCalls")}
            if any(is_deeper_than(bytes(value)) for value in fields.values()):
                self.damage.refuse_depth()
                return False
            self.head = parse_object(msgspec.json.encode(fields))
        except RecursionError:
            self.damage.refuse_depth()
            return False
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
            return False
        if not self.head.keys() & {"sessionId", "startTime"} and not any(lists.values()):
            self.damage.note("the file is not a session")
        for name, entries in lists.items():
            for data in map(bytes, entries):
                self._add_listed(name, data)
        self._check_head()
        return True

    def _add_listed(self, name: str, data: bytes) -> None:
        if not data.startswith(b"{"):
            self.damage.count_lost_entry(f"{name} contains something that is not an object")
            return
        record = read_shape(data)
        if record is None:
            raw = msgspec.Raw(data)
            message, call = (raw, msgspec.UNSET) if name == "messages" else (msgspec.UNSET, raw)
            record = journal.JournalRecord(at="", message=message, call=call)
        self.table.add_record(record, b"", 0)

    def _read_lines(self, document: SessionFile, begin: int, end: int) -> None:
        """Add the entries between two places of the document. A message with the next number counts as whole."""
        done, last, ends, end, notes = begin, 0, [], min(end, document.size), self.table.notes
        for start, stop, line in document.iter_lines(begin):
            if start >= end or stop > MAX_BYTES:
                break
            entry, is_message, number = line.rstrip(_BLANKS), line.startswith(MESSAGE), last + 1
            is_call = not is_message and line.startswith(CALL)
            is_whole = (is_message and entry.endswith(b',"id":%d}' % number)) or line in (MIDDLE, CLOSE)
            if not is_whole and not ((is_message or is_call) and is_valid_json(entry)):
                continue
            if done < start:
                self._search(document, 0, done, start)
            done = stop
            if is_message:
                last = number if is_whole else read_number(entry)
                self.table.add_message(last, start, start + len(entry))
                if line.startswith(REQUEST) and notes.is_due(last, start):
                    notes.add_request(last, start)
            elif is_call:
                self.table.add_call(entry, start)
            else:
                ends.append((line, start))
            if (is_message if ends else is_call) and begin and not self.known:
                self._note_irregular(_MOVED)
        self._search(document, 0, done, end)
        if begin and not self.known:
            if [line for line, _ in ends] == [MIDDLE, CLOSE]:
                notes.end = Waypoint(last + 1, ends[0][1], ends[1][1])
            else:
                self._note_irregular(_MOVED if CLOSE in dict(ends) else "the file is truncated")

    def _search(self, file: SessionFile, base: int, start: int, end: int) -> None:
        """Add every object between two places of a file that has the shape of an entry. `base` is where the file
        begins among the places of the table."""
        if start >= end:
            return
        self._note_irregular()
        data = file.read(start, min(end, start + OVERSIZED_BYTES) if self.damage.too_large else end)
        text, place, done = data.decode("latin-1"), 0, 0  # a character for each byte
        while found := _START.search(text, place):
            place, begin = found.end(), found.start()
            try:
                stop = _find_end(text, begin)
            except RecursionError:
                self.damage.refuse_depth()
                break
            if stop and (record := read_shape(data[begin:stop])):
                self._look_between(text[done:begin], start + done, base)
                self._add_record(record, data[begin:stop], base + start + begin)
                done = place = stop
        self._look_between(text[done:], start + done, base)

    def _look_between(self, text: str, place: int, base: int) -> None:
        """Look for the head between two entries, and report what is nothing at all."""
        if _STRUCTURE.fullmatch(text):
            return
        if base or not ('"sessionId"' in text or '"metadata"' in text):
            name = "the journal is damaged" if base else "unreadable data"
            first = place + len(text) - len(text.lstrip("\r\n,]}"))
            self.damage.count_lost_entry(f"{name} at byte {first}")
        elif "sessionId" in self.head:
            self.damage.note("the file holds more than one document, and their messages were joined")
        else:
            found = _find_fields(text)
            self.head = {**found, **self.head}
            self.damage.note(_MOVED if len(found) == len(FIELDS) else "the file header is damaged")

    def _add_record(self, record: journal.JournalRecord, data: bytes, place: int) -> None:
        self.table.add_record(record, data, place)
        if record.at:
            held = self.head.get("metadata")
            self.head["metadata"] = held if isinstance(held, dict) else {}
            journal.change_head(self.head, record)

    def _check_ends(self, document: SessionFile) -> None:
        if self.table.is_empty and "sessionId" not in self.head:
            self.damage.note("the file is not a JSON document")
        elif not document.read(max(0, document.size - 16), document.size).rstrip().endswith(b"}"):
            self._note_irregular("the file is truncated")

    def _read_journal(self) -> None:
        """Apply the journal to the head, and add its entries."""
        begin, stop = self._journal_range
        applied = self.known.size if self.known else 0
        for place, data, record in self._iter_records(begin, stop):
            self.table.add_record(record, data, self.table.journal_place + place)
            if place >= applied:
                self._change_head(place, record)
        if stop != MAX_BYTES:
            for place, _, record in self._iter_records(max(applied, stop), MAX_BYTES):
                self._change_head(place, record)

    def _change_head(self, place: int, record: journal.JournalRecord) -> None:
        held = self.head.get("metadata") or {}
        for name, (start, _) in (record.append or {}).items():
            if isinstance(before := held.get(name), list) and len(before) < start:
                self._note_irregular(f"the journal lacks a record before byte {place}")
        journal.change_head(self.head, record)

    def _iter_records(self, begin: int, stop: int) -> Iterator[tuple[int, bytes, journal.JournalRecord]]:
        """Iterate over the complete records with place and bytes. A truncated last one was never acknowledged."""
        file, base, done = self._journal, self.table.journal_place, begin
        for start, end, line in file.iter_lines(begin) if file else ():
            if start >= stop:
                return
            if end > MAX_BYTES:
                self.damage.refuse(f"the journal is too large to read ({self.damage.size // 1_000_000} MB)")
                return
            data = line
            try:
                record: journal.JournalRecord | None = journal.parse_record(line)
            except journal.DECODE_ERRORS:
                if done == start and file and end == file.size and is_torn_record(line):
                    if whole := journal.complete_piece(line):
                        self.foreign = True
                        yield start, whole, journal.parse_record(whole)
                    return
                data = line.rstrip(_BLANKS + b"\0")
                record = self._parse_loosely(data)
            if record and file:
                self._search(file, base, done, start)
                self.journal_good = done = end
                yield start, data, record
        if file:
            self._search(file, base, done, file.size)

    def _parse_loosely(self, line: bytes) -> journal.JournalRecord | None:
        """Parse a line of the journal that is not as we write it."""
        record = read_shape(line) if line.startswith(b"{") else None
        if record:
            self._note_irregular("the text of an answer is damaged in the journal" if record.partial else "")
        return record


def _find_end(text: str, begin: int) -> int:
    """Find the end of the object that begins here, or return 0. A parser's error costs as much as the text before it:
    only a window is parsed."""
    import json

    decoder, window = json.JSONDecoder(strict=False), _WINDOW_CHARS
    while True:
        part = text[begin : begin + window]
        try:
            return begin + decoder.raw_decode(part)[1]
        except json.JSONDecodeError as error:
            is_cut = error.msg.startswith("Unterminated") or error.pos >= len(part) - _MAX_TOKEN_CHARS
            if not is_cut or begin + window >= len(text):
                return 0
        window *= 16


def _find_fields(text: str) -> JsonObject:
    """Find the fields of a damaged head that can still be read."""
    import json

    head: JsonObject = {}
    for name in FIELDS:
        with contextlib.suppress(ValueError, RecursionError):
            if found := re.search(rf'"{name}"\s*:\s*', text):
                end = json.JSONDecoder(strict=False).raw_decode(text, found.end())[1]
                value = text[found.end() : end].encode("latin-1")
                if not is_deeper_than(value):
                    head[name] = parse_object(b'{"v":' + value + b"}")["v"]
    return head
