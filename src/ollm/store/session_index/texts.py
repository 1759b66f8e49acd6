"""The texts to search: how what was said is in `index.db`, how it gets in and out again.

Beside its words an entry is found by marks, words nobody can type: who said it, its session, the signs it holds.
"""

from __future__ import annotations

import math
import sqlite3
import time
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ollm.domain.clock import format_stamp, parse_stamp, to_epoch_ms
from ollm.store.session_index.words import separate_words

ROLES = ("user", "assistant", "system", "tool")
UNDER_WAY = ""  # stands for a call's id: an answer that was not finished when it was read
MIN_PACKED_CHARS = 200
_ROLE, _SESSION, _SIGN = "\ue000", "\ue001", 0xE100
_SIGNS = 0x700
_EVERYWHERE = frozenset(".,'-_ \n\t\r")  # in so many texts that a mark for it would narrow nothing down


class IndexEntry(NamedTuple):
    """One thing that was said: a message, or a call with its result (`call` is its id, `number` who asked).

    `call` is `UNDER_WAY` in an answer that is not finished and will be read again.
    """

    number: int
    role: str
    timestamp: str
    call: str | None
    text: str


def pack_text(text: str) -> str | bytes:
    """The text as it is stored: long ones compressed, so that the index stays smaller than what was said."""
    return text if len(text) < MIN_PACKED_CHARS else zlib.compress(text.encode("utf-8", "replace"), 6)


def unpack_text(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else zlib.decompress(stored).decode()


def pack_time(written: str) -> int | str:
    """Milliseconds where they say all of it, else what was written."""
    try:
        moment = to_epoch_ms(parse_stamp(written))
        return moment if format_time(moment) == written else written
    except (ValueError, OverflowError):
        return written


def format_time(stored: int | str) -> str:
    if isinstance(stored, str):
        return stored
    return format_stamp(datetime.fromtimestamp(stored // 1000, UTC).replace(microsecond=stored % 1000 * 1000))


def make_role_mark(role: str) -> str:
    return _ROLE + role


def make_session_mark(session: int) -> str:
    return f"{_SESSION}{session}"


def make_sign_marks(text: str) -> list[str]:
    """One for each sign the text holds; what is no letter, no number and no space is a sign."""
    signs = {letter for letter in set(text) - _EVERYWHERE if not letter.isalnum() and not letter.isspace()}
    return sorted({chr(_SIGN + ord(sign) % _SIGNS) for sign in signs})


def make_index_text(text: str, role: str, session: int) -> str:
    """The text as the index of words is given it."""
    return " ".join((separate_words(text), make_role_mark(role), make_session_mark(session), *make_sign_marks(text)))


class EntryIndexer:
    """Puts a session's new entries into the index: each message and call once.

    With `seconds` it stops after that much work and is `late`; the next one goes on behind message `taken`.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        row: dict[str, Any],
        seconds: float | None = None,
        look: Callable[[int], None] | None = None,
    ) -> None:
        self._connection = connection
        self._look = look
        self._session = row["id"]
        self._number = self.taken = row["text_number"]
        self.seconds = math.inf if seconds is None else seconds
        self._until = time.process_time() + self.seconds
        self.late = False
        query = "SELECT call FROM entries WHERE session = ? AND call > ?"
        self._calls = {call for (call,) in connection.execute(query, (self._session, UNDER_WAY))}
        query = "SELECT id FROM entries WHERE session = ? AND call = ?"
        forget_rows(connection, connection.execute(query, (self._session, UNDER_WAY)).fetchall())

    def report_progress(self, read: int) -> None:
        if self._look:
            self._look(read)

    @property
    def last_numbers(self) -> tuple[int, int]:
        """The number of the last message taken, and of the last one whose calls were taken in part at least."""
        query = "SELECT max(number) FROM entries WHERE session = ? AND call > ?"
        return self._number, self._connection.execute(query, (self._session, UNDER_WAY)).fetchone()[0] or 0

    def __call__(self, entry: IndexEntry) -> None:
        if not entry.text or (entry.call in self._calls if entry.call else entry.number <= self._number):
            return
        if self.late or time.process_time() > self._until:
            self.late = True
            return
        if entry.call:
            self._calls.add(entry.call)
        elif entry.call is None:
            self.taken = entry.number
        query = "INSERT INTO entries(session, number, role, at, call, text) VALUES (?, ?, ?, ?, ?, ?)"
        values = (ROLES.index(entry.role), pack_time(entry.timestamp), entry.call, pack_text(entry.text))
        row = self._connection.execute(query, (self._session, entry.number, *values)).lastrowid
        words = make_index_text(entry.text, entry.role, self._session)
        self._connection.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", (row, words))


def forget_session(connection: sqlite3.Connection, session: int) -> None:
    """Take out all texts of a session."""
    query = "SELECT rowid FROM words WHERE words MATCH ?"
    forget_rows(connection, connection.execute(query, (f'"{make_session_mark(session)}"',)).fetchall())


def forget_rows(connection: sqlite3.Connection, rows: list[tuple[int]]) -> None:
    """Take out these texts and their words."""
    for row in rows:
        found = connection.execute("SELECT session, role, text FROM entries WHERE id = ?", row).fetchone()
        if found:
            session, role, text = found
            words = make_index_text(unpack_text(text), ROLES[role], session)
            connection.execute("INSERT INTO words(words, rowid, text) VALUES ('delete', ?, ?)", (*row, words))
            connection.execute("DELETE FROM entries WHERE id = ?", row)
