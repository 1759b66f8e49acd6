"""A SQLite file shared by several processes: opening, numbered migrations, and errors that name the file.

The journal is a rollback journal, not WAL: the SQLite of many systems has a race in resetting the WAL.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.domain.clock import format_stamp, now
from ollm.domain.errors import BusyError, StorageError
from ollm.system.atomic import lock_directory

if TYPE_CHECKING:
    import sqlite3

BUSY_TIMEOUT_SECONDS = 5.0
STILL_BUSY_SECONDS = 0.2  # A file still locked after one full wait is waited for only this long.
LOCK_PATIENCE_SECONDS = 1.0
MIN_ROOM_BYTES = 1 << 16
MAX_CHECKED_BYTES = 1 << 20  # Only files up to this size are searched for corruption on opening.
LOCKED_MEMORY_SECONDS = 30.0
UNWRITABLE_CODES = (5, 6, 8, 13)  # SQLite's codes for busy, locked, read-only and full.

_locked_at: dict[Path, float] = {}  # The time at which this process last gave up on a locked file.
NOTES_SCHEMA = """
CREATE TABLE memory (key TEXT PRIMARY KEY, value TEXT NOT NULL, updated_at INTEGER NOT NULL);
CREATE TABLE todos (
    id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'done'))
);
"""
SESSIONS_SCHEMA = """
CREATE TABLE chat_sessions (
    session_id TEXT PRIMARY KEY,
    title TEXT,
    model TEXT,
    status TEXT CHECK (status IN ('active', 'closed', 'archived')),
    created_at INTEGER,
    updated_at INTEGER,
    summary TEXT,
    recent_messages TEXT,
    plan_steps TEXT,
    current_step_index INTEGER,
    awaiting_continuation INTEGER,
    paused INTEGER
);
CREATE INDEX chat_sessions_newest ON chat_sessions (updated_at DESC);
CREATE TABLE episodes (
    session_id TEXT NOT NULL, number INTEGER NOT NULL, timestamp INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (session_id, number)
);
CREATE TABLE active_contexts (session_id TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE identity (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
TODOS_BY_SESSION = """
ALTER TABLE todos ADD COLUMN session_id TEXT NOT NULL DEFAULT '';
CREATE INDEX todos_by_session ON todos (session_id);
"""
ARCHIVE_STATE_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE sent (
    session_id TEXT PRIMARY KEY, stamp TEXT NOT NULL, target TEXT NOT NULL, seq INTEGER NOT NULL, owner TEXT NOT NULL
);
CREATE TABLE tombstones (session_id TEXT PRIMARY KEY, at INTEGER NOT NULL);
"""
# `fold_words` decides what is a word. The tables of FTS5 end with Unicode 6.1: later letters are unassigned (Cn).
TOKENIZER = "porter unicode61 remove_diacritics 0 categories 'L* N* M* S* P* Co Cn'"
INDEX_SCHEMA = f"""
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL,
    start_time TEXT, last_activity TEXT, model TEXT, message_count INTEGER, partial INTEGER, token_count INTEGER,
    title TEXT, workspace TEXT, archived INTEGER, origin TEXT, damaged TEXT, last_number INTEGER,
    parent TEXT, parent_message INTEGER, known BLOB,
    text_stamp TEXT NOT NULL DEFAULT '', text_number INTEGER NOT NULL DEFAULT 0);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, number INTEGER NOT NULL, role INTEGER NOT NULL, at TEXT NOT NULL,
    call TEXT, text NOT NULL);
CREATE INDEX entries_of_calls ON entries(session, call) WHERE call IS NOT NULL;
CREATE TABLE vectors (
    entry INTEGER PRIMARY KEY, session INTEGER NOT NULL, model TEXT NOT NULL, signs BLOB NOT NULL,
    vector BLOB NOT NULL);
CREATE INDEX vectors_of_sessions ON vectors(session, model, entry, signs);
CREATE VIRTUAL TABLE words USING fts5(
    text, content='', columnsize=0, tokenize="{TOKENIZER}");
"""
WORKSPACE_MIGRATIONS = (NOTES_SCHEMA, SESSIONS_SCHEMA, TODOS_BY_SESSION)  # The database is <workspace>/.ollm/memory.db.
GLOBAL_MIGRATIONS = (NOTES_SCHEMA,)  # The database is ~/.ollm/global.db.
ARCHIVE_STATE_MIGRATIONS = (ARCHIVE_STATE_SCHEMA,)  # The database is ~/.ollm/archive.db.
INDEX_MIGRATIONS = (*[""] * 8, INDEX_SCHEMA)  # The database is ~/.ollm/index.db, rebuilt if it is older.


class SpecialFileError(OSError):
    """Error for a pipe, a socket or a device in place of a file."""


class Database:
    """One connection for one thread. A transaction is `with database.begin_write() as connection`.

    A new file replaces a damaged one, which is kept, if `report` is set to tell so, and removed if all of it is
    `derived` from other files. A `derived` file of an earlier version is replaced as well."""

    def __init__(
        self,
        path: Path,
        migrations: Sequence[str],
        *,
        busy_seconds: float = BUSY_TIMEOUT_SECONDS,
        report: Callable[[str], None] | None = None,
        derived: bool = False,
    ) -> None:
        self.path = path
        self._report = report
        self._derived = derived
        self._migrations = migrations
        self._busy_seconds = busy_seconds
        self._connection: sqlite3.Connection | None = None

    @classmethod
    def in_memory(cls, migrations: Sequence[str]) -> Database:
        """Open an empty database that exists only in memory."""
        import sqlite3

        made = cls(Path(), migrations)
        made._connection = sqlite3.connect(":memory:", isolation_level=None)
        made._connection.row_factory = sqlite3.Row
        made._migrate(made._connection)
        return made

    def connect(self) -> sqlite3.Connection:
        """Return the connection with the newest schema, opening it if necessary."""
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    @contextlib.contextmanager
    def begin_write(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that may write from its start, so that two writers never deadlock. A nested one joins
        the outer one."""
        connection = self.connect()
        if connection.in_transaction:
            yield connection
            return
        with self.guard(), run_transaction(connection):
            yield connection

    def fetch(self, query: str, *values: object) -> list[sqlite3.Row]:
        """Read all rows of a query."""
        connection = self.connect()
        with self.guard():
            return connection.execute(query, values).fetchall()

    def write(self, query: str, *values: object) -> sqlite3.Cursor:
        """Run one statement in a transaction of its own, or in the outer one."""
        with self.begin_write() as connection:
            return connection.execute(query, values)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def remove(self) -> None:
        """Remove the file, so that the next use makes a new one. SQLite refuses to write to a removed file: other
        connections to it fail."""
        self.close()
        with lock_directory(self.path.parent):
            self._unlink()

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Translate errors of SQLite into one sentence that names the file. One that proves damaged is replaced, so
        that only this use fails and not the next."""
        import sqlite3

        try:
            yield
        except sqlite3.Error as error:
            if "locked" in str(error):
                _locked_at[self.path] = time.monotonic()
                raise BusyError(f"{self.path} is locked by another process.", action="Try again later.") from error
            if not self.path.exists():
                raise StorageError(f"{self.path} is gone: its folder was moved or deleted.") from error
            action = "Check the disk space and the file's permissions."
            if is_damage(error):
                action = "The file is damaged; move it away and it will be rebuilt."
                self.close()
                with contextlib.suppress(OSError):
                    self._put_aside()
            raise StorageError(f"{self.path}: {error}.", action=action) from error

    def find_fault(self) -> str:
        """Explain why the file cannot be written, or return "" if it can, and leave it open."""
        if read_schema_version(self.path) > len(self._migrations):
            return "was written by a newer ollm"
        if self.path.is_file() and not os.access(self.path, os.W_OK):
            return "may not be written"
        if is_disk_full(self.path.parent):
            return "is on a full disk"
        patience, self._busy_seconds = self._busy_seconds, LOCK_PATIENCE_SECONDS
        try:
            with self.begin_write() as connection:
                pass
            connection.execute(f"PRAGMA busy_timeout = {round(patience * 1000)}")
        except BusyError:
            self.close()
            return "is locked by another program"
        finally:
            self._busy_seconds = patience
        return ""

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        try:
            with self.guard():
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                try:
                    return self._open_file()
                except (sqlite3.DatabaseError, SpecialFileError) as error:
                    if not is_damage(error) or not (self._report or self._derived):
                        raise
                with lock_directory(self.path.parent):  # Another process may have replaced it by now.
                    try:
                        return self._open_file()
                    except (sqlite3.DatabaseError, SpecialFileError) as error:
                        if not is_damage(error):
                            raise
                    self._put_aside()
                    return self._open_file()
        except OSError as error:
            raise StorageError(f"Cannot use {self.path}: {error.strerror}.") from error

    def _open_file(self) -> sqlite3.Connection:
        import sqlite3

        ensure_regular_file(self.path)
        connection = sqlite3.connect(self.path, timeout=self._choose_wait(), isolation_level=None)
        connection.row_factory = sqlite3.Row
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            self._refuse_foreign_code(connection)
            connection.execute("PRAGMA journal_mode = TRUNCATE")
            connection.execute("PRAGMA secure_delete = ON")
            self._migrate(connection)
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _choose_wait(self) -> float:
        was_locked = time.monotonic() - _locked_at.get(self.path, -math.inf) < LOCKED_MEMORY_SECONDS
        return min(self._busy_seconds, STILL_BUSY_SECONDS) if was_locked else self._busy_seconds

    def _check(self, connection: sqlite3.Connection) -> None:
        """Raise SQLite's own error for a file that is truncated, lacks a table or, if it is small, is corrupt."""
        import sqlite3

        size = self.path.stat().st_size
        pages, page_bytes = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        wanted = {table.split()[0] for step in self._migrations for table in step.split("CREATE TABLE ")[1:]}
        small = size <= MAX_CHECKED_BYTES
        if size < pages * page_bytes or not wanted <= tables:
            raise sqlite3.DatabaseError("the file is not complete")
        if small and (found := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(found)

    def _put_aside(self) -> None:
        """Rename a damaged file, or remove it if it is derived."""
        if self._derived:
            self._unlink()
        elif self._report:
            when = format_stamp(now()).replace(":", "").replace(".", "-")
            for end in ("", "-journal"):
                file = self.path.with_name(self.path.name + end)
                if file.exists():
                    file.rename(file.with_name(f"{file.name}.damaged-{when}"))
            self._report(f"{self.path} is damaged: it was kept as {self.path.name}.damaged-{when}, and a new one made.")

    def _unlink(self) -> None:
        for end in ("", "-journal", "-wal", "-shm"):
            self.path.with_name(self.path.name + end).unlink(missing_ok=True)

    def _refuse_foreign_code(self, connection: sqlite3.Connection) -> None:
        """Refuse triggers and views, which run with our own statements, unless our migrations create triggers."""
        found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone()
        if found is not None and not any("CREATE TRIGGER" in step for step in self._migrations):
            raise StorageError(
                f"{self.path} has a trigger or view ({found[0]!r}), which ollm never makes; it is not used.",
                action="Move the file away.",
            )

    def _migrate(self, connection: sqlite3.Connection) -> None:
        import sqlite3

        wanted = len(self._migrations)
        if self._read_version(connection) == wanted:
            return
        with run_transaction(connection):
            version = self._read_version(connection)
            if version > wanted:
                raise StorageError(
                    f"{self.path} was written by a newer ollm (schema {version}; this version reads {wanted}).",
                    action="Upgrade ollm, or move the file away.",
                )
            is_old = version < wanted and connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            if self._derived and is_old:
                raise sqlite3.DatabaseError("it was written by an earlier version")
            for step in self._migrations[version:]:
                for statement in filter(str.strip, step.split(";\n")):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {wanted}")

    def _read_version(self, connection: sqlite3.Connection) -> int:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def read_schema_version(path: Path) -> int:
    """Read the schema version of a SQLite file without opening it, or return 0 if it is not one."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            header = file.read(100)
    except OSError:
        return 0
    return int.from_bytes(header[60:64], "big") if header.startswith(b"SQLite format 3\0") else 0


def is_disk_full(directory: Path) -> bool:
    """Return True if the disk has so little free space that SQLite could not finish a write."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return False
    return found.f_blocks > 0 and found.f_bavail * found.f_frsize < MIN_ROOM_BYTES


@contextlib.contextmanager
def run_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction that may write from its start, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has rolled back by itself if the disk is full.
            connection.execute("ROLLBACK")
        raise


def ensure_regular_file(path: Path) -> None:
    """Create the file if it is missing. Raise OSError for a link, and for a pipe or a device, because opening one may
    block forever. A file that exists is not opened: closing it would drop the locks of other connections to it in this
    process."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        return
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if not stat.S_ISREG(mode):
        raise SpecialFileError(errno.EINVAL, "it is no regular file", str(path))


def get_inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def is_damage(error: Exception) -> bool:
    """Return True if the file itself is damaged, not busy or inaccessible."""
    import sqlite3

    if isinstance(error, sqlite3.OperationalError | sqlite3.ProgrammingError | sqlite3.IntegrityError):
        return False
    return isinstance(error, sqlite3.DatabaseError | SpecialFileError)


def rewrite_cells(path: Path, replace: Callable[[bytes], tuple[bytes, int]], *, dry_run: bool) -> int | None:
    """Replace text in every row, then write the file anew, without free pages. `replace` returns the new bytes of a
    cell and how much it replaced. Returns the sum, or None for a damaged file."""
    import sqlite3

    try:
        with contextlib.closing(
            sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)
        ) as connection:
            connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA secure_delete = ON")
            kinds = dict(connection.execute("SELECT name, type FROM sqlite_master"))
            if {"trigger", "view"} & set(kinds.values()):
                raise StorageError(f"{path} runs code of its own, which ollm never writes.")
            connection.execute("BEGIN" if dry_run else "BEGIN IMMEDIATE")
            tables = [name for name, kind in kinds.items() if kind == "table" and not name.startswith("sqlite_")]
            count = sum(_rewrite_table(connection, table, replace, dry_run=dry_run) for table in tables)
            connection.execute("COMMIT")
            if not dry_run:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.execute("VACUUM")
            return count
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in UNWRITABLE_CODES:
            raise StorageError(f"{path}: {error}.") from error
        return None


def _rewrite_table(
    connection: sqlite3.Connection, table: str, replace: Callable[[bytes], tuple[bytes, int]], *, dry_run: bool
) -> int:
    count = 0
    rows = connection.execute(f'SELECT rowid, * FROM "{table}"')  # noqa: S608 - a name of its own
    names = [column[0] for column in rows.description][1:]
    for row, *cells in rows.fetchall():
        for name, cell in zip(names, cells, strict=True):
            if not isinstance(cell, str | bytes):
                continue
            made, found = replace(cell.encode("utf-8", "surrogateescape") if isinstance(cell, str) else cell)
            count += found
            if found and not dry_run:
                query = f'UPDATE OR REPLACE "{table}" SET "{name}" = ? WHERE rowid = ?'  # noqa: S608
                connection.execute(query, (made.decode() if isinstance(cell, str) else made, row))
    return count
