"""The layout of a document, and its entries: parsed strictly first, then as far as possible (old versions, damage)."""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import msgspec

from ollm.domain.lazy import decode_late
from ollm.domain.messages import AnyPart, JsonObject, Message, Role
from ollm.domain.session import SessionMetadata
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files.files import MAX_DEPTH, MAX_MESSAGE_NUMBER, DamageReport
from ollm.store.session_files.journal import (
    DECODE_ERRORS,
    RECORD_START,
    JournalRecord,
    clean_json,
    encode_json,
    parse_record,
)

_NUMBER_TAIL_BYTES = 20


class _MessageNumber(msgspec.Struct):
    id: int = 0


MAX_NUMBER = 10**15  # of tokens; what is over it was never given by anybody who counts
MAX_PATH_CHARS, MAX_NAME_CHARS = 4096, 255  # of a workspace; no system opens more
_METADATA_FIELDS = frozenset(SessionMetadata.__struct_encode_fields__)
_message_decoder = decode_late(Message)
_object_decoder = msgspec.json.Decoder(dict[str, Any])
_call_decoder = decode_late(ToolCallRecord)
_number_decoder = decode_late(_MessageNumber)
_raw_decoder = msgspec.json.Decoder(msgspec.Raw)
MESSAGE = b'{"role":'  # how we write a message's line
CALL = b'{"id":"'  # how a call's line starts and a message's never does
_ROLES = get_args(Role)
_PART_TYPES = {"text", "thinking", "image", "tool_call", "tool_result"}
_NO_OPENING = bytes(set(range(256)) - set(b"{["))
_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, TypeError, KeyError)

OPEN = b',"messages":[\n'
MIDDLE = b'],"toolCalls":[\n'
CLOSE = b"]}\n"
MAX_HEAD_BYTES = 1 << 26
FIELDS = ("sessionId", "startTime", "lastActivity", "model", "provider", "metadata")


def iter_document(head: JsonObject, messages: Iterable[bytes], calls: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the document's bytes in parts."""
    return join_document(encode_head(head), messages, calls)


def encode_head(head: JsonObject) -> bytes:
    """Encode the fields of a document except messages and calls, in their order, as one JSON object."""
    ordered = {name: head[name] for name in FIELDS if name in head}
    ordered |= {name: value for name, value in head.items() if name not in ("messages", "toolCalls", *ordered)}
    return encode_json(ordered)


def join_document(head: bytes, messages: Iterable[bytes], calls: Iterable[bytes]) -> Iterator[bytes]:
    """Join the encoded head and the lines of the entries into the document's bytes."""
    yield head[:-1] + OPEN
    yield from _iter_lines(messages)
    yield MIDDLE
    yield from _iter_lines(calls)
    yield CLOSE


def _iter_lines(items: Iterable[bytes]) -> Iterator[bytes]:
    first = True
    for item in items:
        if not first:
            yield b",\n"
        yield item
        first = False
    if not first:
        yield b"\n"


def is_deeper_than(data: bytes, limit: int = MAX_DEPTH) -> bool:
    """Return True if the brackets of this JSON nest deeper than `limit`."""
    if data.rfind(b"{") < limit and data.rfind(b"[") < limit:
        return False  # too near its beginning for so many
    if len(data.translate(None, _NO_OPENING)) <= limit:
        return False
    try:
        return _is_value_deeper(msgspec.json.decode(data), limit)
    except RecursionError:
        return True
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def _is_value_deeper(value: Any, limit: int) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return items is not None and (limit == 0 or any(_is_value_deeper(item, limit - 1) for item in items))


def is_torn_record(data: bytes) -> bool:
    """Return True if this is the start of one record without its line feed: valid JSON as far as it goes."""
    return (
        RECORD_START.startswith(data[: len(RECORD_START)])
        and not (data.endswith(b"\n") or RECORD_START in data[1:])
        and any(map(_is_truncated, (data, data + b"0")))  # a number may end in a sign or a point
    )


def _is_truncated(data: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # its last character may be torn
        _raw_decoder.decode(data)
    except UnicodeDecodeError:
        return False
    except msgspec.DecodeError as error:
        return "truncated" in str(error)
    return False


def parse_record_leniently(data: bytes) -> JournalRecord:
    """Parse the readable fields of a journal record. Raises one of `_ERRORS` if it is not an object."""
    try:
        return parse_record(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        fields = parse_object(data)
    readable: JsonObject = {"at": ""}
    for name, value in fields.items():
        with contextlib.suppress(*_ERRORS):
            parse_record(encode_json({"at": "", name: value}))
            readable[name] = value
    return parse_record(encode_json(readable))


def read_shape(data: bytes) -> JournalRecord | None:
    """Read a message, a call or a record by its shape, or return None for any other object. A message or call by
    itself is a record without a time."""
    if data.startswith(MESSAGE):
        return JournalRecord(at="", message=msgspec.Raw(data))
    try:
        fields = parse_object(data)
        if "role" in fields:
            return JournalRecord(at="", message=msgspec.Raw(data))
        if isinstance(fields.get("id"), str) and fields.keys() & {"args", "name"}:
            return JournalRecord(at="", call=msgspec.Raw(data))
        record = parse_record_leniently(data)
    except _ERRORS:
        return None
    return record if record != JournalRecord(at=record.at, tokens=record.tokens) else None


def parse_message(data: bytes, number: int, damage: DamageReport) -> tuple[Message | None, bool]:
    """Parse the message in `data`. Returns True with one in strict form, whose bytes can be written unchanged. `number`
    is its place, for files without message numbers."""
    if is_deeper_than(data):
        damage.count_lost_entry(f"message {number} is nested too deep")
        damage.refuse_depth()
        return None, False
    found: Message | None
    try:
        found, sound = _message_decoder.decode(data), True
    except _ERRORS:
        found, sound = _parse_message_leniently(data, damage), False
    if found is None:
        damage.count_lost_entry()
    elif not 0 < found.id <= MAX_MESSAGE_NUMBER:
        if found.id:
            damage.note(f"the number of message {number} cannot be right")
        found, sound = msgspec.structs.replace(found, id=number), False
    return found, sound


def parse_call(data: bytes, damage: DamageReport) -> tuple[ToolCallRecord | None, bool]:
    """Parse a call in the same way as `parse_message`."""
    if is_deeper_than(data):
        damage.count_lost_entry("a tool call is nested too deep")
        damage.refuse_depth()
        return None, False
    try:
        found = _call_decoder.decode(data)
        if b'"status"' in data and abs(found.message_id) <= MAX_MESSAGE_NUMBER:
            return found, True
        raw: JsonObject | None = {}
    except _ERRORS:
        raw = _parse_object_leniently(data, damage)
    try:
        return msgspec.convert(_convert_call(raw or msgspec.json.decode(data)), ToolCallRecord), False
    except _ERRORS:
        damage.count_lost_entry("a tool call cannot be read")
        return None, False


def read_number(data: bytes) -> int:
    """Read the number of a message, or return 0 if it has none."""
    head, _, last = data[-_NUMBER_TAIL_BYTES:].rpartition(b',"id":')
    if head and last[-1:] == b"}" and last[:-1].isdigit():  # our own lines end so: no need to parse them
        number = int(last[:-1])
    else:
        try:
            number = _number_decoder.decode(data).id
        except DECODE_ERRORS:
            return 0
    return number if 0 < number <= MAX_MESSAGE_NUMBER else 0


def make_line(known: Message | ToolCallRecord, data: bytes, sound: bool) -> bytes:
    """Return an entry's own bytes on one line if they are sound; else encode all that was readable in it."""
    if sound:
        start = MESSAGE if isinstance(known, Message) else CALL
        ours = data.startswith(start) and b"\n" not in data
        line = data if ours else msgspec.json.format(data, indent=-1)
        if line.startswith(start) and (line.isascii() or is_utf8(line)):
            return line
    fields: JsonObject = msgspec.to_builtins(known)
    return encode_json({**fields, **parse_object(data), **fields})


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_valid_json(data: bytes) -> bool:
    try:
        _raw_decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True


def parse_object(data: bytes) -> JsonObject:
    """Parse any JSON object, however odd. Raises ValueError or RecursionError if it is not one. Raw zeros are a hole
    in the file, not content, because JSON escapes them."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return _object_decoder.decode(data)
    import json

    found = json.loads(data.replace(b"\0", b"").decode("utf-8", "replace"), strict=False)
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004 - the caller treats all bad JSON alike
    cleaned: JsonObject = clean_json(found)
    return cleaned


def hash_message(data: bytes) -> int:
    """Hash a message by role and parts, so that different encodings of it have the same hash."""
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
    if not is_utf8(data):
        damage.note("some characters are not UTF-8 and were replaced")
    elif not is_valid_json(data):
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
    if isinstance(raw.get("role"), str):
        raw["role"] = _convert_role(raw["role"], damage)
    shaped = raw | {
        "parts": _convert_parts(parts, damage) if isinstance(parts, list) else [],
        "timestamp": str(raw.get("timestamp") or ""),
    }
    try:
        return msgspec.convert(shaped, Message)
    except _ERRORS:
        return None


def _convert_role(role: str, damage: DamageReport) -> str:
    """Convert a role in another spelling. An unknown one becomes the assistant's, whose words carry no authority."""
    if (known := role.strip().lower()) in _ROLES:
        return known
    damage.note(f"a message of the unknown role {role[:20]!r} is read as the assistant's")
    return "assistant"


def _convert_parts(parts: list[Any], damage: DamageReport) -> list[Any]:
    """Convert the parts that can be read; report and leave out each of the others."""
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
    """Convert a part; one of an unknown type becomes text."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, dict) and not any(part.get("type") == known for known in _PART_TYPES):
        return {
            "type": "text",
            "text": part["text"] if isinstance(part.get("text"), str) else encode_json(part).decode(),
        }
    return part


def _convert_call(raw: JsonObject) -> JsonObject:
    """Convert a call from an earlier version, which has no status and may have plain text results."""
    result = raw.get("result")
    if isinstance(result, str):
        result = {"llmContent": result}
    shaped = {"args": {}, "timestamp": "", **raw, "result": result if isinstance(result, dict) else None}
    if shaped["result"] is not None and not isinstance(shaped["result"].get("llmContent"), str):
        shaped["result"] = {**shaped["result"], "llmContent": encode_json(shaped["result"].get("llmContent")).decode()}
    if not isinstance(shaped["args"], dict):
        shaped["args"] = {"value": shaped["args"]}
    if isinstance(number := shaped.get("messageId"), int) and abs(number) > MAX_MESSAGE_NUMBER:
        shaped.pop("messageId")
    shaped.setdefault("status", "ok" if shaped["result"] is not None else "interrupted")
    return shaped


def fits_metadata(name: str, value: Any) -> bool:
    """Return True if the value of a metadata field is plausible, not only of the right type."""
    if name not in _METADATA_FIELDS:
        return True
    try:
        msgspec.convert({name: value}, SessionMetadata)
    except (msgspec.ValidationError, RecursionError):
        return False
    if name == "workspace" and isinstance(value, str):
        return "\0" not in value and len(value) < MAX_PATH_CHARS and max(map(len, value.split("/"))) <= MAX_NAME_CHARS
    return name == "schemaVersion" or not isinstance(value, int) or abs(value) <= MAX_NUMBER
