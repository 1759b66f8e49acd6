"""Salvage entries that are not as this version writes them: damaged, in an older form, or of another program.

All objects that look like messages, calls or records are taken, wherever they stand, and put in our own form.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any, get_args

import msgspec

from ollm.domain.messages import AnyPart, JsonObject, Message, Role
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files import journal
from ollm.store.session_files.document import FIELDS, MIDDLE, ReadCall, ReadMessage
from ollm.store.session_files.entry_table import AnswerText, EntryTable
from ollm.store.session_files.files import MAX_MESSAGE_NUMBER, DamageReport

_BLANKS = b" \t\r\n,"
_MARK = b"\xef\xbb\xbf"  # Some editors put it before UTF-8.
_START = re.compile(r'\{\s*+"(?:id|role|parts|timestamp|at|content|name|args)"\s*+:')
_STRUCTURE = re.compile(r'(?:"(?:messages|toolCalls)"\s*+:|\xef\xbb\xbf|[\s,\[\]{}]++)*+')
_CONTENT = {"message", "call", "partial", "top", "set", "append", "mark"}  # Only older versions wrote the last.
_HEAD_FIELDS = {"at", "top", "set", "append", "tokens"}
_ROLES = get_args(Role)
_PART_TYPES = {"text", "thinking", "image", "tool_call", "tool_result"}
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_entries_decoder = msgspec.json.Decoder(list[msgspec.Raw])


class Salvager:
    """Adds what can be read in odd bytes to a `table` and a `head`."""

    def __init__(
        self,
        table: EntryTable,
        head: JsonObject,
        damage: DamageReport,
        change_head: Callable[[journal.JournalRecord], None],
    ) -> None:
        self._table, self._head, self._damage, self._change_head = table, head, damage, change_head

    def add_document(self, data: bytes) -> bool:
        """Add a document in any layout, if it is JSON."""
        if data.count(MIDDLE) > 1:
            return False
        try:
            fields = _fields_decoder.decode(data.removeprefix(_MARK))
            lists = {name: _entries_decoder.decode(fields.pop(name, b"[]")) for name in ("messages", "toolCalls")}
            self._head |= journal.parse_loosely(msgspec.json.encode(fields), self._damage)
        except journal.ERRORS:
            return False
        if not self._head.keys() & {"sessionId", "startTime"} and not any(lists.values()):
            self._damage.note("the file is not a session")
        for name, entries in lists.items():
            for entry in map(self._read_entry, map(bytes, entries)):
                if entry is None:
                    self._damage.count_lost_entry(f"{name} contains something that is not one of them")
                else:
                    self._add_entry(entry)
        return True

    def add_bytes(self, data: bytes, base: int) -> None:
        """Add every object that looks like an entry, and report what is nothing at all."""
        if fields := self._read_entry(data.strip(_BLANKS)):
            self._add_entry(fields)
            return
        text, place, done = data.decode("latin-1"), 0, 0  # Latin-1 has a character for each byte.
        while found := _START.search(text, place):
            place, begin = found.end(), found.start()
            if (stop := _find_end(text, begin)) and (fields := self._read_entry(data[begin:stop])):
                self._look_between(text[done:begin], base + done)
                self._add_entry(fields)
                done = place = stop
        self._look_between(text[done:], base + done)

    def _look_between(self, text: str, place: int) -> None:
        """Look for the head between two entries."""
        in_document = self._table.in_document
        if _STRUCTURE.fullmatch(text):
            return
        if not in_document or not ('"sessionId"' in text or '"metadata"' in text):
            name = "unreadable data" if in_document else "the journal is damaged"
            self._damage.count_lost_entry(f"{name} at byte {place + len(text) - len(text.lstrip(chr(10) + ',]}'))}")
        elif "sessionId" in self._head:
            self._damage.note("the file holds more than one document, and their messages were joined")
        else:
            found = _find_fields(text)
            self._head |= found | self._head
            if len(found) < len(FIELDS):
                self._damage.note("the file header is damaged")

    def _read_entry(self, data: bytes) -> JsonObject | None:
        """Read an object, or return None if it does not look like a message, a call or a record."""
        with contextlib.suppress(*journal.ERRORS):
            fields = journal.parse_loosely(data, self._damage)
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

    def _add_message(self, fields: JsonObject) -> None:
        if found := self._repair_message(fields):
            self._table.add_message(found[0].id, *self._table.keep(found[1]))

    def _add_call(self, fields: JsonObject) -> None:
        line = journal.encode_json(fields)
        try:
            self._table.add_call(line, self._table.keep(line)[0])
        except journal.DECODE_ERRORS:
            self._damage.count_lost_entry("a tool call cannot be read")

    def _add_record(self, fields: JsonObject) -> None:
        """Add what is readable in a record of a journal."""
        if isinstance(message := fields.get("message"), dict):
            self._end_answer(fields, message)
            self._add_message(message)
        elif "message" in fields:
            self._damage.count_lost_entry("a message of the journal cannot be read")
        if isinstance(call := fields.get("call"), dict) and isinstance(call.get("id"), str):
            self._add_call(call)
        elif "call" in fields:
            self._damage.count_lost_entry("a tool call cannot be read")
        if "partial" in fields:
            self._add_piece(fields)
        changes = {name: value for name, value in fields.items() if name in _HEAD_FIELDS}
        try:
            self._change_head(msgspec.convert({"at": "", **changes}, journal.JournalRecord))
        except journal.ERRORS:
            self._damage.note(f"{' or '.join(changes)} of a record in the journal is not what it should be")

    def _end_answer(self, record: JsonObject, message: JsonObject) -> None:
        """Drop the pieces of an answer whose message is there. In older journals the message continues them."""
        if message.get("role") == "user":
            return
        piece = record.get("piece")
        number = piece[0] if isinstance(piece, list) and piece else message.get("id")
        begun = self._table.take_answer(number if isinstance(number, int) else 0)
        if begun and record.get("continues"):
            more = message.get("parts") or []
            message["parts"] = journal.extend_parts(begun, more if isinstance(more, list) else [more])

    def _add_piece(self, fields: JsonObject) -> None:
        piece, parts, at = fields.get("piece"), fields["partial"], fields.get("at")
        is_numbered = isinstance(piece, list) and len(piece) == 2 and all(isinstance(one, int) for one in piece)
        answer, number = piece if isinstance(piece, list) and is_numbered else (0, 0)
        if not isinstance(parts, list) or not all(map(journal.is_part, parts)):
            self._damage.note("the text of an answer is damaged in the journal")
            parts = [part for part in parts if journal.is_part(part)] if isinstance(parts, list) else []
        self._table.add_piece(number, AnswerText(answer, at if isinstance(at, str) else "", parts))

    def repair_line(self, data: bytes, number: int) -> ReadMessage | None:
        """Return what is readable of a message that is on a line of its own."""
        with contextlib.suppress(*journal.ERRORS):
            return self._repair_message({**journal.parse_loosely(data, self._damage), "id": number})
        self._damage.count_lost_entry()
        return None

    def _repair_message(self, raw: JsonObject) -> ReadMessage | None:
        """Return what is readable of a message; None, and count it as lost, if nothing is."""
        with contextlib.suppress(*journal.ERRORS):
            found = msgspec.convert(self._convert_message(raw), Message)
            return found, _encode_entry(found, raw)
        self._damage.count_lost_entry("a message cannot be read")
        return None

    def repair_call(self, data: bytes) -> ReadCall | None:
        """Return what is readable of a call in the same way as `_repair_message`."""
        with contextlib.suppress(*journal.ERRORS):
            raw = journal.parse_loosely(data, self._damage)
            found = msgspec.convert(_convert_call(raw), ToolCallRecord)
            return found, _encode_entry(found, raw)
        self._damage.count_lost_entry("a tool call cannot be read")
        return None

    def _convert_message(self, raw: JsonObject) -> JsonObject:
        parts = raw["content"] if raw.get("parts") is None and "content" in raw else raw.get("parts")
        if isinstance(parts, str):
            parts = [{"type": "text", "text": parts}]
        if not isinstance(parts, list):
            self._damage.note("a message has no parts")
            parts = []
        number = raw.get("id")
        return raw | {
            "role": self._convert_role(raw["role"]),
            "parts": self._convert_parts(parts),
            "timestamp": str(raw.get("timestamp") or ""),
            "id": number if isinstance(number, int) and 0 < number <= MAX_MESSAGE_NUMBER else 0,
        }

    def _convert_role(self, role: str) -> str:
        """Convert a role in another spelling. An unknown one becomes the assistant's, whose words have no authority."""
        if (known := str(role).strip().lower()) in _ROLES:
            return known
        self._damage.note(f"a message of the unknown role {str(role)[:20]!r} is read as the assistant's")
        return "assistant"

    def _convert_parts(self, parts: list[Any]) -> list[Any]:
        """Convert the parts that can be read; report and leave out each of the others."""
        readable = []
        for part in map(_convert_part, parts):
            try:
                msgspec.convert(part, AnyPart)
            except journal.ERRORS:
                self._damage.note("a part of a message cannot be read")
            else:
                readable.append(part)
        return readable


def _is_call(fields: JsonObject) -> bool:
    return isinstance(fields.get("id"), str) and bool(fields.keys() & {"args", "name"})


def _find_end(text: str, begin: int) -> int:
    """Find the end of the object that begins here, or return 0."""
    import json

    try:
        return json.JSONDecoder(strict=False).raw_decode(text, begin)[1]
    except (ValueError, RecursionError):
        return 0


def _find_fields(text: str) -> JsonObject:
    """Find the fields of a damaged head that can still be read."""
    import json

    head: JsonObject = {}
    for name in FIELDS:
        with contextlib.suppress(ValueError, RecursionError):
            if found := re.search(rf'"{name}"\s*:\s*', text):
                end = json.JSONDecoder(strict=False).raw_decode(text, found.end())[1]
                head[name] = journal.parse_loosely(b'{"v":' + text[found.end() : end].encode("latin-1") + b"}")["v"]
    return head


def _encode_entry(entry: Message | ToolCallRecord, raw: JsonObject) -> bytes:
    known: JsonObject = msgspec.to_builtins(entry)
    return journal.encode_json({**known, **raw, **known})


def _convert_part(part: Any) -> Any:
    """Convert a part; one of an unknown type becomes text."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, dict) and not any(part.get("type") == known for known in _PART_TYPES):
        text = part.get("text")
        return {"type": "text", "text": text if isinstance(text, str) else journal.encode_json(part).decode()}
    return part


def _convert_call(raw: JsonObject) -> JsonObject:
    """Convert a call from an earlier version, which has no status and may have plain text results."""
    result = raw.get("result")
    result = {"llmContent": result} if isinstance(result, str) else result if isinstance(result, dict) else None
    if result is not None and not isinstance(result.get("llmContent"), str):
        result = {**result, "llmContent": journal.encode_json(result.get("llmContent")).decode()}
    shaped = {"args": {}, "timestamp": "", **raw, "result": result}
    if not isinstance(shaped["args"], dict):
        shaped["args"] = {"value": shaped["args"]}
    if isinstance(number := shaped.get("messageId"), int) and abs(number) > MAX_MESSAGE_NUMBER:
        shaped.pop("messageId")
    shaped.setdefault("status", "ok" if result is not None else "interrupted")
    return shaped
