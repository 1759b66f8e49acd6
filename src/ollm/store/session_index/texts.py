"""Add texts to `index.db` and remove them again, so that no byte of them stays in the file.

FTS5 keeps the words of deleted texts until it merges their segments. So deleting leaves a mark in the file,
and `scrub` merges step by step until the mark can be removed. It may stop at any time.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from ollm.domain.clock import format_stamp, parse_stamp, to_epoch_ms
from ollm.store.session_index.database import run_transaction
from ollm.store.session_index.words import ROLES, make_index_text, make_session_mark, pack_text, unpack_text

UNDER_WAY = ""  # stands for a call's id: an answer that was not finished when it was read
Progress = Callable[[int, int], None]
STEP_PAGES = 500  # pages merged in one transaction: others may write in between
BATCH_TEXTS = 2_000  # texts taken out in one transaction


class IndexEntry(NamedTuple):
    """One searchable entry: a message, or a call with its result (`call` is its id, `number` the message with it).

    `call` is `UNDER_WAY` for an unfinished answer, which will be read again.
    """

    number: int
    role: str
    timestamp: str
    call: str | None
    text: str


def pack_time(written: str) -> int | str:
    """Encode a time as milliseconds if that is exact, else return it as written."""
    try:
        moment = to_epoch_ms(parse_stamp(written))
        return moment if format_time(moment) == written else written
    except (ValueError, OverflowError):
        return written


def format_time(stored: int | str) -> str:
    if isinstance(stored, str):
        return stored
    return format_stamp(datetime.fromtimestamp(stored // 1000, UTC).replace(microsecond=stored % 1000 * 1000))


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
        look: Callable[[int], None] | None = None,
        step: int = 0,
    ) -> None:
        self._connection = connection
        self._step = step
        self._added = 0
        self._look = look
        self._session = row["id"]
        self._number = self.taken = row["text_number"]
        self._began_late = not row["text_stamp"]  # time ran out before all calls were indexed
        self._until = time.process_time() + (math.inf if seconds is None else seconds)
        self.late = False
        query = "SELECT call, number FROM entries WHERE session = ? AND call > ?"
        self._calls = set(connection.execute(query, (self._session, UNDER_WAY)))
        query = "SELECT id FROM entries WHERE session = ? AND call = ?"
        forget_rows(connection, connection.execute(query, (self._session, UNDER_WAY)).fetchall())

    def report_progress(self, read: int) -> None:
        if self._look:
            self._look(read)

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
        values = (ROLES.index(entry.role), pack_time(entry.timestamp), entry.call, pack_text(entry.text))
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


def erase_rows(connection: sqlite3.Connection, ids: Iterable[str], progress: Progress | None = None) -> None:
    """Remove rows, texts and words of these sessions; the next `scrub` removes the words for good."""
    rows = [row for name in ids for row in connection.execute("SELECT id FROM sessions WHERE session_id = ?", (name,))]
    total = sum(len(_find_texts(connection, row[0])) for row in rows) if progress else 0
    done = 0
    for (session,) in rows:
        texts = _find_texts(connection, session)
        for place in range(0, len(texts), BATCH_TEXTS):
            run_transaction(connection, partial(_forget_texts, connection, texts[place : place + BATCH_TEXTS]))
            done += BATCH_TEXTS
            if progress:
                progress(min(done, total), total)
        connection.execute("DELETE FROM sessions WHERE id = ?", (session,))


def holds_most(connection: sqlite3.Connection, ids: set[str]) -> bool:
    """Return True if most of the index belongs to these sessions, so that rebuilding it is faster."""
    counted = dict(connection.execute("SELECT session_id, message_count FROM sessions"))
    going = sum(count or 0 for name, count in counted.items() if name in ids)
    return bool(counted.keys() & ids) and 2 * going > sum(count or 0 for count in counted.values())


def scrub(connection: sqlite3.Connection, progress: Progress | None = None, seconds: float | None = None) -> None:
    """Merge until nothing is left of removed text. `seconds` limits the time; another call then continues."""
    if not connection.execute("PRAGMA application_id").fetchone()[0]:
        return
    until = None if seconds is None else time.monotonic() + seconds
    total = connection.execute("SELECT count(*) FROM words_data").fetchone()[0] if progress else 0
    pages, done = -STEP_PAGES, 0
    while _merge_pages(connection, pages):
        pages, done = STEP_PAGES, done + STEP_PAGES
        if progress:
            progress(min(done, total), total)
        if until and time.monotonic() > until:
            return
    if progress:
        progress(total, total)


def _merge_pages(connection: sqlite3.Connection, pages: int) -> bool:
    """Merge so many pages. Returns False, and clears the mark, if nothing was left to merge."""
    before = connection.total_changes

    def work() -> bool:
        connection.execute("INSERT INTO words(words, rank) VALUES ('merge', ?)", (pages,))
        goes_on = connection.total_changes - before >= 2
        if not goes_on:
            connection.execute("PRAGMA application_id = 0")
        return goes_on

    return run_transaction(connection, work)


def _forget_texts(connection: sqlite3.Connection, texts: list[tuple[int]]) -> None:
    connection.execute("PRAGMA application_id = 1")  # the mark: words were taken out that are still in the file
    forget_rows(connection, texts)


def _find_texts(connection: sqlite3.Connection, session: int) -> list[tuple[int]]:
    query = "SELECT rowid FROM words WHERE words MATCH ?"
    return connection.execute(query, (f'"{make_session_mark(session)}"',)).fetchall()
