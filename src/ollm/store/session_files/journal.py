"""The journal: one JSON record per line, each on disk before the call that wrote it returns.

Replaying a journal over a document that already contains it changes nothing, so a crash between folding and clearing is
harmless: messages carry their number, and the newest record of a call and the newest value of a setting win.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, TypeGuard

import msgspec

from ollm.domain.lazy import decode_late
from ollm.domain.messages import JsonObject, replace_surrogates
from ollm.store.session_files.files import DamageReport

Parts = list[JsonObject]
GrownLists = dict[str, tuple[int, list[Any]]]  # By name, this is the place of the new items, and the items.
RECORD_START = b'{"at":"'
MAX_NESTING_LEVELS = 60  # Calls that are nested deeper are cut when they are written.


class JournalRecord(
    msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True, forbid_unknown_fields=True
):
    """One line. `at` is its time, exactly one other field its content. A line with an unknown field is not ours."""

    at: str
    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    piece: tuple[int, int] | None = None  # The number of the answer, and of this record of it.
    partial: Parts | None = None  # An answer under way has grown by this.
    call: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    top: JsonObject | None = None  # These are fields of the document itself.
    set: JsonObject | None = None  # These metadata fields are replaced.
    append: GrownLists | None = None  # These metadata lists are longer from a place on.
    tokens: int = 0  # The whole session has so many after this record; 0 means no change.


def is_torn_record(data: bytes) -> bool:
    """Return True if this is the start of one record without its line feed: valid JSON as far as it goes."""
    if data.endswith(b"\n") or not RECORD_START.startswith(data[: len(RECORD_START)]) or RECORD_START in data[1:]:
        return False
    for found in (data, data + b"0"):  # A number may end in a sign or a point.
        try:
            msgspec.json.decode(found)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if "truncated" in str(error):
                return True
    return False


class CallChange(msgspec.Struct, rename="camel", kw_only=True):
    """A record of a call: all of it as it started, with its name, and later the fields that changed."""

    id: str
    name: str | None = None
    message_id: int = 0


_call_decoder = decode_late(CallChange)
_object_decoder = msgspec.json.Decoder(dict[str, Any])
_decoder = decode_late(JournalRecord)
_encoder = msgspec.json.Encoder()
_OWN_FIELDS = {"sessionId", "metadata", "messages", "toolCalls"}  # No record replaces these.
DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
ERRORS = (*DECODE_ERRORS, ValueError, TypeError, KeyError)  # Odd data raises these.
ENCODE_ERRORS = (UnicodeEncodeError, TypeError, OverflowError, ValueError, RecursionError)


def encode_json(value: Any) -> bytes:
    """Encode any value as JSON. Replaces what JSON or UTF-8 cannot represent, and never raises."""
    try:
        return _encoder.encode(value)
    except ENCODE_ERRORS:
        is_plain = isinstance(value, dict | list | tuple | str)
        return _encoder.encode(clean_json(value if is_plain else msgspec.to_builtins(value, enc_hook=str)))


def clean_json(value: Any, depth: int = 0) -> Any:
    """Return the value with bytes that are not UTF-8 as escapes, odd values as text, and deep nesting cut off."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        if depth > MAX_NESTING_LEVELS:
            return "(nested too deep)"
        return {str(clean_json(str(key))): clean_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item, depth + 1) for item in value] if depth <= MAX_NESTING_LEVELS else "(nested too deep)"
    if value is None or isinstance(value, bool | int | float | msgspec.Raw):
        return value
    return clean_json(str(value))


def encode_line(record: JournalRecord) -> bytes:
    return encode_json(record) + b"\n"


def parse_object(data: bytes) -> JsonObject:
    """Parse a JSON object. Raises one of `DECODE_ERRORS` if it is not one."""
    return _object_decoder.decode(data)


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


def parse_record(data: bytes) -> JournalRecord:
    """Parse a record. Raises msgspec's or Unicode's error for a line that is not a usable record."""
    record = _decoder.decode(data)
    if record.partial is not None and not all(map(is_part, record.partial)):
        raise msgspec.ValidationError("not the parts of an answer")
    return record


def parse_change(data: bytes) -> CallChange:
    """Parse a record of a call. Raises msgspec's or Unicode's error if the data is not one."""
    return _call_decoder.decode(data)


def is_same_call(first: bytes, other: bytes) -> bool:
    """Return True if two records with one id are of one call, of which only a whole one names the tool."""
    one, two = parse_object(first), parse_object(other)
    return "name" not in one or all(one.get(name) == two.get(name) for name in ("messageId", "name", "args"))


def join_call(changes: Iterable[JsonObject]) -> JsonObject:
    """Join the records of a call; a start never overrides an end."""
    found: JsonObject = {}
    for change in sorted(changes, key=lambda change: change.get("status") == "running", reverse=True):
        found |= change
    return found


def is_part(part: Any) -> TypeGuard[JsonObject]:
    """Return True for text of an answer, which can go on; a part in a damaged record may be anything."""
    return isinstance(part, dict) and part.get("type") in ("text", "thinking") and isinstance(part.get("text"), str)


def extend_parts(parts: Parts, more: Parts) -> Parts:
    """Extend `parts` by `more`: text is appended to a last part of the same type."""
    grown = list(parts)
    for part in more:
        last = grown[-1] if grown else None
        if is_part(last) and is_part(part) and last["type"] == part["type"]:
            grown[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            grown.append(part)
    return grown


def split_changes(held: JsonObject, changed: JsonObject) -> tuple[JsonObject, GrownLists]:
    """Split a metadata change into replaced values and new items of lists that only grew."""
    grown: GrownLists = {}
    replaced: JsonObject = {}
    for name, value in msgspec.json.decode(encode_json(changed)).items():
        old = held.get(name)
        if isinstance(value, list) and isinstance(old, list) and old and value[: len(old)] == old:
            grown[name] = (len(old), value[len(old) :])
        else:
            replaced[name] = value
    return replaced, grown


def advance_head(head: JsonObject, at: str, tokens: int) -> None:
    """Apply a record's time, and the archive's current token count, to the head."""
    last = head.get("lastActivity")
    if at != last and at[:4].isdigit():
        head["lastActivity"] = last if isinstance(last, str) and last > at else at
    if tokens:
        head.setdefault("metadata", {})["tokenCount"] = tokens


def change_head(head: JsonObject, record: JournalRecord) -> None:
    """Apply a record's changes to the document's own fields and its metadata."""
    advance_head(head, record.at, record.tokens)
    if record.top:
        head.update({name: value for name, value in record.top.items() if name not in _OWN_FIELDS})
    metadata = head.setdefault("metadata", {})
    if record.set:
        metadata.update(record.set)
    for key, (start, items) in (record.append or {}).items():
        held = metadata.get(key)
        metadata[key] = [*(held[:start] if isinstance(held, list) else ()), *items]


def lacks_record(metadata: JsonObject, record: JournalRecord) -> bool:
    """Return True if a list that this record extends is too short: a record before it is missing."""
    grown = (record.append or {}).items()
    return any(isinstance(held := metadata.get(key), list) and len(held) < start for key, (start, _) in grown)


def read_call_number(call_id: str) -> int:
    """Return the number in a call id made by ollm, or 0 for any other id."""
    number = call_id[1:] if call_id[:1] == "c" else ""
    return int(number) if number.isascii() and number.isdigit() and len(number) < 16 else 0
