"""Add texts to `index.db` and remove them again, so that no byte of them stays in the file.

FTS5 keeps the words of deleted texts until it merges their segments, so deleting for good ends with `optimize`.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ollm.store.database import run_transaction
from ollm.store.session_index.words import ROLES, make_index_text, make_session_mark, pack_text, unpack_text

UNDER_WAY = ""  # It stands for the id of a call, for an unfinished answer.
Progress = Callable[[int, int], None]


class IndexEntry(NamedTuple):
    """One searchable entry: a message, or a call with its result (`call` is its id, `number` the message with it).

    `call` is `UNDER_WAY` for an unfinished answer, which will be read again.
    """

    number: int
    role: str
    timestamp: str
    call: str | None
    text: str


class EntryIndexer:
    """Indexer of a session's new entries: each message and call once.

    With `seconds` it stops after that much work and is `late`; the next one continues after message `taken`. With
    `step` it commits after that many texts, so that other processes can write in between. It also stops if one of them
    indexed the same session meanwhile.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        row: dict[str, Any],
        seconds: float | None = None,
        look: Callable[[int], None] = lambda _read: None,
        step: int = 0,
    ) -> None:
        self._connection = connection
        self._step = step
        self._added = 0
        self.report_progress = look
        self._session = row["id"]
        self._number = self.taken = row["text_number"]
        self._began_late = not row["text_stamp"]  # Time ran out before all calls were indexed.
        self._until = time.process_time() + (math.inf if seconds is None else seconds)
        self.late = False
        query = "SELECT call, number FROM entries WHERE session = ? AND call > ?"
        self._calls = set(map(tuple, connection.execute(query, (self._session, UNDER_WAY))))
        query = "SELECT id FROM entries WHERE session = ? AND call = ?"
        forget_rows(connection, connection.execute(query, (self._session, UNDER_WAY)).fetchall())

    @property
    def last_number(self) -> int:
        """The number of the last message that is indexed with all its calls, as far as that is known."""
        found: int = self._number
        if self._began_late:
            query = "SELECT max(number) FROM entries WHERE session = ? AND call > ?"
            (last,) = self._connection.execute(query, (self._session, UNDER_WAY)).fetchone()
            found = min(found, (last or 0) - 1)
        return found

    def __call__(self, entry: IndexEntry) -> None:
        if not entry.text or ((entry.call, entry.number) in self._calls if entry.call else entry.number <= self.taken):
            return
        if self.late or time.process_time() > self._until:
            self.late = True
            return
        if entry.call:
            self._calls.add((entry.call, entry.number))
        elif entry.call is None:
            self.taken = entry.number
        query = "INSERT INTO entries(session, number, role, at, call, text) VALUES (?, ?, ?, ?, ?, ?)"
        values = (ROLES.index(entry.role), entry.timestamp, entry.call, pack_text(entry.text))
        row = self._connection.execute(query, (self._session, entry.number, *values)).lastrowid
        words = make_index_text(entry.text, entry.role, self._session)
        self._connection.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", (row, words))
        self._added += 1
        if self._step and self._added % self._step == 0:
            self._commit()

    def _commit(self) -> None:
        query = "UPDATE sessions SET text_stamp = '', text_number = ? WHERE id = ?"
        self._connection.execute(query, (self.taken, self._session))
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")
        query = "SELECT text_number, text_stamp FROM sessions WHERE id = ?"
        number, stamp = self._connection.execute(query, (self._session,)).fetchone() or (0, "")
        self.late = (number, stamp) != (self.taken, "")
        self.taken = number


def forget_session(connection: sqlite3.Connection, session: int) -> None:
    """Remove all texts of a session."""
    forget_rows(connection, _find_texts(connection, session))


def forget_rows(connection: sqlite3.Connection, rows: list[tuple[int]]) -> None:
    """Remove these texts and their words."""
    for row in rows:
        found = connection.execute("SELECT session, role, text FROM entries WHERE id = ?", row).fetchone()
        if found:
            session, role, text = found
            words = make_index_text(unpack_text(text), ROLES[role], session)
            connection.execute("INSERT INTO words(words, rowid, text) VALUES ('delete', ?, ?)", (*row, words))
            connection.execute("DELETE FROM entries WHERE id = ?", row)
            connection.execute("DELETE FROM vectors WHERE entry = ?", row)


def erase_rows(
    connection: sqlite3.Connection, ids: Sequence[str], progress: Progress | None = None, *, for_good: bool = True
) -> None:
    """Remove rows, texts and words of these sessions. With `for_good` no byte of them stays in the file."""

    with run_transaction(connection):
        for done, name in enumerate(ids, start=1):
            for (session,) in connection.execute("SELECT id FROM sessions WHERE session_id = ?", (name,)).fetchall():
                forget_rows(connection, _find_texts(connection, session))
                connection.execute("DELETE FROM sessions WHERE id = ?", (session,))
            if progress:
                progress(done, len(ids))
        if for_good:
            connection.execute("INSERT INTO words(words) VALUES ('optimize')")


def holds_most(connection: sqlite3.Connection, ids: set[str]) -> bool:
    """Return True if most of the index belongs to these sessions, so that rebuilding it is faster."""
    counted = dict(connection.execute("SELECT session_id, message_count FROM sessions"))
    going = sum(count or 0 for name, count in counted.items() if name in ids)
    return bool(counted.keys() & ids) and 2 * going > sum(count or 0 for count in counted.values())


def _find_texts(connection: sqlite3.Connection, session: int) -> list[tuple[int]]:
    query = "SELECT rowid FROM words WHERE words MATCH ?"
    return connection.execute(query, (f'"{make_session_mark(session)}"',)).fetchall()
