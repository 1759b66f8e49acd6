"""Searching the words of all sessions: ranked while that is quick, newest first when there is too much, and said.

Nothing here takes time that grows with a common word: hits are counted up to a bound, and where the words alone do not
decide (signs, a beginning that very many words share), texts are looked through newest first for a bounded time.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ollm.store.session_index.index import Progress, SessionIndex
from ollm.store.session_index.texts import ROLES, role_mark, session_mark, shown_time, sign_marks, unpacked
from ollm.store.session_index.vocabulary import longer_words
from ollm.store.session_index.words import Word, folded, quoted, snippet, words_of

RANKED_UP_TO = 20_000
LOOK_SECONDS = 0.05
LOOK_ALWAYS = 2_000  # texts that are looked at whatever it takes
MAX_SESSIONS = 500  # that a question names; with more of them each hit is asked where it comes from


class Filters(NamedTuple):
    """What narrows a search; None leaves it open. `since` is a time as sessions write them."""

    workspace: str | None = None
    since: str | None = None
    model: str | None = None
    role: str | None = None


ANY = Filters()


class Found(NamedTuple):
    """Hits in the order shown; `ranked` is False when there were too many and the newest come first, `complete` when
    older texts were not looked through any more."""

    hits: list[dict[str, Any]]
    ranked: bool
    total: int
    complete: bool = True


class Row(NamedTuple):
    """One entry as it is stored."""

    id: int
    session: int
    number: int
    role: int
    at: int | str
    text: str | bytes


class _Rows(NamedTuple):
    rows: list[Row]
    ranked: bool
    total: int
    complete: bool


Check = Callable[[str], bool]
_COLUMNS = "entries.id, session, number, role, at, entries.text"


def search(
    index: SessionIndex, text: str, filters: Filters = ANY, limit: int = 20, progress: Progress | None = None
) -> Found:
    """What was said that holds all the words of `text`, literally."""
    text = text.encode("utf-8", "replace").decode()
    if not text.strip():
        return Found([], True, 0)

    def look() -> Found:
        index.refresh_text(progress)
        connection = index.connection
        connection.execute("BEGIN")  # one state of the index, whatever other processes write meanwhile
        try:
            asked = _Search(connection, text, filters, limit)
            words = words_of(text)
            found = asked.by_words(words) if words else asked.by_signs()
            return Found([asked.hit(row) for row in found.rows], found.ranked, found.total, found.complete)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    answer: Found = index.guarded(look)
    return answer


class _Search:
    def __init__(self, connection: sqlite3.Connection, typed: str, filters: Filters, limit: int) -> None:
        self._connection = connection
        self._typed = typed
        self._limit = limit
        self._since = filters.since or ""
        self._marks = [quoted(role_mark(filters.role))] if filters.role else []
        self._only: frozenset[int] | None = self._sessions(filters)
        if self._only is not None and len(self._only) <= MAX_SESSIONS:
            named = " OR ".join(quoted(session_mark(session)) for session in sorted(self._only))
            self._marks += [f"({named})"] if named else []

    def by_words(self, words: list[Word]) -> _Rows:
        """Whole words first; then longer ones that begin so."""
        found = self._matching([word.phrase for word in words])
        if len(found.rows) >= self._limit:
            return found
        more = self._halves(words)
        if more is None:
            return found
        rows = [*found.rows, *(row for row in more.rows if row not in found.rows)][: self._limit]
        ranked = found.ranked and more.ranked
        return _Rows(rows, ranked, max(found.total, more.total), found.complete and more.complete)

    def by_signs(self) -> _Rows:
        """What was typed as it stands, newest first, where the same signs are."""
        wanted = folded(self._typed.strip())
        return self._looked([quoted(mark) for mark in sign_marks(wanted)], lambda text: wanted in folded(text))

    def _halves(self, words: list[Word]) -> _Rows | None:
        """With longer words that begin like those typed; None when there are none."""
        parts, loose = [], []
        for word in words:
            longer = [] if self._count([word.phrase]) > RANKED_UP_TO else longer_words(self._connection, word)
            if longer is None:
                loose.append(word)
                parts += [quoted(word.front)] if words_of(word.front) else []
            else:
                parts.append(f"({' OR '.join((word.phrase, *longer))})" if longer else word.phrase)
        if loose:
            return self._looked(parts, lambda text: all(word.begins_in(folded(text)) for word in loose))
        return self._matching(parts) if parts != [word.phrase for word in words] else None

    def _matching(self, parts: list[str]) -> _Rows:
        total = self._count([*parts, *self._marks])
        ranked = total <= RANKED_UP_TO
        rows = self._ranked(parts) if ranked else self._newest([*parts, *self._marks])
        taken, complete = self._take(rows)
        return _Rows(taken, ranked, total, complete)

    def _looked(self, parts: list[str], check: Check) -> _Rows:
        taken, complete = self._take(self._newest([*parts, *self._marks]), check)
        return _Rows(taken, False, len(taken), complete)

    def _count(self, parts: list[str]) -> int:
        query = f"SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT {RANKED_UP_TO + 1})"  # noqa: S608
        found: int = self._connection.execute(query, (" AND ".join(parts),)).fetchone()[0]
        return found

    def _ranked(self, parts: list[str]) -> Iterator[Row]:
        """Best first, by the words that are not everywhere: weighing one means going through all that hold it."""
        telling = parts if len(parts) == 1 else [part for part in parts if self._count([part]) <= RANKED_UP_TO]
        values = [" AND ".join(telling or parts)]
        among = ""
        if telling != parts or self._marks:
            among = "AND +rowid IN (SELECT rowid FROM words WHERE words MATCH ?)"
            values.append(" AND ".join([*parts, *self._marks]))
        query = f"SELECT rowid FROM words WHERE words MATCH ? {among} ORDER BY rank, rowid DESC"  # noqa: S608
        one = f"SELECT {_COLUMNS} FROM entries WHERE id = ?"  # noqa: S608
        for found in self._connection.execute(query, values).fetchall():
            yield from map(Row._make, self._connection.execute(one, found))

    def _newest(self, parts: list[str]) -> Iterator[Row]:
        query = f"SELECT {_COLUMNS} FROM entries ORDER BY id DESC"  # noqa: S608
        if parts:
            query = (
                f"SELECT {_COLUMNS} FROM words JOIN entries ON entries.id = words.rowid "  # noqa: S608
                "WHERE words MATCH ? ORDER BY words.rowid DESC"
            )
        return map(Row._make, self._connection.execute(query, (" AND ".join(parts),) if parts else ()))

    def _take(self, rows: Iterable[Row], check: Check | None = None) -> tuple[list[Row], bool]:
        """The first rows that pass, and whether all were looked at that could be among them."""
        until = time.monotonic() + LOOK_SECONDS
        taken: list[Row] = []
        if self._only is not None and not self._only:
            return [], True
        for looked, row in enumerate(rows):
            if looked > LOOK_ALWAYS and time.monotonic() > until:
                return taken, False
            if self._passes(row) and (check is None or check(unpacked(row.text))):
                taken.append(row)
            if len(taken) == self._limit:
                break
        return taken, True

    def _passes(self, row: Row) -> bool:
        return (self._only is None or row.session in self._only) and (
            not self._since or shown_time(row.at) >= self._since
        )

    def _sessions(self, filters: Filters) -> frozenset[int] | None:
        """The sessions that may hold a hit; None: any of them."""
        wanted = {"workspace = ?": filters.workspace, "model = ?": filters.model, "last_activity >= ?": filters.since}
        given = {condition: value for condition, value in wanted.items() if value}
        if not given:
            return None
        query = f"SELECT id FROM sessions WHERE {' AND '.join(given)}"  # noqa: S608 - conditions are written here
        return frozenset(found for (found,) in self._connection.execute(query, list(given.values())))

    def hit(self, row: Row) -> dict[str, Any]:
        query = "SELECT session_id, title FROM sessions WHERE id = ?"
        session_id, title = self._connection.execute(query, (row.session,)).fetchone()
        return {
            "sessionId": session_id,
            "messageId": row.number,
            "number": row.number,
            "role": ROLES[row.role],
            "timestamp": shown_time(row.at),
            "title": title,
            "snippet": snippet(unpacked(row.text), self._typed),
        }
