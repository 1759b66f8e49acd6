"""One message or call from its bytes: strictly first, then whatever can be understood (old versions, damage)."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ollm.domain.messages import JsonObject, Message
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files.damage import MAX_DEPTH, Damage
from ollm.store.session_files.journal import clean, encode
from ollm.store.session_files.objects import TooDeepError, entries

_message = msgspec.json.Decoder(Message)
_object_decoder = msgspec.json.Decoder(dict[str, Any])
_call = msgspec.json.Decoder(ToolCallRecord)
_any = msgspec.json.Decoder(msgspec.Raw)
_PART_TYPES = {"text", "thinking", "image", "tool_call", "tool_result"}
_OUTSIDE = rb'(?s)[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+'
_NO_OPENING = bytes(set(range(256)) - set(b"{["))
_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, TypeError, KeyError)


def deeper_than(data: bytes, limit: int = MAX_DEPTH) -> bool:
    """Whether this is JSON whose brackets nest deeper than `limit`."""
    if data.rfind(b"{") < limit and data.rfind(b"[") < limit:
        return False  # too near its beginning for so many
    if len(data.translate(None, _NO_OPENING)) <= limit:
        return False
    try:
        _any.decode(data)
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


def messages_inside(data: bytes, number: int) -> Iterator[tuple[Message, bytes, bool]]:
    """The messages that stand whole inside damage, each with its bytes, which are not taken for sound."""
    for inner in _inside(data):
        found = strict_message(inner)
        if found is None and not strict_call(inner):
            unheard = Damage()
            found = message(inner, number, unheard)
            found = None if unheard.notes else found
        if found:
            yield found, inner, False


def calls_inside(data: bytes) -> Iterator[tuple[ToolCallRecord, bytes, bool]]:
    """The calls that stand whole inside damage, each with its bytes."""
    for inner in _inside(data):
        if found := strict_call(inner) or call(inner, Damage()):
            yield found, inner, False


def _inside(data: bytes) -> Iterator[bytes]:
    with contextlib.suppress(TooDeepError):
        yield from (data[start:end] for start, end in entries(memoryview(data)) if end - start < len(data))


def strict_message(data: bytes) -> Message | None:
    """The message in `data` when nothing is odd about it: its bytes can be written as they stand."""
    try:
        found = _message.decode(data)
    except _ERRORS:
        return None
    return None if found.id <= 0 or deeper_than(data) else found


def strict_call(data: bytes) -> ToolCallRecord | None:
    """The same for a call."""
    try:
        found = _call.decode(data)
    except _ERRORS:
        return None
    return None if b'"status"' not in data or deeper_than(data) else found


def message(data: bytes, number: int, damage: Damage) -> Message | None:
    """The message in `data`, or None; `number` is its place, for files whose messages carry none."""
    if deeper_than(data):
        damage.lose(f"message {number} is nested too deep")
        damage.refuse_depth()
        return None
    found: Message | None
    try:
        found = _message.decode(data)
    except _ERRORS:
        found = _message_leniently(data, damage)
    if found is None:
        damage.lose(f"message {number} cannot be read")
    elif found.id <= 0:
        found = msgspec.structs.replace(found, id=number)
    return found


def call(data: bytes, damage: Damage) -> ToolCallRecord | None:
    if deeper_than(data):
        damage.lose("a tool call is nested too deep")
        damage.refuse_depth()
        return None
    try:
        found = _call.decode(data)
        if b'"status"' in data:
            return found
        raw: JsonObject | None = {}
    except _ERRORS:
        raw = _object(data, damage)
    try:
        return msgspec.convert(_call_from(raw or msgspec.json.decode(data)), ToolCallRecord)
    except _ERRORS:
        damage.lose("a tool call cannot be read")
        return None


def as_it_stands(data: bytes, known: Message | ToolCallRecord, sound: bool = False) -> bytes:
    """An entry's own bytes, where they are sound; otherwise what could be read of it, unknown fields too."""
    try:
        if not data.isascii():
            data.decode()
        if not sound:
            _any.decode(data)
    except _ERRORS:
        return encode(parse_object(data) | msgspec.to_builtins(known))
    return data


def parse_object(data: bytes) -> JsonObject:
    """A JSON object however odd: raises ValueError or RecursionError when it is none. Raw zeros are a hole in the file,
    nothing that was said: JSON writes those otherwise."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return _object_decoder.decode(data)
    found = json.loads(data.replace(b"\0", b"").decode("utf-8", "replace"), strict=False)
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 - the caller treats all bad JSON alike
    cleaned: JsonObject = clean(found)
    return cleaned


def _object(data: bytes, damage: Damage) -> JsonObject | None:
    try:
        found = parse_object(data)
    except (ValueError, RecursionError):
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        damage.note("some characters are not UTF-8 and were replaced")
    return found


def _message_leniently(data: bytes, damage: Damage) -> Message | None:
    raw = _object(data, damage)
    if raw is None:
        return None
    parts = raw.get("parts")
    if isinstance(raw.get("content"), str) and parts is None:
        parts = [{"type": "text", "text": raw["content"]}]
    if not isinstance(parts, list):
        damage.note("a message has no parts")
    if not isinstance(raw.get("id", 0), int):
        raw.pop("id")
    shaped = raw | {
        "parts": [_part(part) for part in parts] if isinstance(parts, list) else [],
        "timestamp": str(raw.get("timestamp") or ""),
    }
    try:
        return msgspec.convert(shaped, Message)
    except _ERRORS:
        return None


def _part(part: Any) -> Any:
    """A part of a type we do not know is shown as what it is."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, dict) and part.get("type") not in _PART_TYPES:
        return {"type": "text", "text": part["text"] if isinstance(part.get("text"), str) else encode(part).decode()}
    return part


def _call_from(raw: JsonObject) -> JsonObject:
    """A call as an earlier version wrote it: no status, results that may be bare text."""
    result = raw.get("result")
    if isinstance(result, str):
        result = {"llmContent": result}
    shaped = {"args": {}, "timestamp": "", **raw, "result": result if isinstance(result, dict) else None}
    if shaped["result"] is not None and not isinstance(shaped["result"].get("llmContent"), str):
        shaped["result"] = {**shaped["result"], "llmContent": encode(shaped["result"].get("llmContent")).decode()}
    if not isinstance(shaped["args"], dict):
        shaped["args"] = {"value": shaped["args"]}
    shaped.setdefault("status", "ok" if shaped["result"] is not None else "interrupted")
    return shaped
