"""Import a session whose files are not as this version writes them: damaged, in an older form, or of another program.

All objects that look like messages, calls or records are taken, wherever they stand, and put in order in our own
form, in memory.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import re
import sys
from typing import NamedTuple

import msgspec

from ollm.domain.messages import JsonObject
from ollm.store.session_files import journal
from ollm.store.session_files.document import (
    CALL,
    FIELDS,
    MESSAGE,
    MIDDLE,
    OPEN,
    is_valid_json,
    parse_call,
    parse_message,
    read_number,
)
from ollm.store.session_files.entry_table import EntryTable, PartialAnswer
from ollm.store.session_files.files import CONTAINED, DamageReport, SessionFile
from ollm.store.session_files.repair import ERRORS, parse_loosely, repair_call, repair_message

_BLANKS = b" \t\r\n,"
_MARK = b"\xef\xbb\xbf"  # that some editors put before UTF-8
_START = re.compile(r'\{\s*+"(?:id|role|parts|timestamp|at|content|name|args)"\s*+:')
_STRUCTURE = re.compile(r'(?:"(?:messages|toolCalls)"\s*+:|\xef\xbb\xbf|[\s,\[\]{}]++)*+')
_CONTENT = {"message", "call", "partial", "top", "set", "append", "mark"}  # of journals, also of older versions
_WINDOW_CHARS, _MAX_TOKEN_CHARS = 1 << 12, 16
_MAX_TORN_BYTES = 6  # of a character or an escape
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_entries_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class _FoundMessage(NamedTuple):
    """A message: its number, or 0, and its line."""

    number: int
    line: bytes
    in_document: bool


class SessionImporter:
    """Reader of everything readable in a document and a journal. `begun` has the entries of the document that end at
    the place `begin`."""

    def __init__(
        self, document: SessionFile, lines: SessionFile, damage: DamageReport, begun: EntryTable | None, begin: int
    ) -> None:
        self.was_ours = False  # the document was in our layout
        self.head: JsonObject = {}
        self._damage = damage
        self._numbers: list[int] = []  # of the messages; 0 without one
        self._lines: list[bytes] = []  # of the messages
        self._journal_begin = sys.maxsize  # so many messages are in the document
        self._calls: dict[str, list[JsonObject | bytes]] = {}  # the records of each call, by id: lines in our own form
        self._newest: dict[str, str] = {}  # of several calls with one id
        self._last_asker = 0
        self._answers: dict[int, PartialAnswer] = {}  # by number; 0 in journals of older versions
        if begun:
            self._numbers, self._lines = [*begun.numbers], [*begun.iter_messages()]
            self._calls = {key: [line] for key, line in zip(begun.calls, begun.iter_calls(), strict=True)}
            self._last_asker = begun.last_asker
        self._add_document(document, begin)
        self._journal_begin = len(self._lines)
        self._add_journal(lines)

    @property
    def _in_document(self) -> bool:
        return self._journal_begin == sys.maxsize

    def make_table(self) -> EntryTable:
        """Make the table of everything that was found, which is held in memory."""
        metadata = self.head.setdefault("metadata", {})
        if not isinstance(metadata, dict):
            metadata = self.head["metadata"] = {}
            self._damage.note("the metadata is damaged")
        metadata.pop(CONTAINED, None)
        under_way = self._finish_answers()
        self._number_messages()
        calls = {key: line for key, records in self._calls.items() if (line := self._join_call(key, records))}
        lines = [*self._lines, *calls.values()]
        table = EntryTable(SessionFile(None, b"".join(lines)), SessionFile(None), None, 0)
        ends = [*itertools.accumulate(map(len, lines))]
        table.take(self._numbers, calls, [0, *ends], self._last_asker)
        if under_way:
            table.partial = under_way._replace(number=max(under_way.number, table.last_number + 1))
        return table

    def _add_document(self, file: SessionFile, begin: int) -> None:
        before = len(self._damage.notes)
        line = next((line for _, _, line in file.iter_lines()), b"").replace(b"\r\n", b"\n")
        self.was_ours = line.startswith(b'{"sessionId"') and line.endswith(OPEN)
        if not line or (not self.was_ours and self._add_whole(file.read(0, file.size).removeprefix(_MARK))):
            return
        with contextlib.suppress(*ERRORS):
            self.head = self._parse(line.removeprefix(_MARK).removesuffix(OPEN) + b"}") if line.endswith(OPEN) else {}
        self._add_lines(file, max(begin, len(line) if self.head else 0), file.size)
        if not (self._lines or self._calls or "sessionId" in self.head):
            self._damage.note("the file is not a JSON document")
        elif not file.read(file.size - 2, file.size).rstrip().endswith(b"}"):
            self._damage.note("the file is truncated")
        elif len(self._damage.notes) == before:
            data = file.read(0, file.size)
            if data.count(MIDDLE) > 1 or not is_valid_json(data):
                self._damage.note("the document is not valid JSON")

    def _add_journal(self, file: SessionFile) -> None:
        *_, (start, _, last) = ((0, 0, b""), *file.iter_lines())
        torn = last if last and journal.is_torn_record(last) else b""  # a kill interrupted the write
        self._add_lines(file, 0, start if torn else file.size)
        if piece := _complete_piece(torn):
            self._add_record(piece)

    def _add_whole(self, data: bytes) -> bool:
        """Add a document in any layout, if it is JSON."""
        if data.count(MIDDLE) > 1:
            return False
        try:
            fields = _fields_decoder.decode(data)
            lists = {name: _entries_decoder.decode(fields.pop(name, b"[]")) for name in ("messages", "toolCalls")}
            self.head = self._parse(msgspec.json.encode(fields))
        except ERRORS:
            return False
        if not self.head.keys() & {"sessionId", "startTime"} and not any(lists.values()):
            self._damage.note("the file is not a session")
        for name, entries in lists.items():
            for entry in map(self._read_entry, map(bytes, entries)):
                if entry is None:
                    self._damage.count_lost_entry(f"{name} contains something that is not one of them")
                else:
                    self._add_entry(entry)
        return True

    def _add_lines(self, file: SessionFile, begin: int, stop: int) -> None:
        """Add every line that is an entry, and the entries between them."""
        odd: list[bytes] = []
        place = begin
        for start, end, line in file.iter_lines(begin):
            if start >= stop:
                break
            if self._add_line(line.strip(_BLANKS)):
                if odd:
                    self._search(b"".join(odd), place)
                odd, place = [], end
            else:
                odd.append(line)
        self._search(b"".join(odd), place)

    def _add_line(self, entry: bytes) -> bool:
        """Add the entry on a line, unchanged if it is in our own form."""
        if self.was_ours and entry.startswith(MESSAGE):
            number = self._numbers[-1] + 1 if self._numbers else 1
            if not entry.endswith(b',"id":%d}' % number):
                number = read_number(entry) if is_valid_json(entry) and not _is_deep(entry) else 0
            if number:
                self._add_numbered(number, entry)
                return True
        elif self.was_ours and entry.startswith(CALL) and not _is_deep(entry) and (call := parse_call(entry)):
            self._last_asker = max(self._last_asker, call.message_id)
            self._add_call(call.id, entry)
            return True
        fields = self._read_entry(entry) if entry[:1] == b"{" and is_valid_json(entry) else None
        if fields:
            self._add_entry(fields)
        return bool(fields)

    def _search(self, data: bytes, base: int) -> None:
        """Add every object that looks like an entry, and report what is nothing at all."""
        text, place, done = data.decode("latin-1"), 0, 0  # a character for each byte
        while found := _START.search(text, place):
            place, begin = found.end(), found.start()
            if (stop := _find_end(text, begin)) and (fields := self._read_entry(data[begin:stop])):
                self._look_between(text[done:begin], base + done)
                self._add_entry(fields)
                done = place = stop
        self._look_between(text[done:], base + done)

    def _look_between(self, text: str, place: int) -> None:
        """Look for the head between two entries."""
        if _STRUCTURE.fullmatch(text):
            return
        if not self._in_document or not ('"sessionId"' in text or '"metadata"' in text):
            name = "unreadable data" if self._in_document else "the journal is damaged"
            self._damage.count_lost_entry(f"{name} at byte {place + len(text) - len(text.lstrip(chr(10) + ',]}'))}")
        elif "sessionId" in self.head:
            self._damage.note("the file holds more than one document, and their messages were joined")
        else:
            found = _find_fields(text)
            self.head = {**found, **self.head}
            if len(found) < len(FIELDS):
                self._damage.note("the file header is damaged")

    def _parse(self, data: bytes) -> JsonObject:
        """Parse an object, and cut what is nested deeper than any writer nests."""
        fields = parse_loosely(data, self._damage)
        if _is_deep(data):
            cut: JsonObject = journal.clean_json(fields)
            if cut != fields:
                self._damage.note(f"something is nested deeper than {journal.MAX_NESTING_LEVELS} levels")
            return cut
        return fields

    def _read_entry(self, data: bytes) -> JsonObject | None:
        """Read an object, or return None if it does not look like a message, a call or a record."""
        with contextlib.suppress(*ERRORS):
            fields = self._parse(data)
            if "role" in fields or _is_call(fields) or fields.keys() & _CONTENT:
                return fields
        return None

    def _add_entry(self, fields: JsonObject) -> None:
        if "role" in fields:
            self._add_message(fields)
        elif _is_call(fields):
            self._add_call(fields["id"], fields)
        else:
            self._add_record(fields)

    def _add_record(self, fields: JsonObject) -> None:
        """Add what is readable in a record of a journal."""
        if isinstance(message := fields.get("message"), dict):
            self._end_answer(fields, message)
            self._add_message(message)
        elif "message" in fields:
            self._damage.count_lost_entry("a message of the journal cannot be read")
        if isinstance(call := fields.get("call"), dict) and isinstance(call.get("id"), str):
            self._add_call(call["id"], call)
        elif "call" in fields:
            self._damage.count_lost_entry("a tool call cannot be read")
        if "partial" in fields:
            self._add_piece(fields)
        changes: JsonObject = {"at": ""}
        for name in fields.keys() & {"at", "top", "set", "append", "tokens"}:
            try:
                msgspec.convert({"at": "", name: fields[name]}, journal.JournalRecord)
                changes[name] = fields[name]
            except ERRORS:
                self._damage.note(f"{name} of a record in the journal is not what it should be")
        self._change_head(msgspec.convert(changes, journal.JournalRecord))

    def _change_head(self, record: journal.JournalRecord) -> None:
        held = self.head.get("metadata")
        self.head["metadata"] = held = held if isinstance(held, dict) else {}
        if journal.lacks_record(held, record):
            self._damage.note("the journal lacks a record")
        journal.change_head(self.head, record)

    def _add_message(self, fields: JsonObject) -> None:
        if found := repair_message(fields, self._damage):
            self._add_numbered(found[0].id, found[1])

    def _add_numbered(self, number: int, line: bytes) -> None:
        if self._in_document and self._calls:
            self._damage.note("lines of the document are not in their place")
        self._numbers.append(number)
        self._lines.append(line)

    def _add_call(self, key: str, record: JsonObject | bytes) -> None:
        """Add a record of a call. Another call with the same id gets one of its own."""
        held = self._calls.get(newest := self._newest.get(key, key))
        if held and not journal.is_same_call(_parse_call(held[0]), _parse_call(record)):
            self._damage.note(f"several tool calls have the id {key[:20]}")
            self._newest[key] = newest = f"{key}-{len(self._calls) + 1}"
        self._calls.setdefault(newest, []).append(record if newest == key else _parse_call(record))

    def _join_call(self, key: str, records: list[JsonObject | bytes]) -> bytes | None:
        """Join the records of a call into one line."""
        if isinstance(line := records[0], bytes) and len(records) == 1:
            return line
        fields = {**journal.join_call(map(_parse_call, records)), "id": key}
        found = repair_call(fields, self._damage)
        self._last_asker = max(self._last_asker, found[0].message_id if found else 0)
        return found and found[1]

    def _end_answer(self, record: JsonObject, message: JsonObject) -> None:
        """Drop the pieces of an answer whose message is there. In older journals the message continues them."""
        if message.get("role") == "user":
            return
        piece = record.get("piece")
        number = piece[0] if isinstance(piece, list) and piece else message.get("id")
        begun = (self._answers.pop(number, None) if isinstance(number, int) else None) or self._answers.pop(0, None)
        if begun and record.get("continues"):
            more = message.get("parts") or []
            message["parts"] = journal.extend_parts(begun.parts, more if isinstance(more, list) else [more])

    def _add_piece(self, fields: JsonObject) -> None:
        piece, parts = fields.get("piece"), fields["partial"]
        is_numbered = isinstance(piece, list) and len(piece) == 2 and all(isinstance(one, int) for one in piece)
        answer, number = piece if isinstance(piece, list) and is_numbered else (0, 0)
        if not isinstance(parts, list) or not all(map(journal.is_part, parts)):
            self._damage.note("the text of an answer is damaged in the journal")
            parts = [part for part in parts if journal.is_part(part)] if isinstance(parts, list) else []
        before = self._answers.get(answer) or PartialAnswer(answer)
        if fields.get("anew"):
            before = PartialAnswer(answer, number - 1)
        if 0 < number <= before.pieces:
            return  # a repetition
        if number > before.pieces + 1:
            self._damage.note("the journal lacks a part of an answer")
        at = fields.get("at")
        parts = journal.extend_parts(before.parts, parts)
        self._answers[answer] = PartialAnswer(answer, number, at if isinstance(at, str) else "", parts)

    def _finish_answers(self) -> PartialAnswer | None:
        """Return the answer under way, and make messages of other unfinished answers."""
        under_way = None
        last = max(self._numbers, default=0)
        for answer, found in sorted(self._answers.items()):
            if not found.parts:
                continue
            if answer == max(self._answers) and (answer == 0 or answer > last):
                under_way = found
            elif not self._holds(answer, found.parts):  # otherwise its pieces are repeated behind it
                self._damage.note("the journal lacks the end of an answer")
                message = {"role": "assistant", "parts": found.parts, "timestamp": found.at, "id": answer}
                self._add_message({**message, "interrupted": True})
        return under_way

    def _holds(self, number: int, parts: journal.Parts) -> bool:
        """Return True if the message with this number contains the text of these parts."""
        held = b"".join(line for known, line in zip(self._numbers, self._lines, strict=True) if known == number)
        return all(journal.encode_json(part.get("text", ""))[1:-1] in held for part in parts)

    def _number_messages(self) -> None:
        """Sort the messages by number. One without a number, or whose number is taken, gets a free one. Exact
        repetitions are dropped."""
        if all(map(operator.lt, (0, *self._numbers), self._numbers)):
            return
        lines = enumerate(zip(self._numbers, self._lines, strict=True))
        messages = [_FoundMessage(number, line, place < self._journal_begin) for place, (number, line) in lines]
        taken: dict[int, _FoundMessage] = {}
        for found in messages:
            if found.number:
                taken.setdefault(found.number, found)
        is_numbered, highest, before = bool(taken), max(taken, default=0), 0
        kept = []
        for found in messages:
            same = taken.get(found.number)
            if same and same is not found and self._is_repeated(same, found):
                continue
            if same is not found:
                try:
                    fields = parse_loosely(found.line)
                except ERRORS:
                    self._damage.count_lost_entry()
                    continue
                before = before + 1 if before + 1 not in taken else highest + 1
                line = journal.encode_json({"role": "", **fields, "id": before})
                found = taken[before] = found._replace(number=before, line=line)  # noqa: PLW2901
                highest = max(highest, before)
                if is_numbered:
                    self._damage.note("messages had wrong numbers")
            before = found.number
            kept.append(found)
        ordered = sorted(kept, key=lambda found: found.number)
        if ordered != kept:
            self._damage.note("messages are out of order, and are sorted by number")
        self._numbers, self._lines = [found.number for found in ordered], [found.line for found in ordered]

    def _is_repeated(self, known: _FoundMessage, other: _FoundMessage) -> bool:
        first, second = parse_message(known.line), parse_message(other.line)
        if not first or not second or (first.role, first.parts) != (second.role, second.parts):
            return False
        if known.in_document == other.in_document:  # both files may have it
            self._damage.note(f"message {known.number} is in the files twice")
        return True


def _complete_piece(data: bytes) -> JsonObject | None:
    """Complete a torn record of streamed text, as earlier versions left it, or return None for any other record."""
    for end in range(len(data), len(data) - _MAX_TORN_BYTES, -1) if b'"partial":' in data else ():
        with contextlib.suppress(*ERRORS):
            if journal.parse_record(data[:end] + b'"}]}').partial:
                return parse_loosely(data[:end] + b'"}]}')
    return None


def _parse_call(record: JsonObject | bytes) -> JsonObject:
    return parse_loosely(record) if isinstance(record, bytes) else record


def _is_deep(data: bytes) -> bool:
    return data.count(b"{") + data.count(b"[") > journal.MAX_NESTING_LEVELS


def _is_call(fields: JsonObject) -> bool:
    return isinstance(fields.get("id"), str) and bool(fields.keys() & {"args", "name"})


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
        except RecursionError:
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
                head[name] = parse_loosely(b'{"v":' + text[found.end() : end].encode("latin-1") + b"}")["v"]
    return head
