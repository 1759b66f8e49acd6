"""Contents of session files for the index: the line of a list, and the texts to search."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ollm.domain.messages import Message
from ollm.domain.session import Session
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files import SessionWriter
from ollm.store.session_files.files import DamageFoundError, DamageReport, get_file_time
from ollm.store.session_files.loading import (
    CHECK_EVERY_ENTRIES,
    make_partial_message,
    make_session,
    read_calls,
    read_messages,
)
from ollm.store.session_files.reader import SessionPart, SessionReader
from ollm.store.session_index.stamps import Stamp
from ollm.store.session_index.texts import UNDER_WAY, EntryIndexer, IndexEntry

MAX_TEXT_CHARS = 200_000
UNREAD_TITLE = "(not read yet)"


class SessionRow(NamedTuple):
    """Line of a list."""

    start_time: str
    last_activity: str
    model: str
    message_count: int
    partial: int  # 1 while an answer is under way
    token_count: int
    title: str
    workspace: str | None
    archived: int
    origin: str | None
    damaged: str | None
    last_number: int


def read_changes(stamp: Stamp, session_id: str, row: dict[str, Any] | None, take: EntryIndexer | None) -> SessionRow:
    """Read the end of a session if only its journal has grown since the `row` was written, otherwise everything."""
    known = row and not row["damaged"] and ((take and row["text_stamp"]) or row["stamp"])
    if row and known and stamp.has_only_grown_since(known):
        before = SessionRow(*(row[name] for name in SessionRow._fields))
        number, calls = take.last_numbers if take else (before.last_number, 0)
        part = SessionPart(number) if row["text_stamp"] or not take else SessionPart(number, calls_after=calls - 1)
        with contextlib.suppress(DamageFoundError), _open_reader(stamp.directory, session_id, part) as reader:
            settled = row["stamp"] == stamp.text
            line = _read_entries(reader, session_id, take, before, settled) if reader.narrowed else None
            if line and line.last_number >= before.last_number:
                return line
    return read_session(stamp.directory, session_id, take)


def read_session(directory: Path, session_id: str, take: EntryIndexer | None = None) -> SessionRow:
    """The line of a session, everything read and checked; each entry is handed to `take`."""
    with _open_reader(directory, session_id) as reader:
        reader.damage.extend_time(take.seconds if take else 0)
        return _read_entries(reader, session_id, take)


def _open_reader(
    directory: Path, session_id: str, part: SessionPart | None = None
) -> contextlib.closing[SessionReader]:
    paths = directory / f"{session_id}.json", directory / f"{session_id}.journal"
    return contextlib.closing(SessionReader(*paths, damage=DamageReport(strict=part is not None), part=part))


def _read_entries(
    reader: SessionReader,
    session_id: str,
    take: EntryIndexer | None,
    before: SessionRow | None = None,
    settled: bool = False,
) -> SessionRow:
    """Hand every entry to `take`, and count the messages after those that `before` counts, or are `settled` by it."""
    count, known, last = (before.message_count, before.last_number, 0) if before else (0, -1, 0)
    for position, (message, _, _) in enumerate(read_messages(reader), 1):
        count, last = count + (message.id > known), max(last, message.id)
        if take:
            take(make_message_entry(message))
            if take.late and before and settled:
                return before
            if position % CHECK_EVERY_ENTRIES == 0:
                take.report_progress(reader.read)
    if take and reader.partial:
        take(make_message_entry(make_partial_message(reader, last + 1))._replace(call=UNDER_WAY))
    for call, _, _ in read_calls(reader):  # without `take` for what is wrong with them
        if take and (entry := make_call_entry(call, whole=True)):
            take(entry)
    described = make_session(reader.head, session_id, reader.written_at)
    partial, damage = int(bool(reader.partial)), reader.damage.text
    return _make_row(described, count, last)._replace(partial=partial, damaged=damage)


def make_unreadable_row(document: Path, session_id: str, why: str) -> SessionRow:
    """The line of a session whose files may not be read."""
    return _make_row(make_session({}, session_id, get_file_time(document)), 0, 0)._replace(damaged=why)


def make_unread_row(stamp: Stamp, session_id: str) -> dict[str, Any]:
    """Make a list line for a session that was not read yet."""
    line = make_unreadable_row(stamp.directory / f"{session_id}.json", session_id, "")
    return line._replace(damaged=None, title=UNREAD_TITLE)._asdict() | {"session_id": session_id, "stamp": ""}


def make_writer_row(writer: SessionWriter) -> SessionRow:
    """The line of a session as its writer knows it."""
    described = make_session(writer.head, writer.session_id, datetime.now(UTC))
    return _make_row(described, writer.message_count, writer.last_number)


def _make_row(session: Session, count: int, last: int) -> SessionRow:
    metadata = session.metadata
    return SessionRow(
        start_time=session.start_time,
        last_activity=session.last_activity,
        model=session.model,
        message_count=count,
        partial=0,
        token_count=metadata.token_count,
        title=metadata.title,
        workspace=metadata.workspace,
        archived=int(metadata.workspace_state.get("status") == "archived"),
        origin=metadata.origin,
        damaged=None,
        last_number=last,
    )


def make_message_entry(message: Message) -> IndexEntry:
    said = "\n".join(text for text in (message.text, message.thinking) if text)
    return IndexEntry(message.id, message.role, message.timestamp, None, said[:MAX_TEXT_CHARS])


def make_call_entry(call: ToolCallRecord | None, *, whole: bool = False) -> IndexEntry | None:
    """Make the entry of a finished call; `whole`: with the output that the model was not shown."""
    if call is None or call.status == "running":
        return None
    arguments = "\n".join(value for value in call.args.values() if isinstance(value, str))
    result = call.result.llm_content if call.result else ""
    if whole and call.result and call.result.full_output is not None:
        result = call.result.full_output
    return IndexEntry(
        call.message_id, "tool", call.timestamp, call.id, f"{call.name} {arguments}\n{result}"[:MAX_TEXT_CHARS]
    )
