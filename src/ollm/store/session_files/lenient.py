"""One message or call from its bytes: strictly first, then whatever can be understood (old versions, damage)."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ollm.domain.messages import AnyPart, JsonObject, Message
from ollm.domain.session import SessionMetadata
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files.damage import MAX_DEPTH, DamageReport
from ollm.store.session_files.journal import clean_json, encode_json
from ollm.store.session_files.objects import TooDeepError, find_entries

MAX_NUMBER = 10**15  # of a message, of tokens; what is over it was never given by anybody who counts
MAX_PATH_CHARS, MAX_NAME_CHARS = 4096, 255  # of a workspace; no system opens more
_METADATA_FIELDS = frozenset(SessionMetadata.__struct_encode_fields__)
_message_decoder = msgspec.json.Decoder(Message)
_object_decoder = msgspec.json.Decoder(dict[str, Any])
_call_decoder = msgspec.json.Decoder(ToolCallRecord)
_raw_decoder = msgspec.json.Decoder(msgspec.Raw)
_PART_TYPES = {"text", "thinking", "image", "tool_call", "tool_result"}
_OUTSIDE = rb'(?s)[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+'
_NO_OPENING = bytes(set(range(256)) - set(b"{["))
_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, TypeError, KeyError)


def is_deeper_than(data: bytes, limit: int = MAX_DEPTH) -> bool:
    """Whether this is JSON whose brackets nest deeper than `limit`."""
    if data.rfind(b"{") < limit and data.rfind(b"[") < limit:
        return False  # too near its beginning for so many
    if len(data.translate(None, _NO_OPENING)) <= limit:
        return False
    try:
        _raw_decoder.decode(data)
    except RecursionError:
        return True
    except msgspec.MsgspecError:
        return False
    depth, place, outside = 0, 0, re.compile(_OUTSIDE)
    while place < len(data):
        found = outside.match(data, place)
        place = found.end() if found else place
        if place < len(data):
            depth += 1 if data[place] in b"{[" else -1 if data[place] in b"}]" else 0
            place += 1
        if depth > limit:
            return True
    return False


def find_messages_inside(data: bytes, number: int) -> Iterator[tuple[Message, bytes, bool]]:
    """The messages that are whole inside damage, each with its bytes, which are not taken for sound."""
    for inner in _find_inside(data):
        found = parse_strict_message(inner)
        if found is None and not parse_strict_call(inner):
            unheard = DamageReport()
            found = parse_message(inner, number, unheard)
            found = None if unheard.notes else found
        if found:
            yield found, inner, False


def find_calls_inside(data: bytes) -> Iterator[tuple[ToolCallRecord, bytes, bool]]:
    """The calls that are whole inside damage, each with its bytes."""
    for inner in _find_inside(data):
        if found := parse_strict_call(inner) or parse_call(inner, DamageReport()):
            yield found, inner, False


def _find_inside(data: bytes) -> Iterator[bytes]:
    with contextlib.suppress(TooDeepError):
        yield from (data[start:end] for start, end in find_entries(memoryview(data)) if end - start < len(data))


def parse_strict_message(data: bytes) -> Message | None:
    """The message in `data` when nothing is odd about it: its bytes can be written as they are."""
    try:
        found = _message_decoder.decode(data)
    except _ERRORS:
        return None
    return found if 0 < found.id <= MAX_NUMBER and not is_deeper_than(data) else None


def parse_strict_call(data: bytes) -> ToolCallRecord | None:
    """The same for a call."""
    try:
        found = _call_decoder.decode(data)
    except _ERRORS:
        return None
    odd = b'"status"' not in data or abs(found.message_id) > MAX_NUMBER
    return None if odd or is_deeper_than(data) else found


def parse_message(data: bytes, number: int, damage: DamageReport) -> Message | None:
    """The message in `data`, or None; `number` is its place, for files whose messages carry none."""
    if is_deeper_than(data):
        damage.count_lost_entry(f"message {number} is nested too deep")
        damage.refuse_depth()
        return None
    found: Message | None
    try:
        found = _message_decoder.decode(data)
    except _ERRORS:
        found = _parse_message_leniently(data, damage)
    if found is None:
        damage.count_lost_entry(f"message {number} cannot be read")
    elif not 0 < found.id <= MAX_NUMBER:
        found = msgspec.structs.replace(found, id=number)
    return found


def parse_call(data: bytes, damage: DamageReport) -> ToolCallRecord | None:
    if is_deeper_than(data):
        damage.count_lost_entry("a tool call is nested too deep")
        damage.refuse_depth()
        return None
    try:
        found = _call_decoder.decode(data)
        if b'"status"' in data and abs(found.message_id) <= MAX_NUMBER:
            return found
        raw: JsonObject | None = {}
    except _ERRORS:
        raw = _parse_object_leniently(data, damage)
    try:
        return msgspec.convert(_convert_call(raw or msgspec.json.decode(data)), ToolCallRecord)
    except _ERRORS:
        damage.count_lost_entry("a tool call cannot be read")
        return None


def preserve_bytes(data: bytes, known: Message | ToolCallRecord, sound: bool = False) -> bytes:
    """An entry's own bytes, where they are sound; otherwise what could be read of it, unknown fields too."""
    try:
        if not data.isascii():
            data.decode()
        if not sound:
            _raw_decoder.decode(data)
    except _ERRORS:
        return encode_json(parse_object(data) | msgspec.to_builtins(known))
    return data


def is_valid_json(data: bytes) -> bool:
    try:
        _raw_decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def parse_object(data: bytes) -> JsonObject:
    """A JSON object however odd: raises ValueError or RecursionError when it is none. Raw zeros are a hole in the file,
    nothing that was said: JSON writes those otherwise."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return _object_decoder.decode(data)
    found = json.loads(data.replace(b"\0", b"").decode("utf-8", "replace"), strict=False)
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 - the caller treats all bad JSON alike
    cleaned: JsonObject = clean_json(found)
    return cleaned


def hash_message(data: bytes) -> int:
    """The same for two ways to write down the same words of the same person."""
    try:
        found = parse_object(data)
    except (ValueError, RecursionError):
        return hash(data)
    return hash(msgspec.json.encode([found.get("role"), found.get("parts")], order="sorted"))


def _parse_object_leniently(data: bytes, damage: DamageReport) -> JsonObject | None:
    try:
        found = parse_object(data)
    except (ValueError, RecursionError):
        return None
    try:
        data.decode("utf-8")
        _raw_decoder.decode(data)
    except UnicodeDecodeError:
        damage.note("some characters are not UTF-8 and were replaced")
    except (msgspec.MsgspecError, RecursionError):
        damage.note("some text is not valid JSON and was read as well as it could be")
    return found


def _parse_message_leniently(data: bytes, damage: DamageReport) -> Message | None:
    raw = _parse_object_leniently(data, damage)
    if raw is None:
        return None
    parts = raw.get("parts")
    if parts is None:
        parts = raw.get("content")
    if isinstance(parts, str):
        parts = [{"type": "text", "text": parts}]
    if not isinstance(parts, list):
        damage.note("a message has no parts")
    if not isinstance(raw.get("id", 0), int):
        raw.pop("id")
    shaped = raw | {
        "parts": _convert_parts(parts, damage) if isinstance(parts, list) else [],
        "timestamp": str(raw.get("timestamp") or ""),
    }
    try:
        return msgspec.convert(shaped, Message)
    except _ERRORS:
        return None


def _convert_parts(parts: list[Any], damage: DamageReport) -> list[Any]:
    """Those that can be read: one that cannot takes no other with it."""
    readable = []
    for part in map(_convert_part, parts):
        try:
            msgspec.convert(part, AnyPart)
        except _ERRORS:
            damage.note("a part of a message cannot be read")
        else:
            readable.append(part)
    return readable


def _convert_part(part: Any) -> Any:
    """A part of a type we do not know is shown as what it is."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, dict) and not any(part.get("type") == known for known in _PART_TYPES):
        return {
            "type": "text",
            "text": part["text"] if isinstance(part.get("text"), str) else encode_json(part).decode(),
        }
    return part


def _convert_call(raw: JsonObject) -> JsonObject:
    """A call as an earlier version wrote it: no status, results that may be bare text."""
    result = raw.get("result")
    if isinstance(result, str):
        result = {"llmContent": result}
    shaped = {"args": {}, "timestamp": "", **raw, "result": result if isinstance(result, dict) else None}
    if shaped["result"] is not None and not isinstance(shaped["result"].get("llmContent"), str):
        shaped["result"] = {**shaped["result"], "llmContent": encode_json(shaped["result"].get("llmContent")).decode()}
    if not isinstance(shaped["args"], dict):
        shaped["args"] = {"value": shaped["args"]}
    if isinstance(number := shaped.get("messageId"), int) and abs(number) > MAX_NUMBER:
        shaped.pop("messageId")
    shaped.setdefault("status", "ok" if shaped["result"] is not None else "interrupted")
    return shaped


def fits_metadata(name: str, value: Any) -> bool:
    """Whether a field of the metadata can be what it says, and not only of its type."""
    if name not in _METADATA_FIELDS:
        return True
    try:
        msgspec.convert({name: value}, SessionMetadata)
    except (msgspec.ValidationError, RecursionError):
        return False
    if name == "workspace" and isinstance(value, str):
        return "\0" not in value and len(value) < MAX_PATH_CHARS and max(map(len, value.split("/"))) <= MAX_NAME_CHARS
    return name == "schemaVersion" or not isinstance(value, int) or abs(value) <= MAX_NUMBER
