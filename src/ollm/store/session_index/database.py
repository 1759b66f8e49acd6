"""The file `index.db`. Everything in it can be rebuilt: a broken or older file is replaced. A newer or locked one is
left alone, and an empty index in memory is used instead.

Rollback journal, not WAL: SQLite before 3.51.3 can lose a WAL reset between two processes.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ollm.system.atomic import lock_directory

VERSION = 9
BUSY_MILLISECONDS = 1500
# `fold_words` decides what is a word. The tables of FTS5 end with Unicode 6.1: later letters are unassigned (Cn).
TOKENIZER = "porter unicode61 remove_diacritics 0 categories 'L* N* M* S* P* Co Cn'"
SCHEMA = f"""
CREATE TABLE sessions(
    id INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL,
    start_time TEXT, last_activity TEXT, model TEXT, message_count INTEGER, partial INTEGER, token_count INTEGER,
    title TEXT, workspace TEXT, archived INTEGER, origin TEXT, damaged TEXT, last_number INTEGER,
    parent TEXT, parent_message INTEGER, known BLOB,
    text_stamp TEXT NOT NULL DEFAULT '', text_number INTEGER NOT NULL DEFAULT 0);
CREATE TABLE entries(
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, number INTEGER NOT NULL, role INTEGER NOT NULL, at TEXT NOT NULL,
    call TEXT, text NOT NULL);
CREATE INDEX entries_of_calls ON entries(session, call) WHERE call IS NOT NULL;
CREATE TABLE vectors(
    entry INTEGER PRIMARY KEY, session INTEGER NOT NULL, model TEXT NOT NULL, signs BLOB NOT NULL,
    vector BLOB NOT NULL);
CREATE INDEX vectors_of_sessions ON vectors(session, model, entry, signs);
CREATE VIRTUAL TABLE words USING fts5(
    text, content='', columnsize=0, tokenize="{TOKENIZER}");
"""
Done = TypeVar("Done")


def run_transaction(connection: sqlite3.Connection, work: Callable[[], Done]) -> Done:
    """Run the work in one transaction, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        done = work()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return done


def connect(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Connect with the schema in place. Returns the connection, and False if the index is only in memory."""
    try:
        if found := _open_usable(path):
            return found, True
        with lock_directory(path.parent):
            return _open_usable(path) or _replace_file(path), True
    except (_NewerVersion, sqlite3.Error, OSError):
        return connect_in_memory(), False


def connect_in_memory() -> sqlite3.Connection:
    """Open an empty index that exists only in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    _create_tables(connection)
    return connection


def is_broken(error: sqlite3.Error) -> bool:
    """Return True if the file itself is damaged, not busy or read-only."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


def get_identity(path: Path) -> tuple[int, int] | None:
    """Identify the file at this path, to notice when it is replaced. Returns None if there is none."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"{path} is not a file")
    return found.st_dev, found.st_ino


def remove_index(path: Path, identity: tuple[int, int] | None = None) -> None:
    """Remove an index; the next connection rebuilds it. With an `identity`, remove only that file.

    SQLite refuses to write to a removed file: connections to it fail and are reopened.
    """
    with lock_directory(path.parent):
        if identity is None or get_identity(path) == identity:
            _unlink_files(path)


def _unlink_files(path: Path) -> None:
    for end in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


class _NewerVersion(Exception):  # noqa: N818 - a signal inside this module
    """Error for a file that a later version of ollm wrote."""


def _open_usable(path: Path) -> sqlite3.Connection | None:
    """Connect to the file, or return None if it is missing, broken or of an earlier version."""
    try:
        return _open_connection(path) if get_identity(path) else None
    except sqlite3.DatabaseError as error:
        if is_broken(error):
            return None
        raise


def _open_connection(path: Path) -> sqlite3.Connection:
    """Connect to a file of this version. Open it in no other way: closing such a file would drop the locks of other
    connections in this process."""
    connection = sqlite3.connect(path, timeout=BUSY_MILLISECONDS / 1000, isolation_level=None)
    try:
        connection.execute("PRAGMA secure_delete = ON")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise _NewerVersion
        if version < VERSION:
            raise sqlite3.DatabaseError("written by an earlier version")  # A new file is quicker to write.
    except BaseException:
        connection.close()
        raise
    return connection


def _replace_file(path: Path) -> sqlite3.Connection:
    """Create an empty index, complete before it gets its name."""
    new = path.with_name(f"{path.name}.new")
    _unlink_files(path)
    _unlink_files(new)
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
        run_transaction(connection, lambda: _create_tables(connection))
    new.rename(path)
    return _open_connection(path)


def _create_tables(connection: sqlite3.Connection) -> None:
    for statement in filter(str.strip, SCHEMA.split(";\n")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
