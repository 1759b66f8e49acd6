"""Read session files for the index: the rows of a list, and the texts to search. Remove them again, without a trace.

FTS5 keeps the words of deleted texts until it merges their segments, so deleting for good ends with `optimize`.
"""

from __future__ import annotations

import contextlib
import math
import time
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ollm.domain.errors import StorageError
from ollm.domain.messages import Message
from ollm.domain.session import Session
from ollm.domain.tools import ToolCallRecord
from ollm.store.database import run_transaction
from ollm.store.session_files.document import make_session
from ollm.store.session_files.files import get_file_time
from ollm.store.session_files.journal import read_call_number
from ollm.store.session_files.reader import SessionReader
from ollm.store.session_files.waypoints import MIN_KNOWN_BYTES, KnownState, SessionPart
from ollm.store.session_index.stamps import Progress, Stamp, make_batches
from ollm.store.session_index.words import ROLES, make_index_text, make_session_mark, pack_text, unpack_text

if TYPE_CHECKING:
    import sqlite3

LARGE_SECONDS = 3.0
MIN_WORK_SECONDS = 0.2
STEP_TEXTS = 500
CHECK_EVERY_ENTRIES = 1024  # Progress is reported after so many.

MAX_TITLE_CHARS = 80  # Other programs write sessions without a title.
QUOTING_TOOLS = frozenset({"recall"})  # Their results repeat what is indexed already.
UNREAD_TITLE = "(not read yet)"
UNDER_WAY = ""  # It stands for the id of a call, for an unfinished answer.
Row = dict[str, Any]


class IndexWork(NamedTuple):
    """The part of an index that its updates use. Sessions that were not read, or only in part, are noted."""

    connection: sqlite3.Connection
    unread: dict[str, int]
    behind: set[str]


class IndexEntry(NamedTuple):
    """One searchable entry: a message, or a call with its result (`call` is its id, `number` the message with it).

    `call` is `UNDER_WAY` for an unfinished answer, which will be read again.
    """

    number: int
    role: str
    timestamp: str
    call: str | None
    text: str


class EntryIndexer:
    """Indexer of a session's new entries: each message and call once.

    With `seconds` it stops after that much work and is `late`; the next one continues after message `taken`. With
    `step` it commits after that many texts, so that other processes can write in between. It also stops if one of them
    indexed the same session meanwhile.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        row: dict[str, Any],
        seconds: float | None = None,
        look: Callable[[int], None] = lambda _read: None,
        step: int = 0,
    ) -> None:
        self._connection = connection
        self._step = step
        self._added = 0
        self.report_progress = look
        self._session = row["id"]
        self._number = self.taken = row["text_number"]
        self._began_late = not row["text_stamp"]  # Time ran out before all calls were indexed.
        self._until = time.process_time() + (math.inf if seconds is None else seconds)
        self.late = False
        query = "SELECT call, number FROM entries WHERE session = ? AND call > ?"
        self._calls = set(map(tuple, connection.execute(query, (self._session, UNDER_WAY))))
        query = "SELECT id FROM entries WHERE session = ? AND call = ?"
        forget_rows(connection, connection.execute(query, (self._session, UNDER_WAY)).fetchall())

    @property
    def last_number(self) -> int:
        """The number of the last message that is indexed with all its calls, as far as that is known."""
        found: int = self._number
        if self._began_late:
            query = "SELECT max(number) FROM entries WHERE session = ? AND call > ?"
            (last,) = self._connection.execute(query, (self._session, UNDER_WAY)).fetchone()
            found = min(found, (last or 0) - 1)
        return found

    def __call__(self, entry: IndexEntry) -> None:
        if not entry.text or ((entry.call, entry.number) in self._calls if entry.call else entry.number <= self.taken):
            return
        if self.late or time.process_time() > self._until:
            self.late = True
            return
        if entry.call:
            self._calls.add((entry.call, entry.number))
        elif entry.call is None:
            self.taken = entry.number
        query = "INSERT INTO entries(session, number, role, at, call, text) VALUES (?, ?, ?, ?, ?, ?)"
        values = (ROLES.index(entry.role), entry.timestamp, entry.call, pack_text(entry.text))
        row = self._connection.execute(query, (self._session, entry.number, *values)).lastrowid
        words = make_index_text(entry.text, entry.role, self._session)
        self._connection.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", (row, words))
        self._added += 1
        if self._step and self._added % self._step == 0:
            self._commit()

    def _commit(self) -> None:
        query = "UPDATE sessions SET text_stamp = '', text_number = ? WHERE id = ?"
        self._connection.execute(query, (self.taken, self._session))
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")
        query = "SELECT text_number, text_stamp FROM sessions WHERE id = ?"
        number, stamp = self._connection.execute(query, (self._session,)).fetchone() or (0, "")
        self.late = (number, stamp) != (self.taken, "")
        self.taken = number


def forget_rows(connection: sqlite3.Connection, rows: list[tuple[int]]) -> None:
    """Remove these texts and their words."""
    for row in rows:
        found = connection.execute("SELECT session, role, text FROM entries WHERE id = ?", row).fetchone()
        if found:
            session, role, text = found
            words = make_index_text(unpack_text(text), ROLES[role], session)
            connection.execute("INSERT INTO words(words, rowid, text) VALUES ('delete', ?, ?)", (*row, words))
            connection.execute("DELETE FROM entries WHERE id = ?", row)
            connection.execute("DELETE FROM vectors WHERE entry = ?", row)


def erase_rows(
    connection: sqlite3.Connection, ids: Sequence[str], progress: Progress | None = None, *, for_good: bool = True
) -> None:
    """Remove rows, texts and words of these sessions. With `for_good` no byte of them stays in the file."""

    with run_transaction(connection):
        for done, name in enumerate(ids, start=1):
            for (session,) in connection.execute("SELECT id FROM sessions WHERE session_id = ?", (name,)).fetchall():
                forget_rows(connection, _find_texts(connection, session))
                connection.execute("DELETE FROM sessions WHERE id = ?", (session,))
            if progress:
                progress(done, len(ids))
        if for_good:
            connection.execute("INSERT INTO words(words) VALUES ('optimize')")


def holds_most(connection: sqlite3.Connection, ids: set[str]) -> bool:
    """Return True if most of the index belongs to these sessions, so that rebuilding it is faster."""
    counted = dict(connection.execute("SELECT session_id, message_count FROM sessions"))
    going = sum(count or 0 for name, count in counted.items() if name in ids)
    return bool(counted.keys() & ids) and 2 * going > sum(count or 0 for count in counted.values())


def _find_texts(connection: sqlite3.Connection, session: int) -> list[tuple[int]]:
    query = "SELECT rowid FROM words WHERE words MATCH ?"
    return connection.execute(query, (f'"{make_session_mark(session)}"',)).fetchall()


def load_rows(connection: sqlite3.Connection, only: str | None = None) -> dict[str, Row]:
    where = " WHERE session_id = ?" if only else ""
    rows = connection.execute(f"SELECT * FROM sessions{where}", (only,) if only else ())  # noqa: S608
    return {row["session_id"]: dict(row) for row in rows}


def refresh_rows(
    index: IndexWork, found: dict[str, Stamp], progress: Progress | None, *, text: bool, until: float = math.inf
) -> dict[str, Row]:
    """Bring the rows up to date, and with `text` the words. After the time `until` no further session is read."""
    rows = load_rows(index.connection)
    if gone := [session_id for session_id in rows if session_id not in found]:  # Their files were removed.
        erase_rows(index.connection, gone)
    known = "text_stamp" if text else "stamp"
    changed = [name for name, stamp in found.items() if name not in rows or rows[name][known] != stamp.text]
    changed.sort(key=lambda name: (found[name].is_large, found[name].newest_time))
    total, done = sum(found[name].size for name in changed), 0
    large_until = time.process_time() + LARGE_SECONDS  # All large ones together get a few seconds.

    def report(read: int) -> None:
        if progress:
            progress(min(done + read, total), total)

    def make_indexer(row: Row) -> EntryIndexer:
        left = max(MIN_WORK_SECONDS, large_until - time.process_time())
        return EntryIndexer(index.connection, row, left if found[row["session_id"]].is_large else None, report)

    def update(batch: list[str]) -> dict[str, Row]:
        return {name: update_row(index, name, found[name], make_indexer if text else None) for name in batch}

    index.unread.clear()
    for batch in make_batches(changed, found):
        if time.monotonic() > until:
            index.unread.update({name: found[name].size for name in batch})
            rows |= {name: make_unread_row(found[name], name) for name in batch}
        else:
            with run_transaction(index.connection):
                rows |= update(batch)
            done += sum(found[name].size for name in batch)
            report(0)
    return {session_id: rows[session_id] for session_id in found if session_id in rows}


def refresh_text(index: IndexWork, session_id: str, stamp: Stamp, seconds: float) -> None:
    """Bring the words of one session up to date, in short transactions."""

    def make_indexer(row: Row) -> EntryIndexer:
        return EntryIndexer(index.connection, row, seconds, step=STEP_TEXTS)

    row = load_rows(index.connection, session_id).get(session_id)
    if not (row and row["text_stamp"] == stamp.text):
        with run_transaction(index.connection):
            update_row(index, session_id, stamp, make_indexer)


def update_row(
    index: IndexWork,
    session_id: str,
    stamp: Stamp,
    make_indexer: Callable[[Row], EntryIndexer] | None = None,
) -> Row:
    """Read new content of one session and write its row, unless another process has done so in the meantime."""
    row = load_rows(index.connection, session_id).get(session_id)
    if row and row["text_stamp" if make_indexer else "stamp"] == stamp.text:
        return row
    values: Row = dict(row or {"session_id": session_id, "text_stamp": "", "text_number": 0})
    if "id" not in values:
        query = "INSERT INTO sessions(session_id, stamp) VALUES (?, '')"
        values["id"] = index.connection.execute(query, (session_id,)).lastrowid
    try:
        if make_indexer:
            values |= _read_text(index, stamp, row, values, make_indexer)
        else:
            values |= read_changes(stamp, session_id, row, None)
        values["stamp"] = stamp.text
    except (StorageError, TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
        # damage that nobody has thought of costs the other sessions nothing; it is tried again the next time
        why = f"it cannot be read ({type(error).__name__}: {error})"
        if isinstance(error, StorageError):
            why = error.message.rstrip(".")
        values |= _make_unreadable_row(stamp, session_id) | {"damaged": why, "stamp": ""}
    columns = [name for name in values if name not in ("id", "session_id")]
    query = f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?"  # noqa: S608
    index.connection.execute(query, [*(values[name] for name in columns), values["id"]])
    return values


def _read_text(
    index: IndexWork, stamp: Stamp, row: Row | None, values: Row, make_indexer: Callable[[Row], EntryIndexer]
) -> Row:
    """Index the new words of a session, and return its row and how far it was read."""
    session_id = values["session_id"]
    take = make_indexer(values)
    found = read_changes(stamp, session_id, row, take)
    if found["last_number"] < values["text_number"]:  # The words are another session's: read it from the start.
        forget_rows(index.connection, _find_texts(index.connection, values["id"]))
        take = make_indexer({**values, "text_number": 0})
        found = read_changes(stamp, session_id, None, take)
    if take.late:
        index.behind.add(session_id)
        return found | {"text_stamp": "", "text_number": take.taken}
    index.behind.discard(session_id)
    return found | {"text_stamp": stamp.text, "text_number": found["last_number"]}


def read_changes(stamp: Stamp, session_id: str, row: Row | None, take: EntryIndexer | None) -> Row:
    """Read the end of a session if only its journal has grown since the `row` was written, otherwise everything."""
    known = unpack_known(row["known"]) if row and not row["damaged"] else None
    if row and known:
        part = SessionPart(known, take.last_number if take else row["last_number"], 1)
        with _open_reader(stamp, session_id, part) as reader:
            settled = row["stamp"] == stamp.text
            read = _read_entries(reader, take, row, settled) if reader.known else None
            if read and not reader.damage and read["last_number"] >= row["last_number"]:
                return read
    with _open_reader(stamp, session_id) as reader:
        return _read_entries(reader, take)


def _open_reader(stamp: Stamp, session_id: str, part: SessionPart | None = None) -> contextlib.closing[SessionReader]:
    paths = stamp.directory / f"{session_id}.json", stamp.directory / f"{session_id}.journal"
    return contextlib.closing(SessionReader(*paths, part=part))


def _read_entries(
    reader: SessionReader,
    take: EntryIndexer | None,
    before: Row | None = None,
    settled: bool = False,
) -> Row:
    """Pass entries to `take` and count messages new since `before`; return a `settled` `before` if time runs out."""
    count, known, last = (before["message_count"], before["last_number"], 0) if before else (0, -1, 0)
    first = before["title"] if before else ""
    for position, message in enumerate(reader.iter_messages(), 1):
        if message is reader.unfinished:
            if take:
                take(make_message_entry(message)._replace(call=UNDER_WAY))
            break
        count, last = count + (message.id > known), max(last, message.id)
        first = first or (message.text.strip().partition("\n")[0][:MAX_TITLE_CHARS] if message.role == "user" else "")
        if take:
            take(make_message_entry(message))
            if take.late and before and settled:
                return before
            if position % CHECK_EVERY_ENTRIES == 0:
                take.report_progress(reader.read)
    calls = reader.known.calls if reader.known else 0
    for call in reader.iter_calls():
        calls = max(calls, read_call_number(call.id))
        if take and (entry := make_call_entry(call, whole=True)):
            take(entry)
    row = _make_row(reader.session, count, last)
    partial, damage = int(bool(reader.partial)), reader.damage
    noted = reader.make_known(last, calls) if reader.report.size >= MIN_KNOWN_BYTES else None
    packed = zlib.compress(msgspec.json.encode(noted), 1) if noted else None
    return row | {"partial": partial, "damaged": damage, "title": row["title"] or first, "known": packed}


def unpack_known(stored: bytes | None) -> KnownState | None:
    with contextlib.suppress(msgspec.MsgspecError, zlib.error):
        return msgspec.json.decode(zlib.decompress(stored), type=KnownState) if stored else None
    return None


def _make_unreadable_row(stamp: Stamp, session_id: str) -> Row:
    written_at = get_file_time(stamp.directory / f"{session_id}.json")
    return _make_row(make_session({}, session_id, written_at), 0, 0)


def make_unread_row(stamp: Stamp, session_id: str) -> Row:
    """Make a list row for a session that was not read yet."""
    return _make_unreadable_row(stamp, session_id) | {"title": UNREAD_TITLE, "session_id": session_id, "stamp": ""}


def _make_row(session: Session, count: int, last: int) -> Row:
    """Make the row of a list of sessions. `partial` is 1 while an answer is under way."""
    metadata, parent = session.metadata, session.metadata.parent
    return {
        "start_time": session.start_time,
        "last_activity": session.last_activity,
        "model": session.model,
        "message_count": count,
        "partial": 0,
        "token_count": metadata.token_count,
        "title": metadata.title,
        "workspace": metadata.workspace,
        "archived": int(metadata.workspace_state.get("status") == "archived"),
        "origin": metadata.origin,
        "damaged": None,
        "last_number": last,
        "parent": parent.session_id if parent else None,
        "parent_message": (parent.message_id or None) if parent else None,
    }


def make_message_entry(message: Message) -> IndexEntry:
    said = "\n".join(text for text in (message.text, message.thinking) if text)
    return IndexEntry(message.id, message.role, message.timestamp, None, said)


def make_call_entry(call: ToolCallRecord | None, *, whole: bool = False) -> IndexEntry | None:
    """Make the entry of a finished call; `whole` includes the output that the model was not shown. A call that quotes
    the session has none."""
    if call is None or call.status == "running" or call.name in QUOTING_TOOLS:
        return None
    arguments = "\n".join(value for value in call.args.values() if isinstance(value, str))
    result = call.result.llm_content if call.result else ""
    if whole and call.result and call.result.full_output is not None:
        result = call.result.full_output
    return IndexEntry(call.message_id, "tool", call.timestamp, call.id, f"{call.name} {arguments}\n{result}")
