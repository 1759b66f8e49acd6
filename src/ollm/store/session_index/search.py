"""Searching the words of all sessions: ranked while that is quick, newest first when there is too much, and said."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from ollm.store.session_index.index import Progress, SessionIndex
from ollm.store.session_index.words import folded, question, snippet, unpacked

RANKED_UP_TO = 20_000
HALVES_SECONDS = 0.05


class Filters(NamedTuple):
    """What narrows a search; None leaves it open. `since` is a time as sessions write them."""

    workspace: str | None = None
    since: str | None = None
    model: str | None = None
    role: str | None = None


ANY = Filters()


class Found(NamedTuple):
    """Hits in the order shown; `ranked` is False when there were too many and the newest come first."""

    hits: list[dict[str, Any]]
    ranked: bool
    total: int


def search(
    index: SessionIndex, text: str, filters: Filters = ANY, limit: int = 20, progress: Progress | None = None
) -> Found:
    """What was said that holds all the words of `text`, literally."""
    text = text.encode("utf-8", "replace").decode()
    if not text.strip():
        return Found([], True, 0)
    index.refresh_text(progress)
    if question(text, halves=False):
        return _by_words(index.connection, text, filters, limit)
    return _by_signs(index.connection, text, filters, limit)


def _by_words(connection: sqlite3.Connection, text: str, filters: Filters, limit: int) -> Found:
    """Whole words first; then longer ones that begin so, as far as that is quick."""
    found = _matching(connection, text, question(text, halves=False), filters, limit)
    if len(found.hits) >= limit or question(text, halves=True) == question(text, halves=False):
        return found
    try:
        with _in_time(connection):
            more = _matching(connection, text, question(text, halves=True), filters, limit)
    except sqlite3.OperationalError:  # so many words begin like this that any stretch of text holds one
        more = _quick_look(connection, text, filters, limit)
    known = {(hit["sessionId"], hit["number"], hit["role"]) for hit in found.hits}
    others = [hit for hit in more.hits if (hit["sessionId"], hit["number"], hit["role"]) not in known]
    return Found((found.hits + others)[:limit], found.ranked and more.ranked, max(found.total, more.total))


def _quick_look(connection: sqlite3.Connection, text: str, filters: Filters, limit: int) -> Found:
    """The newest texts that hold it, if there are some to be found at once."""
    try:
        with _in_time(connection):
            return _by_signs(connection, text, filters, limit)
    except sqlite3.OperationalError:
        return Found([], False, 0)


@contextlib.contextmanager
def _in_time(connection: sqlite3.Connection) -> Iterator[None]:
    """Breaks a query off when it takes too long."""
    until = time.monotonic() + HALVES_SECONDS
    connection.set_progress_handler(lambda: int(time.monotonic() > until), 2000)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def _matching(connection: sqlite3.Connection, text: str, expression: str, filters: Filters, limit: int) -> Found:
    counting = f"SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT {RANKED_UP_TO + 1})"  # noqa: S608
    total = connection.execute(counting, (expression,)).fetchone()[0]
    ranked = total <= RANKED_UP_TO
    where, values = _conditions(filters)
    order = "rank" if ranked else "words.rowid DESC"
    query = (
        f"{_COLUMNS} FROM words {_JOINED.format('words.rowid')} WHERE words MATCH ? {where} ORDER BY {order} LIMIT ?"
    )
    rows = connection.execute(query, (expression, *values, limit)).fetchall()
    return Found([_hit(row, text) for row in rows], ranked, total)


def _by_signs(connection: sqlite3.Connection, text: str, filters: Filters, limit: int) -> Found:
    """Look for what was typed as it stands, newest first: signs that are no words, or the beginning of very many."""
    where, values = _conditions(filters)
    connection.create_function("plain", 1, lambda stored: folded(unpacked(stored)), deterministic=True)
    query = (
        f"{_COLUMNS} FROM entries JOIN sessions ON sessions.id = entries.session "
        f"WHERE instr(plain(text), ?) {where} ORDER BY entries.id DESC LIMIT ?"
    )
    rows = connection.execute(query, (folded(text.strip()), *values, limit)).fetchall()
    return Found([_hit(row, text) for row in rows], False, len(rows))


_COLUMNS = "SELECT session_id, entries.number, role, timestamp, title, entries.text"
_JOINED = "JOIN entries ON entries.id = {} JOIN sessions ON sessions.id = entries.session"


def _conditions(filters: Filters) -> tuple[str, list[str]]:
    columns = {"workspace": "workspace = ?", "since": "timestamp >= ?", "model": "model = ?", "role": "role = ?"}
    given = {name: value for name, value in filters._asdict().items() if value}
    return "".join(f" AND {columns[name]}" for name in given), list(given.values())


def _hit(row: tuple[Any, ...], typed: str) -> dict[str, Any]:
    session_id, number, role, timestamp, title, text = row
    return {
        "sessionId": session_id,
        "messageId": number,
        "number": number,
        "role": role,
        "timestamp": timestamp,
        "title": title,
        "snippet": snippet(unpacked(text), typed),
    }
