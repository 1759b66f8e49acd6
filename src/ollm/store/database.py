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
WORKSPACE_MIGRATIONS = (NOTES_SCHEMA, SESSIONS_SCHEMA, TODOS_BY_SESSION)  # The database is <workspace>/.ollm/memory.db.
GLOBAL_MIGRATIONS = (NOTES_SCHEMA,)  # The database is ~/.ollm/global.db.
ARCHIVE_STATE_MIGRATIONS = (ARCHIVE_STATE_SCHEMA,)  # The database is ~/.ollm/archive.db.


class SpecialFileError(OSError):
    """Error for a pipe, a socket or a device in place of a file."""


class Database:
    """One connection for one thread. A transaction is `with database.begin_write() as connection`."""

    def __init__(
        self,
        path: Path,
        migrations: Sequence[str],
        *,
        busy_seconds: float = BUSY_TIMEOUT_SECONDS,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self.path = path
        self._report = report  # If it is set, a new file replaces a damaged one, which is kept.
        self._migrations = migrations
        self._busy_seconds = busy_seconds
        self._connection: sqlite3.Connection | None = None

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
        with translate_errors(self.path), self._put_aside_when_damaged():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                roll_back(connection)
                raise
            connection.execute("COMMIT")

    def fetch(self, query: str, *values: object) -> list[sqlite3.Row]:
        """Read all rows of a query."""
        connection = self.connect()
        with translate_errors(self.path), self._put_aside_when_damaged():
            return connection.execute(query, values).fetchall()

    def write(self, query: str, *values: object) -> sqlite3.Cursor:
        """Run one statement in a transaction of its own, or in the outer one."""
        with self.begin_write() as connection:
            return connection.execute(query, values)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

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

        with translate_errors(self.path):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            before = get_inode(self.path)
            try:
                return self._open_file()
            except (sqlite3.DatabaseError, IsADirectoryError, SpecialFileError) as error:
                if not is_damage(error) or not self._put_aside(before):
                    raise
            return self._open_file()

    def _open_file(self) -> sqlite3.Connection:
        import sqlite3

        refuse_special_file(self.path)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
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

    @contextlib.contextmanager
    def _put_aside_when_damaged(self) -> Iterator[None]:
        """Put aside a file that proves damaged during use, so that only this use fails and not the next."""
        import sqlite3

        try:
            yield
        except sqlite3.DatabaseError as error:
            if is_damage(error):
                self.close()
                self._put_aside(get_inode(self.path))
            raise

    def _put_aside(self, inode: int) -> bool:
        """Rename a damaged file, unless another process already did. Returns False if it must stay."""
        if self._report is None:
            return False
        if get_inode(self.path) == inode:
            when = format_stamp(now()).replace(":", "").replace(".", "-")
            for end in ("", "-journal"):
                file = self.path.with_name(self.path.name + end)
                if file.exists():
                    file.rename(file.with_name(f"{file.name}.damaged-{when}"))
            self._report(f"{self.path} is damaged: it was kept as {self.path.name}.damaged-{when}, and a new one made.")
        return True

    def _refuse_foreign_code(self, connection: sqlite3.Connection) -> None:
        """Refuse triggers and views, which run with our own statements, unless our migrations create triggers."""
        found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone()
        if found is not None and not any("CREATE TRIGGER" in step for step in self._migrations):
            raise StorageError(
                f"{self.path} has a trigger or view ({found[0]!r}), which ollm never makes; it is not used.",
                action="Move the file away.",
            )

    def _migrate(self, connection: sqlite3.Connection) -> None:
        wanted = len(self._migrations)
        if self._read_version(connection) == wanted:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = self._read_version(connection)
            if version > wanted:
                raise StorageError(
                    f"{self.path} was written by a newer ollm (schema {version}; this version reads {wanted}).",
                    action="Upgrade ollm, or move the file away.",
                )
            for step in self._migrations[version:]:
                for statement in filter(str.strip, step.split(";\n")):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {wanted}")
        except BaseException:
            roll_back(connection)
            raise
        connection.execute("COMMIT")

    def _read_version(self, connection: sqlite3.Connection) -> int:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def read_schema_version(path: Path) -> int:
    """Read the schema version of a SQLite file without opening it, or return 0 if it is not one."""
    try:
        refuse_special_file(path)
        with path.open("rb") as file:
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


def roll_back(connection: sqlite3.Connection) -> None:
    """Roll back the open transaction, if any; SQLite has already done so if the disk is full."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def refuse_special_file(path: Path) -> None:
    """Raise OSError for a pipe, a socket or a device, because opening one may block forever."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
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
    return isinstance(error, sqlite3.DatabaseError | IsADirectoryError | SpecialFileError)


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Translate SQLite and file system errors into one sentence that names the file."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        if "locked" in str(error):
            _locked_at[path] = time.monotonic()
            raise BusyError(f"{path} is locked by another process.", action="Try again later.") from error
        if not path.exists():
            raise StorageError(f"{path} is gone: its folder was moved or deleted.") from error
        damaged, other = (
            "The file is damaged; move it away and it will be rebuilt.",
            "Check the disk space and the file's permissions.",
        )
        raise StorageError(f"{path}: {error}.", action=damaged if is_damage(error) else other) from error
    except OSError as error:
        raise StorageError(f"Cannot use {path}: {error.strerror}.") from error


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
