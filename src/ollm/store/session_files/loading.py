"""A session as data, from whatever its files still hold."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ollm.domain.clock import parse_stamp, stamp
from ollm.domain.messages import JsonObject, Message
from ollm.domain.session import SCHEMA_VERSION, Session, SessionMetadata
from ollm.domain.struct import Data
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.store.session_files import lenient
from ollm.store.session_files.reader import SessionReader

LOOK_EVERY = 1024  # entries between two looks at the clock
INTERRUPTED = "Interrupted: the program ended before this call did. It may or may not have had an effect."


class Loaded(Data, frozen=True):
    """A session and what is wrong with its files: `damage` in a sentence, `read_only` when it must not be written.

    Messages up to number `skipped` were not read, nor were their calls.
    """

    session: Session
    damage: str | None = None
    read_only: str | None = None
    unfinished: bool = False  # an answer under way was never finished
    journal_good: int = 0
    skipped: int = 0
    calls_so_far: int = 0  # at least as many as there are, and as the highest number in an id of ours


def load(reader: SessionReader, session_id: str, *, alive: bool, fallback: datetime) -> Loaded:
    """Everything that can be read. A call nobody can finish any more (`alive` is false) counts as interrupted."""
    found = []
    for position, data in enumerate(reader.messages(), start=1):
        if position % LOOK_EVERY == 0 and reader.damage.late(position):
            break
        message = lenient.message(data, position, reader.damage)
        if message is not None:
            found.append(message)
    unfinished = bool(reader.partial)
    if unfinished:
        found.append(partial_message(reader, max((message.id for message in found), default=0) + 1))
    calls = list(_calls(reader, len(found)))
    if not alive:
        calls = [interrupted(record) if record.status == "running" else record for record in calls]
    described = session_of(reader.head, session_id, fallback)
    session = msgspec.structs.replace(described, messages=tuple(found), tool_calls=tuple(calls))
    return Loaded(
        session=session,
        damage=reader.damage.text,
        read_only=_read_only(reader, session),
        unfinished=unfinished,
        journal_good=reader.journal_good,
        skipped=reader.skipped,
        calls_so_far=max(len(calls), _highest([*reader.newest_calls, *(call.id for call in calls)])),
    )


def _calls(reader: SessionReader, before: int) -> Iterator[ToolCallRecord]:
    for position, data in enumerate(reader.calls(), start=1):
        if position % LOOK_EVERY == 0 and reader.damage.late(before + position):
            return
        if record := lenient.call(data, reader.damage):
            yield record


def _highest(call_ids: Iterable[str]) -> int:
    numbers = (name[1:] for name in call_ids if name[:1] == "c" and name[1:].isascii() and name[1:].isdigit())
    return max((int(number) for number in numbers if len(number) < 16), default=0)


def partial_message(reader: SessionReader, number: int) -> Message:
    """The answer under way, as far as it got."""
    shaped = {"role": "assistant", "parts": reader.partial, "timestamp": reader.partial_at}
    return msgspec.convert({**shaped, "id": number, "interrupted": True}, Message)


def interrupted(record: ToolCallRecord) -> ToolCallRecord:
    """The result a call gets when the program ended before it did."""
    return msgspec.structs.replace(
        record,
        status="interrupted",
        result=record.result or RecordedResult(llm_content=INTERRUPTED),
        error=ErrorInfo(type="Interrupted", message=INTERRUPTED),
    )


def file_time(*paths: Path) -> datetime:
    """When the newest of these files was last written."""
    times = [0.0]
    for path in paths:
        with contextlib.suppress(OSError):
            times.append(path.lstat().st_mtime)
    return datetime.fromtimestamp(max(times), UTC)


def _read_only(reader: SessionReader, session: Session) -> str | None:
    if reader.damage.too_large:
        return reader.damage.text
    if session.metadata.schema_version > SCHEMA_VERSION:
        return f"it was written by a newer version (schema {session.metadata.schema_version})"
    return None


def session_of(head: JsonObject, session_id: str, fallback: datetime) -> Session:
    """The session without its messages; a time that is missing or makes no sense is the file's own."""
    written = stamp(fallback)
    start = _time(head.get("startTime")) or _time(head.get("lastActivity")) or written
    return Session(
        session_id=session_id,
        start_time=start,
        last_activity=_time(head.get("lastActivity")) or max(start, written),
        model=_text(head.get("model")),
        provider=_text(head.get("provider")),
        messages=(),
        tool_calls=(),
        metadata=metadata_of(head),
    )


def metadata_of(head: JsonObject) -> SessionMetadata:
    """The metadata as data; a field of the wrong shape takes its default."""
    raw = head.get("metadata")
    raw = raw if isinstance(raw, dict) else {}
    try:
        return msgspec.convert(raw, SessionMetadata)
    except (msgspec.ValidationError, RecursionError):
        good = {name: value for name, value in raw.items() if _fits(name, value)}
        return msgspec.convert(good, SessionMetadata)


def _fits(name: str, value: Any) -> bool:
    try:
        msgspec.convert({name: value}, SessionMetadata)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _time(value: Any) -> str:
    try:
        parse_stamp(value)
    except (TypeError, ValueError):
        return ""
    return str(value)
