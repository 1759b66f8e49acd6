"""Brings the archive's database to the form this version reads: each step runs once, in its own transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ollm.domain.errors import StorageError
from ollm.store.team_archive.steps import STEPS

if TYPE_CHECKING:
    from psycopg import Connection

_LOCK_KEY = 0x6F6C6C6D  # one machine at a time changes the schema


def read_schema_version(connection: Connection) -> int:
    """The version of the schema that is there; 0 where there is none."""
    found = connection.execute("SELECT to_regclass('ollm.schema_version') IS NOT NULL").fetchone()
    if not found or not found[0]:
        return 0
    [(version,)] = connection.execute("SELECT coalesce(max(version), 0) FROM ollm.schema_version").fetchall()
    return int(version)


def migrate_schema(connection: Connection, upto: int | None = None) -> int:
    """Run what is missing and give the version before. Raises StorageError where the schema is newer than this ollm, or
    this role may not change it."""
    wanted = len(STEPS) if upto is None else upto
    before = read_schema_version(connection)
    _refuse_newer(before)
    for _ in range(before, wanted):
        with _explain_refusal(before, wanted), connection.transaction():
            _run_next_step(connection, wanted)
    return before


@contextlib.contextmanager
def _explain_refusal(before: int, wanted: int) -> Iterator[None]:
    """A person who may use the archive but not change its tables is told who can."""
    from psycopg.errors import InsufficientPrivilege

    try:
        yield
    except InsufficientPrivilege as error:
        if not before:
            raise
        raise StorageError(
            f"The archive's tables are of an older ollm (schema {before}; this version needs {wanted}).",
            action="Ask who runs the archive to run `ollm archive setup` with this version.",
        ) from error


def _run_next_step(connection: Connection, wanted: int) -> None:
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK_KEY,))
    connection.execute("CREATE SCHEMA IF NOT EXISTS ollm")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS ollm.schema_version (version integer PRIMARY KEY, at timestamptz DEFAULT now())"
    )
    version = read_schema_version(connection)  # another machine may have been quicker
    _refuse_newer(version)
    if version < wanted:
        connection.execute("SET LOCAL statement_timeout = 0")  # a large archive takes its time, once
        connection.execute(STEPS[version].encode())
        connection.execute("INSERT INTO ollm.schema_version (version) VALUES (%s)", (version + 1,))


def _refuse_newer(version: int) -> None:
    if version > len(STEPS):
        raise StorageError(
            f"The archive was set up by a newer ollm (schema {version}; this version reads {len(STEPS)}).",
            action="Upgrade ollm on this machine.",
        )
