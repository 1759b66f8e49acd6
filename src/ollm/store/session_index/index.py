"""Keep the index in step with the files: check every file's stamp and read only what changed."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ollm.domain.errors import OllmError, StorageError
from ollm.store.database import INDEX_MIGRATIONS, Database, get_inode
from ollm.store.session_index.stamps import Progress, Stamp, read_stamp, read_stamps
from ollm.system.locks import read_owner

if TYPE_CHECKING:
    import sqlite3

    from ollm.store.session_files.waypoints import KnownState
    from ollm.store.session_index.entries import IndexWork

    Row = sqlite3.Row | dict[str, Any]

LIST_COLUMNS = (
    "session_id, stamp, start_time, last_activity, model, message_count, partial, token_count, title, workspace, "
    "archived, damaged, origin, parent, parent_message"
)
BUSY_SECONDS = 1.5
ERASE_MILLISECONDS = 10_000  # Others may be writing for so long.


class SessionIndex:
    """The list and the words of all sessions. Reading it changes no session file; losing it loses nothing."""

    def __init__(self, path: Path, directory: Path) -> None:
        self.path = path
        self.directory = directory
        self._database: Database | None = None
        self._inode = 0  # This identifies the file that is open.
        self.unread: dict[str, int] = {}  # The last list had no time for these sessions of so many bytes.
        self.behind: set[str] = set()  # The next search reads on in these large sessions.

    @classmethod
    def make_in_memory(cls, directory: Path) -> SessionIndex:
        """Make an index that exists only in memory."""
        made = cls(Path(), directory)
        made._database = Database.in_memory(INDEX_MIGRATIONS)
        return made

    @property
    def database(self) -> Database:
        """The file, or an empty database in memory while a newer ollm or another program has the file."""
        if self._database is None:
            self._database = Database(self.path, INDEX_MIGRATIONS, busy_seconds=BUSY_SECONDS, derived=True)
            try:
                self._database.connect()
            except OllmError:
                self._database = Database.in_memory(INDEX_MIGRATIONS)
            self._inode = get_inode(self.path)
        return self._database

    @property
    def connection(self) -> sqlite3.Connection:
        return self.database.connect()

    @property
    def in_file(self) -> bool:
        return self.database.path == self.path

    @property
    def work(self) -> IndexWork:
        from ollm.store.session_index.entries import IndexWork

        return IndexWork(self.connection, self.unread, self.behind)

    def find_known(self, session_id: str) -> KnownState | None:
        """Find the noted state of a session's files. Any thread may ask: the connection is another one."""
        import sqlite3

        from ollm.store.session_index.entries import unpack_known

        with contextlib.suppress(sqlite3.Error):
            reading = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
            with contextlib.closing(reading) as connection:
                query = "SELECT known FROM sessions WHERE session_id = ? AND damaged IS NULL"
                found = connection.execute(query, (session_id,)).fetchone()
                return unpack_known(found[0]) if found else None
        return None

    def close(self) -> None:
        if self._database:
            self._database.close()
            self._database = None

    def list_sessions(
        self, progress: Progress | None = None, seconds: float | None = None, *, tasks: bool = False
    ) -> list[dict[str, Any]]:
        """List all sessions, last active first; those of tasks only with `tasks`. A broken index is rebuilt first.
        After so many `seconds` no further session is read: the remaining ones are in `unread`, and listed by their
        files' times."""
        found, locked = read_stamps(self.directory)
        until = time.monotonic() + seconds if seconds else math.inf
        rows = self.run_guarded(lambda: self._load_current_rows(found, progress, until))
        locks = {session_id: self.directory / f"{session_id}.lock" for session_id in locked & found.keys()}
        active = {session_id for session_id, lock in locks.items() if read_owner(lock) is not None}
        shown = [_make_summary(row, row["session_id"] in active) for row in rows]
        if not tasks:
            shown = [row for row in shown if row["origin"] not in ("task", "compare")]
        return sorted(shown, key=lambda row: row["lastActivity"] or "", reverse=True)

    def _load_current_rows(self, found: dict[str, Stamp], progress: Progress | None, until: float) -> list[Row]:
        """Load the rows of all sessions, after reading those that changed."""
        rows: list[Row] = self.connection.execute(f"SELECT {LIST_COLUMNS} FROM sessions").fetchall()  # noqa: S608
        if _is_current({row["session_id"]: row["stamp"] for row in rows}, found):
            return rows
        from ollm.store.session_index.entries import refresh_rows

        return [*refresh_rows(self.work, found, progress, text=False, until=until).values()]

    def refresh_text(self, progress: Progress | None = None) -> None:
        """Bring the words up to date, reading the unread part of changed sessions."""
        from ollm.store.session_index.entries import refresh_rows

        found, _ = read_stamps(self.directory)

        def work() -> None:
            if not _is_current(dict(self.connection.execute("SELECT session_id, text_stamp FROM sessions")), found):
                refresh_rows(self.work, found, progress, text=True)

        self.run_guarded(work)

    def refresh_session_text(self, session_id: str, seconds: float) -> None:
        """Bring the words of one session up to date, in short transactions. If time runs out, the session is in
        `behind` and the next call continues."""
        from ollm.store.session_index.entries import refresh_text

        stamp = read_stamp(self.directory, session_id)
        if stamp:
            self.run_guarded(lambda: refresh_text(self.work, session_id, stamp, seconds))

    def update_session(self, session_id: str) -> None:
        """Update one session's row by reading what is new, over a connection of its own: any thread may ask. A busy
        index is left alone."""
        from ollm.store.session_index.entries import update_row

        with (
            contextlib.suppress(OllmError, OSError),
            contextlib.closing(SessionIndex(self.path, self.directory)) as index,
            index.database.begin_write(),
        ):
            if found := read_stamp(self.directory, session_id):
                update_row(index.work, session_id, found)

    def erase_all(self, ids: list[str], progress: Progress | None = None) -> None:
        """Remove sessions, so that no byte of them stays in the file."""
        from ollm.store.session_index.entries import erase_rows, holds_most

        def work() -> None:
            self.connection.execute(f"PRAGMA busy_timeout = {ERASE_MILLISECONDS}")
            if self.in_file and holds_most(self.connection, set(ids)):
                self.database.remove()
                return
            erase_rows(self.connection, ids, progress)

        self.run_guarded(work)
        if not self.in_file and self.path.exists():
            try:  # A locked or newer file cannot be changed, but it can be rebuilt.
                Database(self.path, INDEX_MIGRATIONS, derived=True).remove()
            except OSError as error:
                raise StorageError(
                    f"Cannot change {self.path}.", action="Delete it; it will be rebuilt from the sessions."
                ) from error

    def forget(self, session_id: str) -> None:
        """Remove a session from lists and searches; its text may stay in the file until something is erased."""
        from ollm.store.session_index.entries import erase_rows

        self.run_guarded(lambda: erase_rows(self.connection, [session_id], for_good=False))

    def run_guarded(self, work: Callable[[], Any]) -> Any:
        """Run the work on the file. Rebuild a broken file, reopen one that another process rebuilt, and fall back to
        memory if it cannot be used."""
        import sqlite3

        for _ in range(3):
            try:
                with self.database.guard():
                    return work()
            except OllmError as error:
                if not isinstance(error.__cause__, sqlite3.Error):
                    raise
                self.close()
                if get_inode(self.path) == self._inode:
                    self._database = Database.in_memory(INDEX_MIGRATIONS)
        return work()


def _is_current(known: dict[str, str], found: dict[str, Stamp]) -> bool:
    return known.keys() == found.keys() and all(known[name] == stamp.text for name, stamp in found.items())


def _make_summary(row: Row, active: bool) -> dict[str, Any]:
    parent, number = row["parent"], row["parent_message"]
    return {
        "sessionId": row["session_id"],
        "startTime": row["start_time"],
        "lastActivity": row["last_activity"],
        "model": row["model"],
        "messageCount": row["message_count"] + row["partial"],
        "tokenCount": row["token_count"],
        "title": row["title"],
        "workspace": row["workspace"],
        "status": "active" if active else "archived" if row["archived"] else "closed",
        "damaged": row["damaged"],
        "origin": row["origin"],
        "parent": {"sessionId": parent, **({"messageId": number} if number else {})} if parent else None,
    }
