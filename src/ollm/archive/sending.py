"""Write one session's records to the archive: in order, each name once, each batch atomically.

Each batch locks the session's row, whose last sequence number determines the next one. Resending a batch that was
stored but not confirmed is harmless: existing records are skipped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from ollm.archive.words import split_words
from ollm.domain.clock import parse_stamp
from ollm.domain.errors import BusyError, DeniedError, OllmError
from ollm.domain.session import MessageHit
from ollm.domain.struct import Data
from ollm.store.session_index.entries import IndexEntry

if TYPE_CHECKING:
    from psycopg import Connection

RecordKind = Literal["head", "message", "call", "file"]
RecordName = tuple[RecordKind, str]
DIGEST_BYTES = 16
MAX_TEXT_CHARS = 200_000  # PostgreSQL indexes up to 1 MB of words of a message.


class ArchiveRecord(NamedTuple):
    """One item of a session, named by `kind` and `key`. The newest body of a name counts; None means deleted.

    `text` is its searchable text. `position` orders messages and pieces of files; calls keep their order of arrival.
    """

    kind: RecordKind
    key: str
    body: bytes | None
    position: int | None = None
    text: IndexEntry | None = None

    @property
    def name(self) -> RecordName:
        return self.kind, self.key

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b(self.body or b"", digest_size=DIGEST_BYTES).digest()

    @property
    def size(self) -> int:
        return 200 + len(self.body or b"") + (len(self.text.text) if self.text else 0)


class ArchivedHead(Data, frozen=True):
    """List entry of a session, as its machine describes it."""

    title: str
    model: str
    workspace: str | None
    origin: str | None
    start_time: str
    last_activity: str
    message_count: int
    token_count: int
    redacted: bool
    damaged: str | None


class ArchivedSession(ArchivedHead, frozen=True):
    """A session in the archive. `in_use` names the machine that uses it now."""

    session_id: str
    owner: str
    host: str
    last_seq: int
    writer: str
    in_use: str | None = None


class ArchiveHit(MessageHit, frozen=True):
    owner: str
    host: str


CHANNEL = "ollm_archive"
BATCH_BYTES = 1 << 20
MAX_BATCH_RECORDS = 500


class SessionMovedOnError(BusyError):
    """Another machine has written records that this one does not have."""


class SessionForgottenError(OllmError):
    """The session was deleted from the archive by its owner."""


class Machine(Data, frozen=True):
    """The sending machine: a permanent id, and a name for people."""

    id: str
    host: str


class _Row(NamedTuple):
    last_seq: int
    writer: str
    host: str
    mine: bool


class SessionSender:
    """Sender of one session. `seq` is the last sequence number known to this machine."""

    def __init__(self, connection: Connection, session_id: str, machine: Machine, seq: int) -> None:
        self._connection = connection
        self._id = session_id
        self._machine = machine
        self.seq = seq
        self.sent = 0

    def begin(self) -> None:
        """Find out how much is archived. Raises if another person owns it, or it was deleted or continued elsewhere."""
        deleted = self._connection.execute(
            "SELECT 1 FROM ollm.deletions WHERE session_id = %s AND owner = ollm.viewer()", (self._id,)
        ).fetchone()
        if deleted:
            raise SessionForgottenError(f"Session {self._id} was deleted from the archive; it is not sent again.")
        if row := self._read_row(""):
            self._check(row)

    def adopt(self) -> None:
        """Continue from the archive's state, on a machine that has all records but lost track of sending them."""
        row = self._read_row("")
        self.seq = row.last_seq if row else 0

    def list_digests(self) -> dict[RecordName, bytes]:
        """Return the digests of all archived records."""
        query = "SELECT kind, key, digest FROM ollm.records WHERE session_id = %s AND body IS NOT NULL"
        return {(kind, key): digest for kind, key, digest in self._connection.execute(query, (self._id,))}

    def send(self, records: Sequence[ArchiveRecord], head: ArchivedHead) -> None:
        """Store a batch and the session's list entry, and notify listeners."""
        with self._connection.transaction():
            row = self._lock_row()
            last = row.last_seq
            with self._connection.pipeline():
                if records:
                    self._insert_records(records, last)
                    self._insert_texts([record for record in records if record.text], head)
                    self._delete_texts([record for record in records if not record.text and record.kind != "head"])
                self._update_row(last + len(records), head)
                self._connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, self._id))
        self.seq = last + len(records)
        self.sent += len(records)

    def _lock_row(self) -> _Row:
        lock = "FOR UPDATE OF s"
        query = (
            "INSERT INTO ollm.sessions (session_id, owner, writer, host)"
            " SELECT %s, ollm.viewer(), %s, %s"
            " WHERE NOT EXISTS (SELECT FROM ollm.deletions WHERE session_id = %s AND owner = ollm.viewer())"
            " ON CONFLICT DO NOTHING"
        )
        row = self._read_row(lock)
        if row is None:
            self._connection.execute(query, (self._id, self._machine.id, self._machine.host, self._id))
            row = self._read_row(lock)
        if row is None:
            raise DeniedError(
                f"Session {self._id} is another person's, or was deleted just now.", action=explain_fork(self._id)
            )
        self._check(row)
        return row

    def _read_row(self, lock: str) -> _Row | None:
        query = (
            "SELECT s.last_seq, s.writer, s.host, s.owner = ollm.viewer()"  # noqa: S608 - our own words only
            f" FROM ollm.sessions AS s WHERE s.session_id = %s {lock}"
        )
        found = self._connection.execute(query.encode(), (self._id,)).fetchone()
        return _Row(*found) if found else None

    def _check(self, row: _Row) -> None:
        if not row.mine:
            raise DeniedError(f"Session {self._id} belongs to another person.", action=explain_fork(self._id))
        if row.last_seq != self.seq and row.writer != self._machine.id:
            raise make_diverged_error(self._id, row.host)
        self.seq = max(self.seq, row.last_seq)

    def _insert_records(self, records: Sequence[ArchiveRecord], last: int) -> None:
        query = (
            "INSERT INTO ollm.records (session_id, seq, kind, key, position, digest, body)"
            " SELECT %s, %s + t.n, t.kind, t.key, coalesce(t.position, %s + t.n), t.digest, t.body"
            " FROM unnest(%s::text[], %s::text[], %s::bigint[], %b::bytea[], %b::bytea[])"
            " WITH ORDINALITY AS t(kind, key, position, digest, body, n)"
            " ON CONFLICT (session_id, kind, key) DO UPDATE"
            " SET seq = EXCLUDED.seq, digest = EXCLUDED.digest, body = EXCLUDED.body"
        )
        columns = (
            [record.kind for record in records],
            [record.key for record in records],
            [record.position for record in records],
            [record.digest for record in records],
            [record.body for record in records],
        )
        self._connection.execute(query, (self._id, last, last, *columns))

    def _insert_texts(self, records: Sequence[ArchiveRecord], head: ArchivedHead) -> None:
        entries = [record.text for record in records if record.text]
        texts = [entry.text.replace("\0", "")[:MAX_TEXT_CHARS] for entry in entries]
        query = (
            "INSERT INTO ollm.messages (session_id, number, call, role, at, text, words)"
            " SELECT %s, t.number, t.call, t.role, t.at, t.text, array_to_tsvector(string_to_array(t.words, ' '))"
            " FROM unnest(%b::bigint[], %b::text[], %b::text[], %b::timestamptz[], %b::text[], %b::text[])"
            " AS t(number, call, role, at, text, words)"
            " ON CONFLICT (session_id, number, call) DO UPDATE"
            " SET role = EXCLUDED.role, at = EXCLUDED.at, text = EXCLUDED.text, words = EXCLUDED.words"
        )
        columns = (
            [entry.number for entry in entries],
            [entry.call or "" for entry in entries],
            [entry.role for entry in entries],
            [parse_time(entry.timestamp, head.last_activity) for entry in entries],
            texts,
            [" ".join(split_words(text)) for text in texts],
        )
        if entries:
            self._connection.execute(query, (self._id, *columns))

    def _delete_texts(self, records: Sequence[ArchiveRecord]) -> None:
        query = (
            "DELETE FROM ollm.messages WHERE session_id = %s"
            " AND ((call = '' AND number::text = ANY(%s::text[])) OR (call <> '' AND call = ANY(%s::text[])))"
        )
        messages, calls = ([record.key for record in records if record.kind == kind] for kind in ("message", "call"))
        if messages or calls:
            self._connection.execute(query, (self._id, messages, calls))

    def _update_row(self, last: int, head: ArchivedHead) -> None:
        query = (
            "UPDATE ollm.sessions SET last_seq = %s, writer = %s, host = %s, title = %s, model = %s, workspace = %s,"
            " origin = %s, start_time = %s, last_activity = %s, message_count = %s, token_count = %s, redacted = %s,"
            " damaged = %s, pushed_at = now() WHERE session_id = %s"
        )
        texts = (_clean(head.title), _clean(head.model), head.workspace and _clean(head.workspace), head.origin)
        times = parse_time(head.start_time, head.last_activity), parse_time(head.last_activity, head.start_time)
        counts = head.message_count, head.token_count, head.redacted, head.damaged and _clean(head.damaged)
        self._connection.execute(query, (last, self._machine.id, self._machine.host, *texts, *times, *counts, self._id))


def make_diverged_error(session_id: str, host: str) -> SessionMovedOnError:
    message = f"Session {session_id} was continued on {host} and here; neither has what was said in the other."
    return SessionMovedOnError(message, action=explain_fork(session_id))


def explain_fork(session_id: str) -> str:
    return f"Keep both with `ollm archive push {session_id} --fork`: it sends what was said here as a new session."


def make_batches(records: Iterable[ArchiveRecord]) -> Iterator[list[ArchiveRecord]]:
    """Group records in batches of bounded size."""
    batch: list[ArchiveRecord] = []
    size = 0
    for record in records:
        batch.append(record)
        size += record.size
        if size >= BATCH_BYTES or len(batch) >= MAX_BATCH_RECORDS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def parse_time(text: str, fallback: str) -> datetime:
    for written in (text, fallback):
        try:
            return parse_stamp(written)
        except (ValueError, TypeError, OverflowError):
            continue
    return datetime.fromtimestamp(0).astimezone()


def _clean(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode()
