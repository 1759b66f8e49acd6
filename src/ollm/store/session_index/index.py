"""Keeps the index in step with the files: looks at every file's stamp and reads only what changed."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ollm.domain.errors import StorageError
from ollm.store.session_index.stamps import Stamp, make_batches, read_stamp, read_stamps

if TYPE_CHECKING:
    import sqlite3

    from ollm.store.session_index.entries import SessionRow
    from ollm.store.session_index.texts import EntryIndexer

Progress = Callable[[int, int], None]  # bytes gone through, and all there are
LIST_COLUMNS = (
    "session_id, stamp, start_time, last_activity, model, message_count, partial, token_count, title, workspace, "
    "archived, damaged, origin"
)
Row = tuple[Any, ...]
LARGE_SECONDS = 3.0
MIN_WORK_SECONDS = 0.2
STEP_TEXTS = 500
SCRUB_SECONDS = 0.3  # of merging while somebody waits for something else
ERASE_MILLISECONDS = 10_000  # to wait for others


class SessionIndex:
    """The list and the words of all sessions. Reading it changes no session file; losing it loses nothing."""

    def __init__(self, path: Path, directories: Iterable[Path | None]) -> None:
        self.path = path
        self.directories = tuple(directories)
        self._connection: sqlite3.Connection | None = None
        self.in_file = False
        self._identity: tuple[int, int] | None = None  # of the file that is open
        self._large_until = 0.0
        self._read_until = math.inf
        self.unread: dict[str, int] = {}  # sessions the last list had no time for, and their bytes
        self._look: Callable[[int], None] = lambda _read: None
        self.behind: set[str] = set()  # large sessions whose words were read in part; the next search reads on

    @property
    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            from ollm.store.session_index import database

            self._connection, self.in_file = database.connect(self.path)
            self._identity = database.get_identity(self.path) if self.in_file else None
        return self._connection

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def list_sessions(
        self, progress: Progress | None = None, seconds: float | None = None, *, tasks: bool = False
    ) -> list[dict[str, Any]]:
        """Every session as a list shows it, last active first, those of `tasks` only when wanted; a broken index
        is rebuilt on the way. After so many `seconds` no other session is read: those left are in `unread`, and listed
        by their files' times."""
        found, locked = read_stamps(self.directories)
        self._read_until = time.monotonic() + seconds if seconds else math.inf
        rows: list[Row] = self.run_guarded(lambda: self._load_current_rows(found, progress))
        self._read_until = math.inf
        active = {session_id for session_id in locked if session_id in found and self._is_owned(session_id)}
        shown = [_make_summary(row, row[0] in active) for row in rows]
        if not tasks:
            shown = [row for row in shown if row["origin"] != "task"]
        return sorted(shown, key=lambda row: row["lastActivity"] or "", reverse=True)

    def _load_current_rows(self, found: dict[str, Stamp], progress: Progress | None) -> list[Row]:
        """Load the list lines of all sessions, after reading those that changed."""
        for _ in range(2):
            rows: list[Row] = self.connection.execute(f"SELECT {LIST_COLUMNS} FROM sessions").fetchall()  # noqa: S608
            known = {row[0]: row[1] for row in rows}
            if known.keys() == found.keys() and all(known[name] == stamp.text for name, stamp in found.items()):
                return rows
            refreshed = self._refresh(found, progress, text=False)
        return [tuple(row[name] for name in LIST_COLUMNS.split(", ")) for row in refreshed.values()]

    def refresh_text(self, progress: Progress | None = None) -> None:
        """Bring the words up to date, reading the unread part of changed sessions."""
        found, _ = read_stamps(self.directories)
        self.run_guarded(lambda: self._is_current(found) or self._refresh(found, progress, text=True))

    def refresh_session_text(self, session_id: str, seconds: float) -> None:
        """Bring the words of one session up to date, in short transactions. If that takes longer, the session is in
        `behind` afterwards and the next time goes on."""

        def work() -> None:
            stamp, row = read_stamp(self.directories, session_id), self._load_rows(session_id).get(session_id)
            if stamp and not (row and row["text_stamp"] == stamp.text):
                self._run_transaction(partial(self._update_row, session_id, stamp, text=True, seconds=seconds))

        self.run_guarded(work)

    def _is_current(self, found: dict[str, Stamp]) -> bool:
        known = dict(self.connection.execute("SELECT session_id, text_stamp FROM sessions"))
        return known.keys() == found.keys() and all(known[name] == stamp.text for name, stamp in found.items())

    def update_session(self, session_id: str, line: SessionRow | None = None) -> None:
        """One session's row: as its writer knows it (`line`), or read again. An index that is busy is left alone."""
        import sqlite3

        with contextlib.suppress(sqlite3.Error, OSError):
            found = read_stamp(self.directories, session_id)
            if found:
                self._run_transaction(partial(self._update_row, session_id, found, text=False, line=line))

    def get_counts(self, session_id: str, least_bytes: int) -> tuple[int, int] | None:
        """Return the number of messages of a session and the number of the last, from when all of it was found whole.

        None when the document is smaller than `least_bytes`, has changed since, or nothing is known.
        """
        stamp = read_stamp(self.directories, session_id)
        if stamp is None or stamp.document is None or stamp.document[1] < least_bytes:
            return None
        import sqlite3

        try:
            row = self._load_rows(session_id).get(session_id)
        except (sqlite3.Error, OSError):
            return None
        if row is None or row["damaged"] or row["stamp"].partition("|")[0] != stamp.document_text:
            return None
        return int(row["message_count"]), int(row["last_number"])

    def erase(self, session_id: str) -> None:
        """Take a session out, so that no byte of it stays in the file."""
        self.erase_all([session_id])

    def erase_all(self, ids: list[str], progress: Progress | None = None, seconds: float | None = None) -> None:
        """Take sessions out for good. With `seconds` the last of it may wait for another time."""
        from ollm.store.session_index import database
        from ollm.store.session_index.texts import erase_rows, holds_most, scrub

        def work() -> None:
            self.connection.execute(f"PRAGMA busy_timeout = {ERASE_MILLISECONDS}")
            if holds_most(self.connection, set(ids)):
                self.close()
                database.remove_index(self.path)
                return
            erase_rows(self.connection, ids, progress)
            scrub(self.connection, progress, seconds)

        self.run_guarded(work)
        if self._connection and not self.in_file and self.path.exists():
            self._remove_file()

    def _remove_file(self) -> None:
        """An index that is locked or of a newer version cannot be changed, but done without: it is rebuilt."""
        from ollm.store.session_index import database

        try:
            database.remove_index(self.path)
        except OSError as error:
            raise StorageError(
                f"Cannot change {self.path}.", action="Delete it; it will be rebuilt from the sessions."
            ) from error

    def forget(self, session_id: str) -> None:
        """Take a session out of lists and searches; what was said in it may stay in the file until something is
        erased."""
        from ollm.store.session_index.texts import erase_rows

        self.run_guarded(lambda: erase_rows(self.connection, [session_id]))

    def _is_owned(self, session_id: str) -> bool:
        from ollm.system.locks import read_owner

        return any(read_owner(directory / f"{session_id}.lock") for directory in self.directories if directory)

    def run_guarded(self, work: Callable[[], Any]) -> Any:
        """Run against the file; when that is broken build it again, when others did so use theirs, when it cannot be
        used work in memory."""
        import sqlite3

        from ollm.store.session_index import database

        for _ in range(3):
            try:
                return work()
            except sqlite3.Error as error:
                self.close()
                if database.is_broken(error):
                    database.remove_index(self.path, self._identity)
                elif not self._is_replaced():
                    self._connection, self.in_file = database.connect_in_memory(), False
        return work()

    def _is_replaced(self) -> bool:
        from ollm.store.session_index.database import get_identity

        return self.in_file and get_identity(self.path) != self._identity

    def _refresh(self, found: dict[str, Stamp], progress: Progress | None, *, text: bool) -> dict[str, dict[str, Any]]:
        rows = self._load_rows()
        gone = [session_id for session_id in rows if session_id not in found]
        known = "text_stamp" if text else "stamp"
        changed = [name for name, stamp in found.items() if name not in rows or rows[name][known] != stamp.text]
        changed.sort(key=lambda name: (found[name].is_large, found[name].newest_time))
        if gone:
            self._erase_missing(gone)
        self._large_until = time.process_time() + LARGE_SECONDS
        total, done = sum(found[name].size for name in changed), 0
        self.unread = {}
        for batch in make_batches(changed, found):
            if time.monotonic() > self._read_until:
                self.unread |= {name: found[name].size for name in batch}
                rows |= self._make_unread_rows(batch, found)
                continue
            self._look = partial(_report_progress, progress, done, total)
            rows.update(self._run_transaction(partial(self._update_rows, batch, found, text)))
            done += sum(found[name].size for name in batch)
            _report_progress(progress, done, total, 0)
        return {session_id: rows[session_id] for session_id in found if session_id in rows}

    def _make_unread_rows(self, batch: list[str], found: dict[str, Stamp]) -> dict[str, dict[str, Any]]:
        from ollm.store.session_index.entries import make_unread_row

        return {name: make_unread_row(found[name], name) for name in batch}

    def _erase_missing(self, gone: list[str]) -> None:
        """Somebody else removed these sessions' files: what the index holds of them goes too."""
        from ollm.store.session_index.texts import erase_rows, scrub

        erase_rows(self.connection, gone)
        scrub(self.connection, seconds=SCRUB_SECONDS)

    def _load_rows(self, only: str | None = None) -> dict[str, dict[str, Any]]:
        where = " WHERE session_id = ?" if only else ""
        cursor = self.connection.execute(f"SELECT * FROM sessions{where}", (only,) if only else ())  # noqa: S608
        names = [column[0] for column in cursor.description]
        return {row[1]: dict(zip(names, row, strict=True)) for row in cursor}

    def _run_transaction(self, work: Callable[[], Any]) -> Any:
        from ollm.store.session_index.database import run_transaction

        return run_transaction(self.connection, work)

    def _update_rows(self, batch: list[str], found: dict[str, Stamp], text: bool) -> dict[str, dict[str, Any]]:
        return {name: self._update_row(name, found[name], text=text) for name in batch}

    def _update_row(
        self,
        session_id: str,
        stamp: Stamp,
        *,
        text: bool,
        line: SessionRow | None = None,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Read what is new in one session and write its row, unless others did since the transaction was planned."""
        row = self._load_rows(session_id).get(session_id)
        if row and not line and row["text_stamp" if text else "stamp"] == stamp.text:
            return row
        values: dict[str, Any] = dict(row or {"session_id": session_id, "text_stamp": "", "text_number": 0})
        if "id" not in values:
            query = "INSERT INTO sessions(session_id, stamp) VALUES (?, '')"
            values["id"] = self.connection.execute(query, (session_id,)).lastrowid
        try:
            if text:
                values |= self._read_text(stamp, row, values, seconds)
            else:
                values |= (line or self._read_changes(stamp, session_id, row))._asdict()
            values["stamp"] = stamp.text
        except (StorageError, TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
            # damage that nobody has thought of costs the other sessions nothing; it is tried again the next time
            values |= _make_failed_row(stamp, session_id, error)._asdict() | {"stamp": ""}
        columns = [name for name in values if name not in ("id", "session_id")]
        query = f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?"  # noqa: S608
        self.connection.execute(query, [*(values[name] for name in columns), values["id"]])
        return values

    def _read_text(
        self, stamp: Stamp, row: dict[str, Any] | None, values: dict[str, Any], seconds: float | None
    ) -> dict[str, Any]:
        """Index the words that are new in a session, and return its line and how far it was read."""
        session_id = values["session_id"]
        taker = self._make_indexer(values, seconds or self._compute_time_limit(stamp), bool(seconds))
        line = self._read_changes(stamp, session_id, row, taker)
        if line.last_number < values["text_number"]:  # another session's words: read it from the start
            self._forget_session(values["id"])
            taker = self._make_indexer({**values, "text_number": 0})
            line = self._read_changes(stamp, session_id, None, taker)
        found: dict[str, Any] = line._asdict()
        if taker.late:
            self.behind.add(session_id)
            return found | {"text_stamp": "", "text_number": taker.taken}
        self.behind.discard(session_id)
        return found | {"text_stamp": stamp.text, "text_number": line.last_number}

    def _read_changes(
        self, stamp: Stamp, session_id: str, row: dict[str, Any] | None, taker: EntryIndexer | None = None
    ) -> SessionRow:
        from ollm.store.session_index.entries import read_changes

        return read_changes(stamp, session_id, row, taker)

    def _make_indexer(self, row: dict[str, Any], seconds: float | None = None, steps: bool = False) -> EntryIndexer:
        from ollm.store.session_index.texts import EntryIndexer

        return EntryIndexer(self.connection, row, seconds, self._look, STEP_TEXTS if steps else 0)

    def _compute_time_limit(self, stamp: Stamp) -> float | None:
        """Compute the time limit for a session: all large ones together get a few seconds in one go."""
        return max(MIN_WORK_SECONDS, self._large_until - time.process_time()) if stamp.is_large else None

    def _forget_session(self, session: int) -> None:
        from ollm.store.session_index.texts import forget_session

        forget_session(self.connection, session)


def _make_failed_row(stamp: Stamp, session_id: str, error: Exception) -> SessionRow:
    from ollm.store.session_index.entries import make_unreadable_row

    why = f"it cannot be read ({type(error).__name__}: {error})"
    if isinstance(error, StorageError):
        why = error.message.rstrip(".")
    return make_unreadable_row(stamp.directory / f"{session_id}.json", session_id, why)


def _report_progress(progress: Progress | None, done: int, total: int, more: int) -> None:
    if progress:
        progress(min(done + more, total), total)


def _make_summary(row: Row, active: bool) -> dict[str, Any]:
    session_id, _, start, last, model, count, under_way, tokens, title, workspace, archived, damaged, origin = row
    return {
        "sessionId": session_id,
        "startTime": start,
        "lastActivity": last,
        "model": model,
        "messageCount": count + under_way,
        "tokenCount": tokens,
        "title": title,
        "workspace": workspace,
        "status": "active" if active else "archived" if archived else "closed",
        "damaged": damaged,
        "origin": origin,
    }
