"""The layout of a document: a head, then one message or call per line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from ollm.domain.clock import format_stamp, parse_stamp
from ollm.domain.lazy import decode_late
from ollm.domain.messages import JsonObject, Message
from ollm.domain.session import Session, SessionMetadata
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files.files import MAX_MESSAGE_NUMBER
from ollm.store.session_files.journal import DECODE_ERRORS, encode_json

_NUMBER_TAIL_BYTES = 20


class _MessageNumber(msgspec.Struct):
    id: int = 0


MAX_NUMBER = 10**15  # No real count of tokens is larger.
MAX_PATH_CHARS, MAX_NAME_CHARS = 4096, 255  # No system opens a workspace with a longer path.
_METADATA_FIELDS = frozenset(SessionMetadata.__struct_encode_fields__)
_message_decoder = decode_late(Message)
_call_decoder = decode_late(ToolCallRecord)
_number_decoder = decode_late(_MessageNumber)
_raw_decoder = msgspec.json.Decoder(msgspec.Raw)
MESSAGE = b'{"role":'  # Our lines of messages begin so.
CALL = b'{"id":"'  # A call's line begins so, and a message's never does.

ReadMessage = tuple[Message, bytes]
ReadCall = tuple[ToolCallRecord, bytes]
OPEN = b',"messages":[\n'
MIDDLE = b'],"toolCalls":[\n'
CLOSE = b"]}\n"
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


def parse_message(data: bytes) -> Message | None:
    """Parse a message, or return None if it is not one."""
    try:
        return _message_decoder.decode(data)
    except DECODE_ERRORS:
        return None


def parse_call(data: bytes) -> ToolCallRecord | None:
    """Parse a call in the same way as `parse_message`."""
    with contextlib.suppress(*DECODE_ERRORS):
        found = _call_decoder.decode(data)
        return found if b'"status"' in data and abs(found.message_id) <= MAX_MESSAGE_NUMBER else None
    return None


def read_number(data: bytes) -> int:
    """Read the number of a message, or return 0 if it has none."""
    head, _, last = data[-_NUMBER_TAIL_BYTES:].rpartition(b',"id":')
    if head and last[-1:] == b"}" and last[:-1].isdigit():  # Our own lines end so and need no parsing.
        number = int(last[:-1])
    else:
        try:
            number = _number_decoder.decode(data).id
        except DECODE_ERRORS:
            return 0
    return number if 0 < number <= MAX_MESSAGE_NUMBER else 0


def is_valid_json(data: bytes) -> bool:
    try:
        _raw_decoder.decode(data)
    except DECODE_ERRORS:
        return False
    return True


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


def make_session(head: JsonObject, session_id: str, fallback: datetime) -> Session:
    """Make the session without its messages; a missing or implausible time is replaced by the file's."""
    written = format_stamp(fallback)
    start = _time_or_empty(head.get("startTime")) or _time_or_empty(head.get("lastActivity")) or written
    return Session(
        session_id=session_id,
        start_time=start,
        last_activity=_time_or_empty(head.get("lastActivity")) or max(start, written),
        model=_text_or_empty(head.get("model")),
        provider=_text_or_empty(head.get("provider")),
        messages=(),
        tool_calls=(),
        metadata=parse_metadata(head),
    )


def complete_head(head: JsonObject, session: Session) -> JsonObject:
    """Complete the head with the fields that every document has (S2.1), however little of it was readable."""
    known: JsonObject = msgspec.to_builtins(session)
    return {**head, **{name: known[name] for name in FIELDS if name != "metadata"}}


def parse_metadata(head: JsonObject) -> SessionMetadata:
    """Parse the metadata; a field of the wrong shape gets its default."""
    raw = head.get("metadata")
    raw = raw if isinstance(raw, dict) else {}
    return msgspec.convert({name: value for name, value in raw.items() if fits_metadata(name, value)}, SessionMetadata)


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _time_or_empty(value: Any) -> str:
    try:
        parse_stamp(value)
    except (TypeError, ValueError):
        return ""
    return str(value)
