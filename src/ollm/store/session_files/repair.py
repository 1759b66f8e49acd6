"""Repair single messages and calls that are damaged, or in the form of an earlier version or another program."""

from __future__ import annotations

import contextlib
from typing import Any, get_args

import msgspec

from ollm.domain.messages import AnyPart, JsonObject, Message, Role
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files.document import ReadCall, ReadMessage
from ollm.store.session_files.files import MAX_MESSAGE_NUMBER, DamageReport
from ollm.store.session_files.journal import DECODE_ERRORS, clean_json, encode_json, parse_object

_ROLES = get_args(Role)
_PART_TYPES = {"text", "thinking", "image", "tool_call", "tool_result"}
ERRORS = (*DECODE_ERRORS, ValueError, TypeError, KeyError)


def parse_loosely(data: bytes, damage: DamageReport | None = None) -> JsonObject:
    """Parse any JSON object, however odd. Raises ValueError or RecursionError if it is not one. Raw zeros are a hole
    in the file, not content, because JSON escapes them."""
    with contextlib.suppress(*DECODE_ERRORS):
        return parse_object(data)
    import json

    found = json.loads(data.replace(b"\0", b"").decode("utf-8", "replace"), strict=False)
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 - the caller treats all bad JSON alike
    if damage:
        damage.note("some text is damaged (not UTF-8 or JSON) and was read as well as it could be")
    cleaned: JsonObject = clean_json(found)
    return cleaned


def repair_line(data: bytes, number: int, damage: DamageReport) -> ReadMessage | None:
    """Return what is readable of a message that is on a line of its own."""
    try:
        return repair_message({**parse_loosely(data, damage), "id": number}, damage)
    except ERRORS:
        damage.count_lost_entry()
        return None


def repair_message(raw: JsonObject, damage: DamageReport) -> ReadMessage | None:
    """Return what is readable of a message; None, and count it as lost, if nothing is."""
    try:
        found = msgspec.convert(_convert_message(raw, damage), Message)
    except ERRORS:
        damage.count_lost_entry("a message cannot be read")
        return None
    return found, _encode_entry(found, raw)


def repair_call(raw: JsonObject, damage: DamageReport) -> ReadCall | None:
    """Return what is readable of a call in the same way as `repair_message`."""
    try:
        found = msgspec.convert(_convert_call(raw), ToolCallRecord)
    except ERRORS:
        damage.count_lost_entry("a tool call cannot be read")
        return None
    return found, _encode_entry(found, raw)


def _encode_entry(entry: Message | ToolCallRecord, raw: JsonObject) -> bytes:
    known: JsonObject = msgspec.to_builtins(entry)
    return encode_json({**known, **raw, **known})


def _convert_message(raw: JsonObject, damage: DamageReport) -> JsonObject:
    parts = raw["content"] if raw.get("parts") is None and "content" in raw else raw.get("parts")
    if isinstance(parts, str):
        parts = [{"type": "text", "text": parts}]
    if not isinstance(parts, list):
        damage.note("a message has no parts")
        parts = []
    number = raw.get("id")
    return raw | {
        "role": _convert_role(raw["role"], damage),
        "parts": _convert_parts(parts, damage),
        "timestamp": str(raw.get("timestamp") or ""),
        "id": number if isinstance(number, int) and 0 < number <= MAX_MESSAGE_NUMBER else 0,
    }


def _convert_role(role: str, damage: DamageReport) -> str:
    """Convert a role in another spelling. An unknown one becomes the assistant's, whose words carry no authority."""
    if (known := str(role).strip().lower()) in _ROLES:
        return known
    damage.note(f"a message of the unknown role {str(role)[:20]!r} is read as the assistant's")
    return "assistant"


def _convert_parts(parts: list[Any], damage: DamageReport) -> list[Any]:
    """Convert the parts that can be read; report and leave out each of the others."""
    readable = []
    for part in map(_convert_part, parts):
        try:
            msgspec.convert(part, AnyPart)
        except ERRORS:
            damage.note("a part of a message cannot be read")
        else:
            readable.append(part)
    return readable


def _convert_part(part: Any) -> Any:
    """Convert a part; one of an unknown type becomes text."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, dict) and not any(part.get("type") == known for known in _PART_TYPES):
        text = part.get("text")
        return {"type": "text", "text": text if isinstance(text, str) else encode_json(part).decode()}
    return part


def _convert_call(raw: JsonObject) -> JsonObject:
    """Convert a call from an earlier version, which has no status and may have plain text results."""
    result = raw.get("result")
    result = {"llmContent": result} if isinstance(result, str) else result if isinstance(result, dict) else None
    if result is not None and not isinstance(result.get("llmContent"), str):
        result = {**result, "llmContent": encode_json(result.get("llmContent")).decode()}
    shaped = {"args": {}, "timestamp": "", **raw, "result": result}
    if not isinstance(shaped["args"], dict):
        shaped["args"] = {"value": shaped["args"]}
    if isinstance(number := shaped.get("messageId"), int) and abs(number) > MAX_MESSAGE_NUMBER:
        shaped.pop("messageId")
    shaped.setdefault("status", "ok" if result is not None else "interrupted")
    return shaped
