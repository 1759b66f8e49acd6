"""Load a session as data, from whatever its files still contain."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter
from typing import Any

import msgspec

from ollm.domain.clock import format_stamp, parse_stamp
from ollm.domain.messages import JsonObject, Message
from ollm.domain.session import SCHEMA_VERSION, Session, SessionMetadata
from ollm.domain.struct import Data
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.store.session_files import document, journal
from ollm.store.session_files.journal import read_call_number
from ollm.store.session_files.reader import SessionReader

_take_entry, _take_line = itemgetter(0), itemgetter(1)
_OTHERS = tuple(b'{"role":"%s"' % role for role in (b"assistant", b"tool", b"system"))
INTERRUPTED_TEXT = "ollm stopped before this call finished. It may or may not have taken effect."


class LoadedSession(Data, frozen=True):
    """A session and the state of its files: `damage` in a sentence, `read_only` if it must not be written.

    Messages up to number `skipped` and their calls were not read.
    """

    session: Session
    damage: str | None
    read_only: str | None
    skipped: int
    partial: journal.Parts  # An answer that was never finished.
    calls_so_far: int  # At least the number of calls and the highest number in our ids.
    message_count: int = 0  # Unfinished messages do not count.
    last_number: int = 0
    journal_good: int = 0


class SessionStream:
    """A session read entry by entry, on demand and without keeping entries.

    `session` contains no messages and no calls. `damage` grows while they are read, the messages first.
    """

    def __init__(self, reader: SessionReader, session_id: str, *, alive: bool) -> None:
        self.session = make_session(reader.head, session_id, reader.written_at)
        self.reader = reader
        self._alive = alive
        self._found: set[str] = set()

    @property
    def damage(self) -> str | None:
        return self.reader.damage.text

    @property
    def unreadable(self) -> bool:
        """Return True if the files are damaged and nothing could be read; valid after reading."""
        return self.damage is not None and self.reader.missing.nothing_read and not self.reader.partial

    @property
    def read_only(self) -> str | None:
        """Reason why the session must not be written, or None if it may be."""
        if self.reader.damage.too_large:
            return self.damage
        version = self.session.metadata.schema_version
        return f"it was written by a newer version (schema {version})" if version > SCHEMA_VERSION else None

    def read_messages(self) -> Iterator[document.ReadMessage]:
        """Yield all messages with their lines, and the unfinished answer as far as it got."""
        yield from self.reader.iter_messages()
        if self.reader.partial:
            message = make_partial_message(self.reader)
            yield message, journal.encode_json(message)

    def iter_messages(self) -> Iterator[Message]:
        return map(_take_entry, self.read_messages())

    def read_user_words(self) -> dict[int, str]:
        """Read the user's messages by number, skipping all others unread."""
        messages = map(_take_entry, self.reader.iter_messages(leave_out=_OTHERS))
        return {message.id: message.text for message in messages if message.role == "user"}

    def iter_calls(self) -> Iterator[ToolCallRecord]:
        """Iterate over all calls. One that can no longer finish counts as interrupted."""
        for record, _ in self.reader.iter_calls():
            yield self._end_call(record)

    def find_call(self, call_id: str) -> ToolCallRecord | None:
        """Find a call; it is returned once."""
        if call_id in self._found or call_id not in self.reader.table.calls:
            return None
        self._found.add(call_id)
        return self._end_call(self.reader.read_call(call_id)[0])

    def iter_other_calls(self) -> Iterator[ToolCallRecord]:
        """Iterate over the calls not returned by `find_call`; no readable message names them."""
        yield from filter(None, map(self.find_call, list(self.reader.table.calls)))
        self.reader.missing.report()

    def _end_call(self, record: ToolCallRecord) -> ToolCallRecord:
        return mark_interrupted(record) if record.status == "running" and not self._alive else record

    def iter_document(self, head: JsonObject | None = None) -> Iterator[bytes]:
        """Yield everything readable as one JSON document; undamaged entries stay unchanged."""
        return document.iter_document(
            complete_head(self.reader.head, self.session) if head is None else head,
            map(_take_line, self.read_messages()),
            map(_take_line, self.reader.iter_calls()),
        )


def load_session(stream: SessionStream, after: int = 0) -> LoadedSession:
    """Read everything readable, and keep what follows message `after`."""
    reader, known = stream.reader, stream.reader.known
    count, last, calls_so_far = (known.count, known.last, known.calls) if known else (0, 0, 0)
    messages: list[Message] = []
    for message in stream.iter_messages():
        count += message.id > last
        if message.id > after:
            messages.append(message)
    calls: list[ToolCallRecord] = []
    for number, call in enumerate(stream.iter_calls(), start=1):
        calls_so_far = max(calls_so_far, number, read_call_number(call.id))
        if call.message_id > after or not after:
            calls.append(call)
    count -= bool(reader.partial)
    last = max(last, reader.missing.last_number)
    return LoadedSession(
        session=msgspec.structs.replace(stream.session, messages=tuple(messages), tool_calls=tuple(calls)),
        damage=stream.damage,
        read_only=stream.read_only,
        skipped=max(reader.skipped, after),
        calls_so_far=calls_so_far,
        message_count=count,
        last_number=last,
        partial=reader.partial,
        journal_good=reader.journal_good,
    )


def make_partial_message(reader: SessionReader) -> Message:
    """Make a message of the unfinished answer, as far as it got."""
    partial = reader.table.partial
    number = max(partial.number, reader.missing.last_number + 1)
    shaped = {"role": "assistant", "parts": partial.parts, "timestamp": partial.at}
    return msgspec.convert({**shaped, "id": number, "interrupted": True}, Message)


def mark_interrupted(record: ToolCallRecord) -> ToolCallRecord:
    """Mark a call as interrupted, because the program ended before it did."""
    return msgspec.structs.replace(
        record,
        status="interrupted",
        result=record.result or RecordedResult(llm_content=INTERRUPTED_TEXT),
        error=ErrorInfo(type="Interrupted", message=INTERRUPTED_TEXT),
    )


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
    return {**head, **{name: known[name] for name in document.FIELDS if name != "metadata"}}


def parse_metadata(head: JsonObject) -> SessionMetadata:
    """Parse the metadata; a field of the wrong shape gets its default."""
    raw = head.get("metadata")
    raw = raw if isinstance(raw, dict) else {}
    return msgspec.convert(
        {name: value for name, value in raw.items() if document.fits_metadata(name, value)}, SessionMetadata
    )


def _text_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _time_or_empty(value: Any) -> str:
    try:
        parse_stamp(value)
    except (TypeError, ValueError):
        return ""
    return str(value)
