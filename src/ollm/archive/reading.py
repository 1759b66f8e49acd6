"""Read the archive: list, search, records in document order, and the leases of sessions in use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.archive.sending import ArchivedSession, ArchiveHit, ArchiveRecord
from ollm.archive.words import find_part, split_words
from ollm.domain.clock import format_age, format_stamp
from ollm.domain.errors import BusyError, NotFoundError, UsageError
from ollm.store.session_files.places import match_prefix
from ollm.store.session_index.excerpts import make_excerpt
from ollm.store.session_index.search import SNIPPET_CHARS
from ollm.store.session_index.words import MAX_WORDS

if TYPE_CHECKING:
    from psycopg import Connection

    from ollm.archive.sending import Machine

LEASE_SECONDS = 60
HEARTBEAT_SECONDS = 15


def take_lease(connection: Connection, session_id: str, machine: Machine, *, force: bool = False) -> None:
    """Take or renew the lease, by the server's clock. Raises BusyError while another machine holds it."""
    query = (
        "INSERT INTO ollm.leases AS l (session_id, holder, host) VALUES (%s, %s, %s)"
        " ON CONFLICT (session_id) DO UPDATE SET holder = EXCLUDED.holder, host = EXCLUDED.host, seen = now(),"
        " since = CASE WHEN l.holder = EXCLUDED.holder THEN l.since ELSE now() END"
        " WHERE l.holder = EXCLUDED.holder OR %s OR l.seen < now() - %s * interval '1 second'"
    )
    done = connection.execute(query, (session_id, machine.id, machine.host, force, LEASE_SECONDS)).rowcount
    if not done:
        refuse_held_lease(connection, session_id, machine)


def refuse_held_lease(connection: Connection, session_id: str, machine: Machine) -> None:
    """Raise BusyError if another machine is using the session."""
    query = (
        "SELECT host, since FROM ollm.leases"
        " WHERE session_id = %s AND holder <> %s AND seen > now() - %s * interval '1 second'"
    )
    row = connection.execute(query, (session_id, machine.id, LEASE_SECONDS)).fetchone()
    if row:
        host, since = row
        raise BusyError(
            f"Session {session_id} is in use on {host}, opened {format_age(format_stamp(since))}.",
            action=f"Close it there, or make a copy with `ollm archive pull {session_id} --fork`.",
        )


def release_lease(connection: Connection, session_id: str, machine: Machine) -> None:
    connection.execute("DELETE FROM ollm.leases WHERE session_id = %s AND holder = %s", (session_id, machine.id))


MAX_LISTED_SESSIONS = 1000
MAX_WANTED_CHARS = 1000
_FETCH_ROWS = 200
_COLUMNS = (
    "s.title, s.model, s.workspace, s.origin, s.start_time, s.last_activity, s.message_count, s.token_count,"
    " s.redacted, s.damaged, s.session_id::text, s.owner, s.host, s.last_seq, s.writer, l.host"
)
_SESSIONS = (
    f"SELECT {_COLUMNS} FROM ollm.sessions AS s LEFT JOIN ollm.leases AS l"  # noqa: S608 - our own words only
    f" ON l.session_id = s.session_id AND l.seen > now() - interval '{LEASE_SECONDS} seconds'"
)


def list_sessions(
    connection: Connection, *, limit: int = MAX_LISTED_SESSIONS, tasks: bool = False
) -> list[ArchivedSession]:
    """List the sessions this person may see, last active first. `tasks` adds tasks, which the limit drops first."""
    query = (
        f"{_SESSIONS} WHERE (%s OR s.origin IS DISTINCT FROM 'task')"
        " ORDER BY (s.origin IS NOT DISTINCT FROM 'task'), s.last_activity DESC LIMIT %s"
    )
    found = [_make_session(row) for row in connection.execute(query.encode(), (tasks, limit))]
    return sorted(found, key=lambda row: row.last_activity, reverse=True)


def find_session(connection: Connection, prefix: str) -> ArchivedSession:
    """Find the one session whose id starts with `prefix`."""
    text = prefix.strip().lower()
    query = "SELECT session_id::text FROM ollm.sessions WHERE starts_with(session_id::text, %s) LIMIT 50"
    ids = [found for (found,) in connection.execute(query, (text[:36],))]
    session_id = match_prefix(ids, prefix, "ollm archive list")
    rows = connection.execute(f"{_SESSIONS} WHERE s.session_id = %s".encode(), (session_id,)).fetchall()
    if not rows:
        raise NotFoundError(f"No session {session_id} in the archive.", action="List them with `ollm archive list`.")
    return _make_session(rows[0])


@contextlib.contextmanager
def open_records(connection: Connection, session_id: str) -> Iterator[Iterator[ArchiveRecord]]:
    """Read the records from one snapshot: pieces of files, head, messages, calls."""
    query = (
        "SELECT kind, key, body, position FROM ollm.records WHERE session_id = %s ORDER BY"
        " array_position(ARRAY['file', 'head', 'message', 'call'], kind), position, key"
    )
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        with connection.cursor("records") as cursor:
            cursor.itersize = _FETCH_ROWS
            cursor.execute(query, (session_id,), binary=True)
            yield (ArchiveRecord(*row) for row in cursor)


def search_messages(
    connection: Connection,
    text: str,
    *,
    limit: int = 20,
    role: str | None = None,
    since: str | None = None,
    tasks: bool = False,
) -> list[ArchiveHit]:
    """Find the newest messages and calls with all words of the text, or else those with the text inside a word."""
    wanted = text.strip()
    if not wanted or "\0" in wanted:
        raise UsageError("Nothing to search for.", action="Give one word or more.")
    wanted = wanted[:MAX_WANTED_CHARS]
    typed = wanted.split()[:MAX_WORDS]
    words = list(dict.fromkeys(word for part in typed for word in split_words(part)))
    query = "SELECT * FROM ollm.search_messages(%s, %s, %s, %s::timestamptz, %s::text[], %s::text[], %s, %s)"
    chosen = wanted, limit, role, since, words, find_phrases(typed), tasks, find_part(wanted)
    rows = connection.execute(query, chosen).fetchall()
    return [_make_hit(row, wanted) for row in rows]


def find_phrases(typed: list[str]) -> list[str]:
    """Find typed words that the index splits (a path, ideographs) and whose parts must occur together."""
    several = [word.lower() for word in typed if len(split_words(word)) > 1]
    return [word.strip("".join(letter for letter in set(word) if not letter.isalnum())) for word in several]


def count_sessions(connection: Connection) -> tuple[int, int]:
    """Count the sessions this person may see, and how many of them this person owns."""
    query = "SELECT count(*), count(*) FILTER (WHERE owner = ollm.viewer()) FROM ollm.sessions"
    row = connection.execute(query).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


def read_viewer(connection: Connection) -> str:
    row = connection.execute("SELECT ollm.viewer()").fetchone()
    return str(row[0]) if row else ""


def forget_session(connection: Connection, session_id: str) -> list[str]:
    """Delete one's own session and its tasks for good. Returns their ids, or [] if the archive has none of them."""
    remember = (
        "INSERT INTO ollm.deletions (session_id, owner) SELECT unnest(%s::uuid[]), ollm.viewer()"
        " ON CONFLICT (session_id, owner) DO UPDATE SET deleted_at = now()"
    )
    with connection.transaction():
        names = [session_id, *_find_tasks(connection, session_id)]
        connection.execute(remember, (names,))
        gone = connection.execute(
            "DELETE FROM ollm.sessions WHERE session_id = ANY(%s::uuid[]) AND owner = ollm.viewer()", (names,)
        ).rowcount
        connection.execute("SELECT pg_notify('ollm_archive', %s)", (session_id,))
    return names if gone else []


def find_text(connection: Connection, forms: list[bytes]) -> list[tuple[str, str, str]]:
    """Find the visible sessions that hold one of these byte strings: id, owner and host."""
    query = (
        "SELECT session_id::text, owner, host FROM ollm.sessions AS s WHERE EXISTS (SELECT FROM ollm.records AS r,"
        " unnest(%s::bytea[]) AS form WHERE r.session_id = s.session_id AND position(form IN r.body) > 0)"
    )
    return connection.execute(query, (forms,)).fetchall()


def _find_tasks(connection: Connection, session_id: str) -> list[str]:
    """Find one's own tasks of a conversation by their heads."""
    query = (
        "SELECT s.session_id::text, r.body FROM ollm.sessions AS s JOIN ollm.records AS r USING (session_id)"
        " WHERE s.owner = ollm.viewer() AND s.origin = 'task' AND r.kind = 'head'"
        " AND position(convert_to(%s, 'UTF8') IN r.body) > 0"
    )
    return [name for name, body in connection.execute(query, (session_id,)) if _read_parent(body) == session_id]


def _read_parent(head: bytes) -> Any:
    try:
        return msgspec.json.decode(head)["metadata"]["parent"]["sessionId"]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        return None


def _make_session(row: tuple[Any, ...]) -> ArchivedSession:
    named = dict(zip(ArchivedSession.__struct_fields__, row, strict=True))
    times = {name: format_stamp(named[name]) for name in ("start_time", "last_activity")}
    return ArchivedSession(**{**named, **times})


def _make_hit(row: tuple[Any, ...], wanted: str) -> ArchiveHit:
    session_id, number, _call, role, at, title, owner, host, text = row
    place = max(text.lower().find(first := wanted.split(maxsplit=1)[0].lower()), 0)
    snippet = make_excerpt(text, [(place, place + len(first))], SNIPPET_CHARS)
    return ArchiveHit(str(session_id), number, number, role, format_stamp(at), title, snippet, owner, host)
