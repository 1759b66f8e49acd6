"""Contents of session files for the index: the line of a list, and the texts to search."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ollm.domain.messages import JsonObject, Message
from ollm.domain.session import Session
from ollm.domain.tools import ToolCallRecord
from ollm.store.session_files import SessionWriter
from ollm.store.session_files.files import DamageFoundError, StrictDamageReport
from ollm.store.session_files.loading import (
    CHECK_EVERY_ENTRIES,
    get_file_time,
    make_partial_message,
    make_session,
    read_calls,
    read_messages,
)
from ollm.store.session_files.reader import SessionReader
from ollm.store.session_index.stamps import Stamp
from ollm.store.session_index.texts import UNDER_WAY, EntryIndexer, IndexEntry

MAX_TEXT_CHARS = 200_000
UNREAD_TITLE = "(not read yet)"


class EntrySink(Protocol):
    """Is handed every entry, and may work on them for so many `seconds` in all."""

    seconds: float
    late: bool

    def __call__(self, entry: IndexEntry) -> None: ...

    def report_progress(self, read: int) -> None:
        """Is told now and then how many bytes were gone through."""


class SessionRow(NamedTuple):
    """Line of a list, with the place up to which the journal has been read."""

    journal_read: int
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


def read_changes(stamp: Stamp, session_id: str, row: dict[str, Any] | None, taker: EntryIndexer | None) -> SessionRow:
    """The tail of the journal when that is all that changed since the `row` was written, otherwise everything."""
    listed = row and row["stamp"] == stamp.text and not row["text_stamp"] and not row["damaged"]
    if row and taker and listed and read_further(stamp.directory, session_id, taker.last_numbers, taker):
        return _take_row(row)  # listed, or searched in part: only what follows was new
    if row and stamp.journal and stamp.has_only_grown_since(row["text_stamp" if taker else "stamp"]):
        before = _take_row(row)
        if taker:
            before = before._replace(journal_read=row["text_read"], last_number=row["text_number"])
            if row["text_stamp"] != row["stamp"]:
                return read_session(stamp.directory, session_id, taker)
        if line := read_journal_tail(stamp.directory / f"{session_id}.journal", before, taker):
            return line
    return read_session(stamp.directory, session_id, taker)


def _take_row(row: dict[str, Any]) -> SessionRow:
    return SessionRow(*(row[name] for name in SessionRow._fields))


def read_session(directory: Path, session_id: str, take: EntrySink | None = None) -> SessionRow:
    """The line of a session, everything read and checked; each entry is handed to `take`."""
    document, journal_path = directory / f"{session_id}.json", directory / f"{session_id}.journal"
    with contextlib.closing(SessionReader(document, journal_path)) as reader:
        reader.damage.extend_time(take.seconds if take else 0)
        count = last = 0
        for message, _, _ in read_messages(reader):
            count, last = count + 1, max(last, message.id)
            if take:
                take(make_message_entry(message))
                if count % CHECK_EVERY_ENTRIES == 0:
                    take.report_progress(reader.progress[0])
        if take:
            read = _take_rest(reader, last, take)
        else:
            read = _find_settled(reader)
            for _ in read_calls(reader):
                pass  # for what is wrong with them
        described = make_session(reader.head, session_id, get_file_time(document, journal_path))
        partial, damage = int(bool(reader.partial)), reader.damage.text
        return _make_row(described, count, last)._replace(journal_read=read, partial=partial, damaged=damage)


def make_unreadable_row(document: Path, session_id: str, why: str) -> SessionRow:
    """The line of a session whose files may not be read."""
    return _make_row(make_session({}, session_id, get_file_time(document)), 0, 0)._replace(damaged=why)


def make_unread_row(stamp: Stamp, session_id: str) -> dict[str, Any]:
    """Make a list line for a session that was not read yet."""
    line = make_unreadable_row(stamp.directory / f"{session_id}.json", session_id, "")
    return line._replace(damaged=None, title=UNREAD_TITLE)._asdict() | {"session_id": session_id, "stamp": ""}


def read_further(directory: Path, session_id: str, taken: tuple[int, int], take: EntrySink) -> bool:
    """Hand over what follows the messages up to one number, and the calls of messages from another on.

    False when that cannot be found without reading all of it.
    """
    paths = directory / f"{session_id}.json", directory / f"{session_id}.journal"
    with contextlib.closing(SessionReader(*paths)) as reader:
        if not reader.continue_after(*taken):
            return False
        last = taken[0]
        for message, _, _ in read_messages(reader):
            last = max(last, message.id)
            take(make_message_entry(message))
            if take.late:
                return True
        _take_rest(reader, last, take)
    return True


def _take_rest(reader: SessionReader, last: int, take: EntrySink) -> int:
    """Hand over the answer under way and the calls; returns the place in the journal to read on from."""
    settled = _find_settled(reader)
    if reader.partial:
        take(make_message_entry(make_partial_message(reader, last + 1))._replace(call=UNDER_WAY))
    for call, _, _ in read_calls(reader):
        if entry := make_call_entry(call, whole=True):
            take(entry)
        elif begun := reader.find_call_start(call.id):
            settled = min(settled, begun)
    return settled


def _find_settled(reader: SessionReader) -> int:
    return reader.partial_start if reader.partial else reader.journal_good


def make_writer_row(writer: SessionWriter) -> SessionRow:
    """The line of a session as its writer knows it, with nothing left in the journal to read."""
    described = make_session(writer.head, writer.session_id, datetime.now(UTC))
    return _make_row(described, writer.message_count, writer.last_number)._replace(journal_read=writer.journal_size)


def _make_row(session: Session, count: int, last: int) -> SessionRow:
    metadata = session.metadata
    return SessionRow(
        journal_read=0,
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


def read_journal_tail(journal_path: Path, line: SessionRow, take: EntrySink | None = None) -> SessionRow | None:
    """The line with what the journal says since it was last read; None if everything must be read again."""
    head: JsonObject = {"lastActivity": line.last_activity, "model": line.model, "metadata": {}}
    try:
        tail = SessionReader(None, journal_path, damage=StrictDamageReport(), begin=line.journal_read, head=head)
        with contextlib.closing(tail) as reader:
            return _read_tail(reader, line, take) if reader.damage.size >= line.journal_read else None  # else folded
    except DamageFoundError:
        return None


def _read_tail(reader: SessionReader, line: SessionRow, take: EntrySink | None) -> SessionRow | None:
    count, number = line.message_count, line.last_number
    for message, _, _ in read_messages(reader):
        if message.id != number + 1:
            return None
        count, number = count + 1, message.id
        if take:
            take(make_message_entry(message))
    read = _take_rest(reader, number, take) if take else _find_settled(reader)
    metadata: dict[str, Any] = reader.head["metadata"]
    state = metadata.get("workspaceState")
    return line._replace(
        journal_read=read,
        last_activity=reader.head["lastActivity"],
        model=reader.head["model"],
        message_count=count,
        partial=int(bool(reader.partial)),
        token_count=int(metadata.get("tokenCount", line.token_count)),
        title=str(metadata.get("title", line.title)),
        workspace=metadata.get("workspace", line.workspace),
        archived=int(state.get("status") == "archived") if isinstance(state, dict) else line.archived,
        last_number=number,
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
