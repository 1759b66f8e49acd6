"""Import a session whose files are not as this version writes them: damaged, in an older form, or of another program.

All objects that look like messages, calls or records are taken, wherever they stand. The result is in our own form.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ollm.domain.messages import AnyPart, JsonObject, Message, ToolCallPart, ToolResultPart
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files import journal
from ollm.store.session_files.document import FIELDS, MIDDLE, OPEN, is_valid_json, iter_document
from ollm.store.session_files.files import DamageReport
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


class ImportedSession(NamedTuple):
    """A session in our own form: the bytes of its document and its journal. `was_ours` is True if its document was."""

    document: bytes
    journal: bytes
    was_ours: bool


class _Answer(NamedTuple):
    """An answer under way: its number, or 0, the time of its last record, how many records it has, and its parts."""

    number: int
    at: str
    pieces: int
    parts: journal.Parts


class _MessageEntry:
    """A message as it was found, and as it will be written."""

    def __init__(self, raw: JsonObject, message: Message, in_document: bool) -> None:
        self.raw, self.message, self.in_document = raw, message, in_document

    @property
    def line(self) -> bytes:
        fields: JsonObject = msgspec.to_builtins(self.message)
        with contextlib.suppress(msgspec.ValidationError):  # parts with unknown fields are kept as they are
            if msgspec.convert(self.raw, Message).parts == self.message.parts:
                fields.pop("parts")
        return journal.encode_json({"role": "", **self.raw, **fields})


def import_session(document: bytes, records: bytes, damage: DamageReport) -> ImportedSession:
    """Read everything readable in a document and a journal."""
    importer = _SessionImporter(damage)
    importer.add_document(document.removeprefix(_MARK))
    importer.add_records(records)
    head = document.partition(b"\n")[0]
    return importer.finish(was_ours=head.startswith(b'{"sessionId"') and head.endswith(OPEN.strip()))


class _SessionImporter:
    def __init__(self, damage: DamageReport) -> None:
        self._damage = damage
        self._head: JsonObject = {}
        self._in_document = True
        self._messages: list[_MessageEntry] = []
        self._calls: list[list[JsonObject]] = []  # the records of each call
        self._calls_of: dict[str, list[int]] = {}  # by id
        self._answers: dict[int, _Answer] = {}  # by number; 0 in journals of older versions

    def add_document(self, data: bytes) -> None:
        before = len(self._damage.notes)
        if not data or self._add_whole(data):
            return
        self._search_lines(data, self._add_head(data))
        if not (self._messages or self._calls or "sessionId" in self._head):
            self._damage.note("the file is not a JSON document")
        elif not data.rstrip().endswith(b"}"):
            self._damage.note("the file is truncated")
        elif len(self._damage.notes) == before:
            self._damage.note("the document is not valid JSON")

    def _add_head(self, data: bytes) -> int:
        """Add the first line of a document in our layout, and return its length; 0 if it is not readable."""
        line, feed, _ = data.partition(b"\n")
        with contextlib.suppress(*ERRORS):
            if (line + feed).endswith(OPEN):
                self._head = self._parse((line + feed).removesuffix(OPEN) + b"}")
                return len(line) + 1
        return 0

    def add_records(self, data: bytes) -> None:
        self._in_document = False
        complete, feed, rest = data.rpartition(b"\n")
        if journal.is_torn_record(rest) and rest:  # a kill interrupted the write
            data = complete + feed + _complete_piece(rest)
        self._search_lines(data)

    def _add_whole(self, data: bytes) -> bool:
        """Add a document in any layout, if it is JSON."""
        if data.count(MIDDLE) > 1:
            return False
        try:
            fields = _fields_decoder.decode(data)
            lists = {name: _entries_decoder.decode(fields.pop(name, b"[]")) for name in ("messages", "toolCalls")}
            self._head = self._parse(msgspec.json.encode(fields))
        except ERRORS:
            return False
        if not self._head.keys() & {"sessionId", "startTime"} and not any(lists.values()):
            self._damage.note("the file is not a session")
        for name, entries in lists.items():
            for entry in map(self._read_entry, map(bytes, entries)):
                if entry is None:
                    self._damage.count_lost_entry(f"{name} contains something that is not one of them")
                    continue
                if ("role" in entry) != (name == "messages"):
                    self._damage.note("lines of the document are not in their place")
                self._add_entry(entry)
        return True

    def _search_lines(self, data: bytes, begin: int = 0) -> None:
        """Add every line that is an entry, and the entries between them."""
        done = place = begin
        for line in data[begin:].split(b"\n"):
            start, place = place, place + len(line) + 1
            entry = line.strip(_BLANKS)
            if entry[:1] == b"{" and is_valid_json(entry) and (fields := self._read_entry(entry)):
                self._search(data[done:start], done)
                self._add_entry(fields)
                done = place
        self._search(data[done:], done)

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
        elif "sessionId" in self._head:
            self._damage.note("the file holds more than one document, and their messages were joined")
        else:
            found = _find_fields(text)
            self._head = {**found, **self._head}
            if len(found) < len(FIELDS):
                self._damage.note("the file header is damaged")

    def _parse(self, data: bytes) -> JsonObject:
        """Parse an object, and cut what is nested deeper than any writer nests."""
        fields = parse_loosely(data, self._damage)
        if data.count(b"{") + data.count(b"[") > journal.MAX_NESTING_LEVELS:
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
            self._add_call(fields)
        else:
            self._add_record(fields)

    def _add_record(self, fields: JsonObject) -> None:
        """Add what is readable in a record of a journal."""
        if isinstance(message := fields.get("message"), dict):
            self._add_message(message, fields)
        elif "message" in fields:
            self._damage.count_lost_entry("a message of the journal cannot be read")
        if isinstance(call := fields.get("call"), dict) and isinstance(call.get("id"), str):
            self._add_call(call)
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
        held = self._head.get("metadata")
        self._head["metadata"] = held = held if isinstance(held, dict) else {}
        for name, (start, _) in (record.append or {}).items():
            if isinstance(before := held.get(name), list) and len(before) < start:
                self._damage.note("the journal lacks a record")
        journal.change_head(self._head, record)

    def _add_message(self, raw: JsonObject, record: JsonObject | None = None) -> None:
        if record and raw.get("role") != "user":
            piece = record.get("piece")
            number = piece[0] if isinstance(piece, list) and piece else raw.get("id")
            begun = (self._answers.pop(number, None) if isinstance(number, int) else None) or self._answers.pop(0, None)
            if begun and record.get("continues"):  # older versions only
                more = raw.get("parts") or []
                raw = {**raw, "parts": journal.extend_parts(begun.parts, more if isinstance(more, list) else [more])}
        if message := repair_message(raw, self._damage):
            self._messages.append(_MessageEntry(raw, message, self._in_document))

    def _add_call(self, raw: JsonObject) -> None:
        same = self._calls_of.setdefault(raw["id"], [])
        if same and journal.is_same_call(self._calls[same[-1]][0], raw):
            self._calls[same[-1]].append(raw)
        else:
            same.append(len(self._calls))
            self._calls.append([raw])

    def _add_piece(self, fields: JsonObject) -> None:
        piece, parts = fields.get("piece"), fields["partial"]
        is_numbered = isinstance(piece, list) and len(piece) == 2 and all(isinstance(one, int) for one in piece)
        answer, number = piece if isinstance(piece, list) and is_numbered else (0, 0)
        if not isinstance(parts, list) or not all(map(journal.is_part, parts)):
            self._damage.note("the text of an answer is damaged in the journal")
            parts = [part for part in parts if journal.is_part(part)] if isinstance(parts, list) else []
        before = self._answers.get(answer) or _Answer(answer, "", 0, [])
        if fields.get("anew"):
            before = _Answer(answer, "", number - 1, [])
        if 0 < number <= before.pieces:
            return  # a repetition
        if number > before.pieces + 1:
            self._damage.note("the journal lacks a part of an answer")
        at = fields.get("at")
        at = at if isinstance(at, str) else ""
        self._answers[answer] = _Answer(answer, at, number, journal.extend_parts(before.parts, parts))

    def finish(self, *, was_ours: bool) -> ImportedSession:
        if not isinstance(self._head.get("metadata", {}), dict):
            del self._head["metadata"]
            self._damage.note("the metadata is damaged")
        under_way = self._finish_answers()
        messages = self._number_messages()
        calls = [found for found in map(self._join_call, self._calls) if found]
        _separate_calls(messages, calls)
        lines = (entry.line for entry in messages)
        whole = b"".join(iter_document(self._head, lines, (_encode_call(raw, call) for raw, call in calls)))
        last = messages[-1].message.id if messages else 0
        return ImportedSession(
            whole, _encode_answer(under_way, max(under_way.number, last + 1)) if under_way else b"", was_ours
        )

    def _finish_answers(self) -> _Answer | None:
        """Return the answer under way, and make messages of other unfinished answers."""
        last = max((entry.message.id for entry in self._messages), default=0)
        under_way = None
        for answer, found in sorted(self._answers.items()):
            if not found.parts:
                continue
            if answer == max(self._answers) and (answer == 0 or answer > last):
                under_way = found
            elif not self._holds(answer, found.parts):  # otherwise its pieces are repeated behind it
                self._damage.note("the journal lacks the end of an answer")
                self._add_message(
                    {
                        "role": "assistant",
                        "parts": found.parts,
                        "timestamp": found.at,
                        "id": answer,
                        "interrupted": True,
                    }
                )
        return under_way

    def _holds(self, number: int, parts: journal.Parts) -> bool:
        """Return True if the message with this number contains the text of these parts."""
        held = "".join(journal.encode_json(one.raw).decode() for one in self._messages if one.message.id == number)
        return all(journal.encode_json(part.get("text", "")).decode()[1:-1] in held for part in parts)

    def _number_messages(self) -> list[_MessageEntry]:
        """Sort the messages by number. One without a number, or whose number is taken, gets a free one. Exact
        repetitions are dropped."""
        taken: dict[int, _MessageEntry] = {}
        odd = [one for one in self._messages if not one.message.id or taken.setdefault(one.message.id, one) is not one]
        highest, dropped, is_numbered = max(taken, default=0), set[int](), bool(taken)
        strange = set(map(id, odd))
        before = 0
        for entry in self._messages:
            if id(entry) in strange:
                known = taken.get(entry.message.id)
                if known and self._is_repeated(known, entry):
                    dropped.add(id(entry))
                    continue
                before = before + 1 if before + 1 not in taken else highest + 1
                entry.message = msgspec.structs.replace(entry.message, id=before)
                taken[before], highest = entry, max(highest, before)
            before = entry.message.id
        kept = [entry for entry in self._messages if id(entry) not in dropped]
        ordered = sorted(kept, key=lambda entry: entry.message.id)
        if ordered != kept:
            self._damage.note("messages are out of order, and are sorted by number")
        if is_numbered and len(dropped) < len(odd):
            self._damage.note("messages had wrong numbers")
        return ordered

    def _is_repeated(self, known: _MessageEntry, other: _MessageEntry) -> bool:
        if (known.message.role, known.message.parts) != (other.message.role, other.message.parts):
            return False
        if known.in_document == other.in_document:  # both files may have it
            self._damage.note(f"message {known.message.id} is in the files twice")
        return True

    def _join_call(self, records: list[JsonObject]) -> tuple[JsonObject, ToolCallRecord] | None:
        raw = journal.join_call(records)
        call = repair_call(raw, self._damage)
        return (raw, call) if call else None


def _complete_piece(data: bytes) -> bytes:
    """Complete a torn record of streamed text, or return b"" for any other record."""
    for end in range(len(data), len(data) - _MAX_TORN_BYTES, -1) if b'"partial":' in data else ():
        with contextlib.suppress(*ERRORS):
            if journal.parse_record(data[:end] + b'"}]}').partial:
                return data[:end] + b'"}]}'
    return b""


def _is_call(fields: JsonObject) -> bool:
    return isinstance(fields.get("id"), str) and bool(fields.keys() & {"args", "name"})


def _encode_call(raw: JsonObject, call: ToolCallRecord) -> bytes:
    return journal.encode_json({"id": "", **raw, **msgspec.to_builtins(call)})


def _encode_answer(answer: _Answer, number: int) -> bytes:
    return journal.encode_line(journal.JournalRecord(at=answer.at, piece=(number, 1), partial=answer.parts, anew=True))


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


def _separate_calls(messages: Sequence[_MessageEntry], calls: list[tuple[JsonObject, ToolCallRecord]]) -> None:
    """Give each call an id of its own, as other programs may repeat theirs: the first message that requests an id gets
    the first call with it, and so on."""
    ids: dict[str, list[str]] = {call.id: [] for _, call in calls}
    if len(ids) == len(calls):
        return
    for place, (raw, call) in enumerate(calls):
        own = next(name for number in itertools.count(2) if (name := f"{call.id}-{number}") not in ids)
        own = own if ids[call.id] else call.id
        ids[call.id].append(own)
        calls[place] = raw, msgspec.structs.replace(call, id=own)
        ids.setdefault(own, [])
    asked: dict[str, list[str]] = {}

    def rename(part: AnyPart) -> AnyPart:
        if not isinstance(part, ToolCallPart | ToolResultPart) or not ids.get(part.id):
            return part
        if isinstance(part, ToolCallPart):
            own = ids[part.id].pop(0) if len(ids[part.id]) > 1 else ids[part.id][0]
            asked.setdefault(part.id, []).append(own)
        else:
            waiting = asked.get(part.id) or [part.id]
            own = waiting.pop(0)
        return msgspec.structs.replace(part, id=own)

    for entry in messages:
        if entry.message.call_ids:
            asked = asked if entry.message.role == "tool" else {}  # the others were never answered
            renamed = tuple(map(rename, entry.message.parts))
            entry.message = msgspec.structs.replace(entry.message, parts=renamed)
