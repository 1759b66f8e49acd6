"""Reads the archive: lists, searches, and gives back a session's records in the order that makes its files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ollm.domain.clock import format_stamp
from ollm.domain.errors import NotFoundError, UsageError
from ollm.store.session_files.places import match_prefix
from ollm.store.team_archive.connection import translate_faults
from ollm.store.team_archive.leases import LEASE_SECONDS
from ollm.store.team_archive.records import ArchivedSession, ArchiveHit, ArchiveRecord

if TYPE_CHECKING:
    from psycopg import Connection

MAX_LISTED_SESSIONS = 1000
_FETCH_ROWS = 200
_COLUMNS = (
    "s.session_id::text, s.owner, s.host, s.title, s.model, s.workspace, s.origin, s.start_time, s.last_activity,"
    " s.message_count, s.token_count, s.redacted, s.damaged, s.last_seq, s.writer, l.host"
)
_SESSIONS = (
    f"SELECT {_COLUMNS} FROM ollm.sessions AS s LEFT JOIN ollm.leases AS l"  # noqa: S608 - our own words only
    f" ON l.session_id = s.session_id AND l.seen > now() - interval '{LEASE_SECONDS} seconds'"
)


def list_sessions(connection: Connection, *, limit: int = MAX_LISTED_SESSIONS) -> list[ArchivedSession]:
    """What this person may see, last active first."""
    query = f"{_SESSIONS} ORDER BY s.last_activity DESC LIMIT %s"
    with translate_faults():
        return [_make_session(row) for row in connection.execute(query.encode(), (limit,))]


def find_session(connection: Connection, prefix: str) -> ArchivedSession:
    """The one session whose id starts so."""
    text = prefix.strip().lower()
    query = "SELECT session_id::text FROM ollm.sessions WHERE starts_with(session_id::text, %s) LIMIT 50"
    with translate_faults():
        ids = [found for (found,) in connection.execute(query, (text[:36],))]
        session_id = match_prefix(ids, prefix, "ollm archive list")
        rows = connection.execute(f"{_SESSIONS} WHERE s.session_id = %s".encode(), (session_id,)).fetchall()
    if not rows:
        raise NotFoundError(f"No session {session_id} in the archive.", action="List them with `ollm archive list`.")
    return _make_session(rows[0])


@contextlib.contextmanager
def open_records(connection: Connection, session_id: str, after: int = 0) -> Iterator[Iterator[ArchiveRecord]]:
    """The records as they stand at one moment: pieces of files, head, messages, calls, each in their order.

    With `after` those that came behind a sequence number.
    """
    query = (
        "SELECT kind, key, body, position FROM ollm.records WHERE session_id = %s AND seq > %s ORDER BY"
        " array_position(ARRAY['file', 'head', 'message', 'call'], kind), position, key"
    )
    with translate_faults(), connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        with connection.cursor("records") as cursor:
            cursor.itersize = _FETCH_ROWS
            cursor.execute(query, (session_id, after), binary=True)
            yield (ArchiveRecord(*row) for row in cursor)


def search_messages(
    connection: Connection, text: str, *, limit: int = 20, role: str | None = None, since: str | None = None
) -> list[ArchiveHit]:
    """The newest messages and calls that hold all words of the text, else those that hold it as part of a word."""
    wanted = text.strip()
    if not wanted or "\0" in wanted:
        raise UsageError("Nothing to search for.", action="Give one word or more.")
    query = "SELECT * FROM ollm.search_messages(%s, %s, %s, %s::timestamptz)"
    with translate_faults():
        rows = connection.execute(query, (wanted[:1000], limit, role, since)).fetchall()
    return [_make_hit(row, wanted) for row in rows]


def count_sessions(connection: Connection) -> tuple[int, int]:
    """How many sessions this person may see, and how many of them are their own."""
    query = "SELECT count(*), count(*) FILTER (WHERE owner = ollm.viewer()) FROM ollm.sessions"
    with translate_faults():
        row = connection.execute(query).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def read_viewer(connection: Connection) -> str:
    with translate_faults():
        row = connection.execute("SELECT ollm.viewer()").fetchone()
    return str(row[0]) if row else ""


def forget_session(connection: Connection, session_id: str) -> bool:
    """Delete a session of one's own with all it holds; False when the archive has none. It is not taken back later."""
    remember = (
        "INSERT INTO ollm.deletions (session_id, owner) VALUES (%s, ollm.viewer())"
        " ON CONFLICT (session_id, owner) DO UPDATE SET deleted_at = now()"
    )
    with translate_faults(), connection.transaction():
        connection.execute(remember, (session_id,))
        gone = connection.execute(
            "DELETE FROM ollm.sessions WHERE session_id = %s AND owner = ollm.viewer()", (session_id,)
        ).rowcount
        connection.execute("SELECT pg_notify('ollm_archive', %s)", (session_id,))
    return bool(gone)


def _make_session(row: tuple[Any, ...]) -> ArchivedSession:
    named = dict(zip(ArchivedSession.__struct_fields__, row, strict=True))
    times = {name: format_stamp(named[name]) for name in ("start_time", "last_activity")}
    return ArchivedSession(**{**named, **times})


def _make_hit(row: tuple[Any, ...], wanted: str) -> ArchiveHit:
    session_id, number, _call, role, at, title, owner, host, text = row
    return ArchiveHit(
        session_id=str(session_id),
        message_id=number,
        number=number,
        role=role,
        timestamp=format_stamp(at),
        title=title,
        snippet=make_snippet(text, wanted),
        owner=owner,
        host=host,
    )


def make_snippet(text: str, wanted: str, size: int = 160) -> str:
    """The words around the first one that was looked for, on one line."""
    first = wanted.split(maxsplit=1)[0].lower()
    place = max(text.lower().find(first), 0)
    begin = max(place - size // 3, 0)
    cut = " ".join(text[begin : begin + size].split())
    return ("…" if begin else "") + cut + ("…" if begin + size < len(text) else "")
