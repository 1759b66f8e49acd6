"""Taking sessions out of the index so that no byte of what was said stays in the file.

FTS5 keeps the words of what was deleted until it merges the segments that hold them, going through all it has.
So deleting leaves a mark in the file, and `scrub` merges step by step until the mark can go: it may stop at any time.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable
from functools import partial

from ollm.store.session_index.database import run_transaction
from ollm.store.session_index.texts import forget_rows, make_session_mark

Progress = Callable[[int, int], None]
STEP_PAGES = 500  # pages merged in one transaction: others may write in between
BATCH_TEXTS = 2_000  # texts taken out in one transaction


def erase_rows(connection: sqlite3.Connection, ids: Iterable[str], progress: Progress | None = None) -> None:
    """Rows, texts and words of these sessions; the words go for good with the next `scrub`."""
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
    """Whether most of what the index holds belongs to these sessions: then building it again is quicker."""
    counted = dict(connection.execute("SELECT session_id, message_count FROM sessions"))
    going = sum(count or 0 for name, count in counted.items() if name in ids)
    return bool(counted.keys() & ids) and 2 * going > sum(count or 0 for count in counted.values())


def scrub(connection: sqlite3.Connection, progress: Progress | None = None, seconds: float | None = None) -> None:
    """Merge until nothing is left of what was taken out; with `seconds` for as long as that, to go on another time."""
    if not _is_marked(connection):
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
    """Merge so many pages; False when there was nothing left to merge, and the mark is gone."""
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


def _is_marked(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA application_id").fetchone()[0])


def _find_texts(connection: sqlite3.Connection, session: int) -> list[tuple[int]]:
    query = "SELECT rowid FROM words WHERE words MATCH ?"
    return connection.execute(query, (f'"{make_session_mark(session)}"',)).fetchall()
