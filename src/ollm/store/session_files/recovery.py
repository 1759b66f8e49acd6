"""Recover a session that is opened for writing after a crash or damage: nothing readable is lost, the damaged file
is kept, a cut-off answer is marked interrupted, and every call without a result gets one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ollm.domain.clock import Clock, format_stamp
from ollm.domain.errors import DamagedError
from ollm.domain.messages import JsonObject, Message, ToolResultPart
from ollm.domain.session import SCHEMA_VERSION, Session
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files import document
from ollm.store.session_files.files import CONTAINED, LAST_MESSAGE, MISSING
from ollm.store.session_files.loading import LoadedSession, load_session
from ollm.store.session_files.places import SessionPlaces, keep_copies
from ollm.store.session_files.reader import SessionReader, mark_interrupted
from ollm.store.session_files.waypoints import KnownState, SessionPart
from ollm.store.session_files.writer import SessionWriter
from ollm.system.atomic import replace_file

LARGE_BYTES = 64_000_000  # To continue a session of this size only its end is read.
Paths = tuple[Path, Path]


def recover_session(
    places: SessionPlaces,
    writer: SessionWriter,
    clock: Clock,
    *,
    to_continue: bool,
    since: int,
    known: KnownState | None,
) -> LoadedSession:
    """Repair the files and prepare the writer. Returns the resulting session.

    Files in a `known` state are read only from where they are needed; in doubt, all is read. Of a large session, and of
    one that is not to be continued, only the messages after `since` are returned, or the end.
    """
    paths = places.get_paths(writer.session_id)
    is_large = sum(path.stat().st_size for path in paths if path.is_file()) >= LARGE_BYTES
    begin = (since or sys.maxsize) if is_large or not to_continue else 0
    loaded, damage, missing = None, None, None
    if known and (since or is_large):
        loaded = _read_end(paths, writer, SessionPart(known, since or sys.maxsize))
    if loaded is None:
        with _open_reader(paths, writer) as reader:
            loaded = None if reader.foreign else load_session(reader, reader.table.find_beginning(begin))
            if reader.foreign or reader.damage:
                damage, missing = _rewrite(paths, reader, clock)
                loaded = None
    if loaded is None:
        with _open_reader(paths, writer) as reader:
            loaded = load_session(reader, reader.table.find_beginning(begin))
    for path in places.directory.glob(f".{writer.session_id}.*.tmp"):
        path.unlink(missing_ok=True)
    last = max(loaded.last_number, *(end for _, end in (missing or {}).get("messages", ())), 0)
    writer.adopt(msgspec.structs.replace(loaded, last_number=last))  # Numbers of missing messages are not used again.
    if missing:
        writer.change_fields(loaded.session.last_activity, {}, {MISSING: missing})
    loaded = msgspec.structs.replace(loaded, damage=damage or loaded.damage)
    return _finish_interrupted(writer, loaded, clock) if to_continue else loaded


def _read_end(paths: Paths, writer: SessionWriter, part: SessionPart) -> LoadedSession | None:
    """Read the end of a session, or return None if that may not be enough."""
    with _open_reader(paths, writer, part) as reader:
        loaded = load_session(reader)
        calls = {call.id for call in loaded.session.tool_calls}
        has_all_calls = all(name in calls for message in loaded.session.messages for name in message.call_ids)
        return loaded if has_all_calls and reader.known and not reader.damage and not reader.read_only else None


@contextlib.contextmanager
def _open_reader(paths: Paths, writer: SessionWriter, part: SessionPart | None = None) -> Iterator[SessionReader]:
    """Open a session that may be written, with all its fields."""
    with contextlib.closing(SessionReader(*paths, part=part)) as reader:
        refuse_read_only(reader, paths[0])
        writer.head = make_current_head(reader.head, reader.session)
        yield reader


def _rewrite(paths: Paths, reader: SessionReader, clock: Clock) -> tuple[str | None, JsonObject | None]:
    """Write a clean document, journal included, and keep damaged files beside it.

    Returns the damage, and the gaps that are known from now on. Raises `DamagedError` if it must not be written.
    """

    def iter_chunks() -> Iterator[bytes]:
        head = make_current_head(reader.head, reader.session)
        head["metadata"].pop(LAST_MESSAGE, None)
        head["metadata"][CONTAINED] = reader.compute_journal_checksum()
        yield from reader.iter_document(head)
        refuse_read_only(reader, paths[0])
        if reader.damage:
            _refuse_unreadable(reader, paths)
            keep_copies(paths, clock)
        elif reader.is_original and paths[0].is_file():
            keep_copies(paths, clock, "original")

    replace_file(paths[0], iter_chunks())
    damage, missing = reader.damage, reader.missing.describe_known() if reader.report.missing else None
    paths[1].unlink(missing_ok=True)
    return damage, missing


def refuse_read_only(reader: SessionReader, document: Path) -> None:
    if reader.read_only:
        limit, fix = "cannot be opened", "Put a regular file in its place, or remove it with `ollm sessions delete`."
        if document.is_file() and not document.is_symlink():
            limit, fix = "can be viewed but not continued", "Save what is readable with `ollm sessions export`."
        raise DamagedError(
            f"{document} {limit}: {reader.read_only}. The file was left as it is.",
            action=f"{fix} `ollm --new` starts a new session.",
        )


def _refuse_unreadable(reader: SessionReader, paths: Paths) -> None:
    """Raise DamagedError if no message is readable, leaving nothing to continue from. The files stay unchanged."""
    if not reader.missing.message_count and not reader.partial:
        file = next(path for path in paths if path.exists())
        raise DamagedError(
            f"{file} cannot be resumed: no message in it can be read ({reader.damage}). The file was left as it is.",
            action="Restore it from a backup, or start a new session with `ollm chat --new`.",
        )


def make_current_head(head: JsonObject, session: Session) -> JsonObject:
    """Make the head in the format of this version."""
    known: JsonObject = msgspec.to_builtins(session.metadata)
    held = {n: v for n, v in head.get("metadata", {}).items() if n not in known or document.fits_metadata(n, v)}
    metadata = {**known, **held, "schemaVersion": SCHEMA_VERSION}
    return {**document.complete_head(head, session), "metadata": metadata}


def _finish_interrupted(writer: SessionWriter, loaded: LoadedSession, clock: Clock) -> LoadedSession:
    """Record as interrupted what the crash left open, and return the session with it."""
    session, at = loaded.session, format_stamp(clock())
    if loaded.partial:
        writer.record_message(at, session.messages[-1], 0)
    calls = [mark_interrupted(call) if call.status == "running" else call for call in session.tool_calls]
    changed = [call for call, before in zip(calls, session.tool_calls, strict=True) if call is not before]
    asker, open_calls = _find_open_calls(session)
    known = {call.id for call in calls}
    unrecorded = [  # Only the ids of calls that never started are known.
        mark_interrupted(ToolCallRecord(id=call_id, name="unknown", args={}, timestamp=at, message_id=asker))
        for call_id in open_calls
        if call_id not in known
    ]
    for call in (*changed, *unrecorded):
        writer.record_call(at, msgspec.to_builtins(call), 0)
    calls += unrecorded
    results = [
        Message(role="tool", parts=(ToolResultPart(id=call_id),), timestamp=at, id=number)
        for number, call_id in enumerate(open_calls, start=writer.last_number + 1)
    ]
    for message in results:
        writer.record_message(at, message, 0)
    whole = msgspec.structs.replace(session, messages=(*session.messages, *results), tool_calls=tuple(calls))
    return msgspec.structs.replace(loaded, session=whole, partial=[])


def _find_open_calls(session: Session) -> tuple[int, list[str]]:
    """Find the last message that requested calls: its number, and its calls that no tool message answers."""
    answered: set[str] = set()
    for message in reversed(session.messages):
        if message.role == "tool":
            answered.update(message.call_ids)
        elif message.role == "assistant" and message.call_ids:
            return message.id, [call_id for call_id in message.call_ids if call_id not in answered]
        else:
            break
    return 0, []
