"""`index.db` itself. It holds nothing that cannot be worked out again: a broken or older one is replaced, a newer or
locked one is left alone and an empty index in memory replaces it.

Rollback journal, not WAL: SQLite before 3.51.3 can lose a WAL reset between two processes.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

VERSION = 3
BUSY_MILLISECONDS = 1500
TOKENIZER = "porter unicode61 remove_diacritics 2"
SCHEMA = f"""
CREATE TABLE sessions(
    id INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, journal_read INTEGER NOT NULL,
    start_time TEXT, last_activity TEXT, model TEXT, message_count INTEGER, partial INTEGER, token_count INTEGER,
    title TEXT, workspace TEXT, archived INTEGER, origin TEXT, damaged TEXT, last_number INTEGER,
    text_stamp TEXT NOT NULL DEFAULT '', text_read INTEGER NOT NULL DEFAULT 0, text_number INTEGER NOT NULL DEFAULT 0);
CREATE TABLE entries(
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, number INTEGER NOT NULL, role INTEGER NOT NULL, at NOT NULL,
    call TEXT, text NOT NULL);
CREATE INDEX entries_of_calls ON entries(session, call) WHERE call IS NOT NULL;
CREATE TABLE vectors(
    entry INTEGER PRIMARY KEY, session INTEGER NOT NULL, model TEXT NOT NULL, signs BLOB NOT NULL,
    vector BLOB NOT NULL);
CREATE INDEX vectors_of_sessions ON vectors(session, model, entry, signs);
CREATE VIRTUAL TABLE words USING fts5(
    text, content='', columnsize=0, tokenize='{TOKENIZER}');
"""
Done = TypeVar("Done")


def run_transaction(connection: sqlite3.Connection, work: Callable[[], Done]) -> Done:
    """Do it in one transaction: all of it or nothing."""
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
    """A connection with the schema in place, and whether it is the file (False: in memory)."""
    for _ in range(2):
        try:
            return _open_connection(str(path), path), True
        except _NewerVersion:
            break
        except sqlite3.OperationalError:
            break
        except sqlite3.DatabaseError:
            remove_index(path)
        except OSError:
            break
    return connect_in_memory(), False


def connect_in_memory() -> sqlite3.Connection:
    """An empty index that goes with the process."""
    return _open_connection(":memory:", None)


def is_broken(error: sqlite3.Error) -> bool:
    """Return True if the file itself is damaged, not busy or read-only."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)


class _NewerVersion(Exception):  # noqa: N818 - a signal inside this module
    """A later version of ollm wrote the file."""


def _open_connection(name: str, path: Path | None) -> sqlite3.Connection:
    if path:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    connection = sqlite3.connect(name, timeout=BUSY_MILLISECONDS / 1000, isolation_level=None)
    try:
        connection.execute("PRAGMA secure_delete = ON")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise _NewerVersion
        if 0 < version < VERSION:
            raise sqlite3.DatabaseError("written by an earlier version")  # replaced: clearing it would take longer
        if version != VERSION:
            _create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = TRUNCATE")

    def work() -> None:
        if connection.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            for statement in filter(str.strip, SCHEMA.split(";\n")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("SELECT name FROM sqlite_master").fetchall()  # another process may have made the tables

    run_transaction(connection, work)


def remove_index(path: Path) -> None:
    """Take a broken index away; the next connection builds it again."""
    for end in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
