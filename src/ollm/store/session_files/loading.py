"""Load a session as data, from whatever its files still contain."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeVar

import msgspec

from ollm.domain.clock import format_stamp, parse_stamp
from ollm.domain.messages import AnyPart, JsonObject, Message, ToolCallPart, ToolResultPart
from ollm.domain.session import SCHEMA_VERSION, Session, SessionMetadata
from ollm.domain.struct import Data
from ollm.domain.tools import ErrorInfo, RecordedResult, ToolCallRecord
from ollm.store.session_files import document, journal
from ollm.store.session_files.journal import read_call_number
from ollm.store.session_files.reader import SessionReader
from ollm.store.session_files.waypoints import KnownState

Entry = TypeVar("Entry")
ReadEntry = tuple[Entry, bytes, bool]
_take_entry = itemgetter(0)
_OTHERS = tuple(b'{"role":"%s"' % role for role in (b"assistant", b"tool", b"system"))  # how we write their messages
INTERRUPTED_TEXT = "ollm stopped before this call finished. It may or may not have taken effect."


class LoadedSession(Data, frozen=True):
    """A session and the state of its files: `damage` in a sentence, `read_only` if it must not be written.

    Messages up to number `skipped` and their calls were not read.
    """

    session: Session
    damage: str | None
    read_only: str | None
    skipped: int
    partial: journal.Parts  # of an answer under way that was never finished
    calls_so_far: int  # at least as many as there are, and as the highest number in an id of ours
    message_count: int = 0  # finished ones that were read, and the number of the last
    last_number: int = 0
    journal_good: int = 0
    known: KnownState | None = None  # of the files, if they are as we write them

    @property
    def is_unfinished(self) -> bool:
        return bool(self.partial)


class SessionStream:
    """A session read entry by entry, on demand and without keeping entries.

    `session` contains no messages and no calls. `damage` grows while they are read, the messages first.
    """

    def __init__(self, reader: SessionReader, session_id: str, *, alive: bool) -> None:
        self.session = make_session(reader.head, session_id, reader.written_at)
        self.reader = reader
        self._alive = alive

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

    def iter_messages(self) -> Iterator[Message]:
        """Iterate over all messages, and the unfinished answer as far as it got."""
        return map(_take_entry, read_all_messages(self.reader))

    def read_user_words(self) -> dict[int, str]:
        """Read the user's messages by number, skipping all others unread."""
        found: dict[int, str] = {}
        for position, data in enumerate(self.reader.iter_messages(), start=1):
            if not data.startswith(_OTHERS):
                message, _ = document.parse_message(data, position, self.reader.damage)
                found |= {message.id: message.text} if message and message.role == "user" else {}
        return found

    def iter_calls(self) -> Iterator[ToolCallRecord]:
        """Iterate over all calls. One that can no longer finish counts as interrupted."""
        for record, _, _ in read_calls(self.reader):
            yield self._end_call(record)

    @cached_property
    def _unread_calls(self) -> dict[str, list[int]]:
        self.reader.missing.restart_calls()
        return {call_id: list(found) for call_id, found in self.reader.table.calls.items()}

    def find_call(self, call_id: str) -> ToolCallRecord | None:
        """Find a call; each of several with one id is returned once."""
        found = self._unread_calls.get(call_id)
        return self._read_call(found.pop(0)) if found else None

    def iter_other_calls(self) -> Iterator[ToolCallRecord]:
        """Iterate over the calls not returned by `find_call`; no readable message names them."""
        rest = sorted(itertools.chain.from_iterable(self._unread_calls.values()))
        yield from filter(None, map(self._read_call, rest))
        self.reader.missing.end_calls()

    def _read_call(self, first: int) -> ToolCallRecord | None:
        data = self.reader.table.read_call(first)
        self.reader.read += len(data)
        record, _ = document.parse_call(data, self.reader.damage)
        if record is None:
            return None
        self.reader.missing.add_call(record)
        return self._end_call(record)

    def _end_call(self, record: ToolCallRecord) -> ToolCallRecord:
        return mark_interrupted(record) if record.status == "running" and not self._alive else record

    def iter_document(self, head: JsonObject | None = None) -> Iterator[bytes]:
        """Yield everything readable as one JSON document; undamaged entries stay unchanged."""
        return document.iter_document(
            complete_head(self.reader.head, self.session) if head is None else head,
            itertools.starmap(document.make_line, read_all_messages(self.reader)),
            itertools.starmap(document.make_line, read_calls(self.reader)),
        )


def read_messages(reader: SessionReader) -> Iterator[ReadEntry[Message]]:
    """Yield every readable message, with its bytes and True if they are in strict form."""
    missing = reader.missing
    missing.restart_messages()

    def parse(data: bytes, number: int) -> tuple[Message | None, bool]:
        return document.parse_message(data, max(number, missing.next_number), reader.damage)

    yield from _read_entries(reader, reader.iter_messages(), parse, missing.add_message)
    if reader.partial:
        missing.expect(reader.table.answer)
    missing.end_messages(under_way=bool(reader.partial))


def read_all_messages(reader: SessionReader) -> Iterator[ReadEntry[Message]]:
    """Yield messages like `read_messages`, and the unfinished answer as far as it got."""
    yield from read_messages(reader)
    if reader.partial:
        message = make_partial_message(reader, max(reader.table.answer, reader.missing.last_number + 1))
        yield message, journal.encode_json(message), True


def read_calls(reader: SessionReader) -> Iterator[ReadEntry[ToolCallRecord]]:
    """Yield every readable call in the same way as `read_messages`."""
    missing = reader.missing
    missing.restart_calls()
    damage = reader.damage
    yield from _read_entries(
        reader, reader.iter_calls(), lambda data, _: document.parse_call(data, damage), missing.add_call
    )
    missing.end_calls()


def _read_entries(
    reader: SessionReader,
    entries: Iterator[bytes],
    parse: Callable[[bytes, int], tuple[Entry | None, bool]],
    add: Callable[[Entry], None],
) -> Iterator[ReadEntry[Entry]]:
    for position, data in enumerate(entries, start=1):
        reader.read += len(data)
        found, sound = parse(data, position)
        if found:
            add(found)
            yield found, data, sound


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
    messages, calls = separate_calls(messages, calls)
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
        known=reader.make_known(count, last, calls_so_far),
    )


def separate_calls(messages: list[Message], calls: list[ToolCallRecord]) -> tuple[list[Message], list[ToolCallRecord]]:
    """Give each call an id of its own, as other programs may repeat theirs: the first message that requests an id gets
    the first call with it, and so on."""
    ids: dict[str, list[str]] = {call.id: [] for call in calls}
    if len(ids) == len(calls):
        return messages, calls
    for place, call in enumerate(calls):
        own = next(name for number in itertools.count(2) if (name := f"{call.id}-{number}") not in ids)
        own = own if ids[call.id] else call.id
        ids[call.id].append(own)
        calls[place] = msgspec.structs.replace(call, id=own)
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

    for place, message in enumerate(messages):
        if message.call_ids:
            asked = asked if message.role == "tool" else {}  # the others were never answered
            messages[place] = msgspec.structs.replace(message, parts=tuple(map(rename, message.parts)))
    return messages, calls


def make_partial_message(reader: SessionReader, number: int) -> Message:
    """Make a message of the unfinished answer, as far as it got."""
    shaped = {"role": "assistant", "parts": reader.partial, "timestamp": reader.table.partial.at}
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
