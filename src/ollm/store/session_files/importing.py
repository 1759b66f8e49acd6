"""Import a session whose files are not as this version writes them: damaged, in an older form, or of another program.

All objects that look like messages, calls or records are taken, wherever they stand. Those in our own form stay in
their place in the files; the others are encoded anew.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from typing import NamedTuple

import msgspec

from ollm.domain.messages import AnyPart, JsonObject, Message, ToolCallPart, ToolResultPart
from ollm.store.session_files import journal
from ollm.store.session_files.document import (
    CALL,
    FIELDS,
    MESSAGE,
    MIDDLE,
    OPEN,
    is_valid_json,
    parse_message,
    parse_number,
)
from ollm.store.session_files.entry_table import EntryTable, PartialAnswer, Range
from ollm.store.session_files.files import MAX_MESSAGE_NUMBER, DamageReport, SessionFile
from ollm.store.session_files.repair import ERRORS, parse_loosely

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
    """A message: its number, or 0, and its place."""

    number: int
    place: Range
    in_document: bool


class SessionImporter:
    """Reader of everything readable in a document and a journal."""

    def __init__(self, document: SessionFile, lines: SessionFile, damage: DamageReport) -> None:
        self.head: JsonObject = {}
        self.was_ours = False  # the document was in our layout
        self._document, self._journal, self._damage = document, lines, damage
        self._in_document = True
        self._base = 0  # of the file that is read: places are those in both files together, then in `mended`
        self._mended = bytearray()
        self._mended_place = document.size + lines.size
        self._messages: list[_FoundMessage] = []
        self._calls: list[list[Range]] = []  # the records of each call
        self._calls_of: dict[str, list[int]] = {}  # by id
        self._answers: dict[int, PartialAnswer] = {}  # by number; 0 in journals of older versions
        self._add_document()
        self._in_document, self._base = False, document.size
        self._add_journal()

    def _add_document(self) -> None:
        before = len(self._damage.notes)
        line = next((line for _, _, line in self._document.iter_lines()), b"")
        self.was_ours = line.startswith(b'{"sessionId"') and line.endswith(OPEN)
        if not line or (not self.was_ours and self._add_whole()):
            return
        with contextlib.suppress(*ERRORS):
            self.head = self._parse(line.removeprefix(_MARK).removesuffix(OPEN) + b"}") if line.endswith(OPEN) else {}
        self._add_lines(self._document, len(line) if self.head else 0, self._document.size)
        if not (self._messages or self._calls or "sessionId" in self.head):
            self._damage.note("the file is not a JSON document")
        elif not self._document.read(self._document.size - 2, self._document.size).rstrip().endswith(b"}"):
            self._damage.note("the file is truncated")
        elif len(self._damage.notes) == before:
            data = self._document.read(0, self._document.size)
            if data.count(MIDDLE) > 1 or not is_valid_json(data):
                self._damage.note("the document is not valid JSON")

    def _add_journal(self) -> None:
        *_, (start, _, last) = ((0, 0, b""), *self._journal.iter_lines())
        torn = last if last and journal.is_torn_record(last) else b""  # a kill interrupted the write
        self._add_lines(self._journal, 0, start if torn else self._journal.size)
        if piece := _complete_piece(torn):
            self._add_record(piece)

    def _add_whole(self) -> bool:
        """Add a document in any layout, if it is JSON."""
        data = self._document.read(0, self._document.size).removeprefix(_MARK)
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
                    continue
                self._add_entry(entry)
        return True

    def _add_lines(self, file: SessionFile, begin: int, stop: int) -> None:
        """Add every line that is an entry, and the entries between them."""
        odd: list[bytes] = []
        place = begin
        for start, end, line in file.iter_lines(begin):
            if start >= stop:
                break
            if self._add_own(line.rstrip(_BLANKS), self._base + start) or self._add_line(line.strip(_BLANKS)):
                if odd:
                    self._search(b"".join(odd), place)
                odd, place = [], end
            else:
                odd.append(line)
        self._search(b"".join(odd), place)

    def _add_own(self, entry: bytes, place: int) -> bool:
        """Add the line of a document if it is in our own form."""
        is_message = entry.startswith(MESSAGE)
        if not (is_message or entry.startswith(CALL)) or not self.was_ours or _is_deep(entry):
            return False
        span = place, place + len(entry)
        try:
            if is_message:
                self._add_numbered(parse_number(entry), span)
            else:
                self._add_call(journal.read_call_key(entry).id, span)
        except ERRORS:
            return False
        return True

    def _add_numbered(self, number: int, place: Range) -> None:
        if self._in_document and self._calls:
            self._damage.note("lines of the document are not in their place")
        number = number if 0 < number <= MAX_MESSAGE_NUMBER else 0
        self._messages.append(_FoundMessage(number, place, self._in_document))

    def _add_line(self, entry: bytes) -> bool:
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
            self._add_call(fields["id"], self._keep({"id": "", **fields}))
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
            self._add_call(call["id"], self._keep({"id": "", **call}))
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
        for name, (start, _) in (record.append or {}).items():
            if isinstance(before := held.get(name), list) and len(before) < start:
                self._damage.note("the journal lacks a record")
        journal.change_head(self.head, record)

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

    def _add_message(self, fields: JsonObject) -> None:
        number = fields.get("id")
        self._add_numbered(number if isinstance(number, int) else 0, self._keep({"role": "", **fields}))

    def _add_call(self, key: str, place: Range) -> None:
        same = self._calls_of.setdefault(key, [])
        if same and journal.is_same_call(self._parse_place(self._calls[same[-1]][0]), self._parse_place(place)):
            self._calls[same[-1]].append(place)
        else:
            same.append(len(self._calls))
            self._calls.append([place])

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

    def _keep(self, fields: JsonObject) -> Range:
        """Encode an entry in our own form, and return its place."""
        start = self._mended_place + len(self._mended)
        self._mended += journal.encode_json(fields)
        return start, self._mended_place + len(self._mended)

    def _read(self, place: Range) -> bytes:
        start, end = place
        if start >= self._mended_place:
            return bytes(self._mended[start - self._mended_place : end - self._mended_place])
        return self._document.read_buffered(start, end)

    def _parse_place(self, place: Range) -> JsonObject:
        return parse_loosely(self._read(place))

    def make_table(self) -> EntryTable:
        """Make the table of everything that was found."""
        if not isinstance(self.head.get("metadata", {}), dict):
            del self.head["metadata"]
            self._damage.note("the metadata is damaged")
        under_way = self._finish_answers()
        messages = self._separate_calls(self._number_messages())
        calls = [places[0] if len(places) == 1 else self._join_call(places) for places in self._calls]
        table = EntryTable(self._document, self._journal.followed_by(bytes(self._mended)), None, 0)
        for number, (start, end), _ in messages:
            table.add_message(number, start, end)
        for place in calls:
            if b'"name"' in (data := self._read(place)):
                table.add_call(data, place[0])
            else:
                self._damage.count_lost_entry("a tool call cannot be read")
        if under_way:
            table.partial = under_way._replace(number=max(under_way.number, table.last_number + 1))
        return table

    def _join_call(self, places: list[Range], **changed: str) -> Range:
        return self._keep({"id": "", **journal.join_call(map(self._parse_place, places)), **changed})

    def _finish_answers(self) -> PartialAnswer | None:
        """Return the answer under way, and make messages of other unfinished answers."""
        last = max((found.number for found in self._messages), default=0)
        under_way = None
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
        held = b"".join(self._read(found.place) for found in self._messages if found.number == number)
        return all(journal.encode_json(part.get("text", ""))[1:-1] in held for part in parts)

    def _number_messages(self) -> list[_FoundMessage]:
        """Sort the messages by number. One without a number, or whose number is taken, gets a free one. Exact
        repetitions are dropped."""
        taken: dict[int, _FoundMessage] = {}
        for found in self._messages:
            if found.number:
                taken.setdefault(found.number, found)
        is_numbered, highest, before = bool(taken), max(taken, default=0), 0
        kept = []
        for found in self._messages:
            same = taken.get(found.number)
            if same and same is not found and self._is_repeated(same, found):
                continue
            if same is not found:
                before = before + 1 if before + 1 not in taken else highest + 1
                fields = {"role": "", **self._parse_place(found.place), "id": before}
                found = taken[before] = found._replace(number=before, place=self._keep(fields))  # noqa: PLW2901
                highest = max(highest, before)
                if is_numbered:
                    self._damage.note("messages had wrong numbers")
            before = found.number
            kept.append(found)
        ordered = sorted(kept, key=lambda found: found.number)
        if ordered != kept:
            self._damage.note("messages are out of order, and are sorted by number")
        return ordered

    def _is_repeated(self, known: _FoundMessage, other: _FoundMessage) -> bool:
        first, second = self._parse_message(known), self._parse_message(other)
        if not first or not second or (first.role, first.parts) != (second.role, second.parts):
            return False
        if known.in_document == other.in_document:  # both files may have it
            self._damage.note(f"message {known.number} is in the files twice")
        return True

    def _parse_message(self, found: _FoundMessage) -> Message | None:
        read = parse_message(self._read(found.place), DamageReport())
        return read[0] if read else None

    def _separate_calls(self, messages: list[_FoundMessage]) -> list[_FoundMessage]:
        """Give each call an id of its own, as other programs may repeat theirs: the first message that requests an id
        gets the first call with it, and so on."""
        ids = {name: [name] for name in self._calls_of}
        for name, (_, *others) in self._calls_of.items():
            for call in others:
                own = next(free for number in itertools.count(2) if (free := f"{name}-{number}") not in ids)
                ids[name].append(own)
                ids[own] = [own]
                self._calls[call] = [self._join_call(self._calls[call], id=own)]
        if len(ids) == len(self._calls_of):
            return messages
        asked: dict[str, list[str]] = {}

        def rename(part: AnyPart) -> AnyPart:
            if not isinstance(part, ToolCallPart | ToolResultPart) or part.id not in ids:
                return part
            if isinstance(part, ToolCallPart):
                own = ids[part.id].pop(0) if len(ids[part.id]) > 1 else ids[part.id][0]
                asked.setdefault(part.id, []).append(own)
            else:
                waiting = asked.get(part.id) or [part.id]
                own = waiting.pop(0)
            return msgspec.structs.replace(part, id=own)

        renamed = []
        for found in messages:
            message = self._parse_message(found)
            if message and message.call_ids:
                asked = asked if message.role == "tool" else {}  # the others were never answered
                parts = {"parts": tuple(map(rename, message.parts))}
                found = found._replace(place=self._keep({**self._parse_place(found.place), **parts}))  # noqa: PLW2901
            renamed.append(found)
        return renamed


def _complete_piece(data: bytes) -> JsonObject | None:
    """Complete a torn record of streamed text, as earlier versions left it, or return None for any other record."""
    for end in range(len(data), len(data) - _MAX_TORN_BYTES, -1) if b'"partial":' in data else ():
        with contextlib.suppress(*ERRORS):
            if journal.parse_record(data[:end] + b'"}]}').partial:
                return parse_loosely(data[:end] + b'"}]}')
    return None


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
