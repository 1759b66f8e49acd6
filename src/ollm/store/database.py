"""A SQLite file shared by several processes: opened, brought up to date, and every fault told by the file's name.

The journal is a rollback journal, not WAL: the SQLite of many systems has a race in resetting the WAL.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.domain.errors import BusyError, StorageError

if TYPE_CHECKING:
    import sqlite3

BUSY_TIMEOUT_SECONDS = 5.0


class Database:
    """One connection, used by one thread. A transaction is `with database.writing() as connection`."""

    def __init__(self, path: Path, migrations: Sequence[str], *, busy_seconds: float = BUSY_TIMEOUT_SECONDS) -> None:
        self.path = path
        self._migrations = migrations
        self._busy_seconds = busy_seconds
        self._connection: sqlite3.Connection | None = None

    def connect(self) -> sqlite3.Connection:
        """The open connection, with the newest schema."""
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    @contextlib.contextmanager
    def begin_write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that has the right to write from its start, so that two writers never deadlock. One inside
        another is part of that."""
        connection = self.connect()
        if connection.in_transaction:
            yield connection
            return
        with translate_errors(self.path):
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def begin_read(self) -> Iterator[sqlite3.Connection]:
        with translate_errors(self.path):
            yield self.connect()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        with translate_errors(self.path):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            connection = sqlite3.connect(self.path, timeout=self._busy_seconds, isolation_level=None)
            connection.row_factory = sqlite3.Row
            try:
                connection.execute("PRAGMA journal_mode = TRUNCATE")
                connection.execute("PRAGMA secure_delete = ON")
                self._migrate(connection)
            except BaseException:
                connection.close()
                raise
            return connection

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
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def _read_version(self, connection: sqlite3.Connection) -> int:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextlib.contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Faults of SQLite and of the file system as one sentence that names the file."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise BusyError(f"{path} is locked by another process.", action="Try again later.") from error
        raise StorageError(f"{path}: {error}.", action=suggest_fix(error)) from error
    except OSError as error:
        raise StorageError(f"Cannot use {path}: {error.strerror}.") from error


def suggest_fix(error: sqlite3.Error) -> str:
    import sqlite3

    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return "The file is damaged; move it away and it will be rebuilt."
    return "Check the disk space and the file's permissions."
