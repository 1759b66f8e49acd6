"""Search the words of all sessions: ranked while that is fast; newest first, with a flag, if there are too many hits.

No step takes time that grows with a common word: hits are counted up to a bound. If the words alone do not decide
(signs, a prefix that very many words share), texts are scanned newest first for a bounded time.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from ollm.store.session_index.excerpts import (
    TEXT_COLUMNS,
    IndexedText,
    Match,
    find_matches,
    make_excerpt,
    show_matches,
    stem_words,
)
from ollm.store.session_index.index import SessionIndex
from ollm.store.session_index.stamps import Progress
from ollm.store.session_index.words import (
    SearchWord,
    fold_words,
    has_digit,
    is_punctuation,
    make_role_mark,
    make_session_mark,
    make_sign_marks,
    parse_words,
    quote_phrase,
)

MAX_RANKED_HITS = 20_000
LOOK_SECONDS = 0.05
MIN_LOOKED_TEXTS = 2_000  # So many texts are looked at whatever it takes.
MAX_TERMS, MAX_TEXTS = 200, 20_000  # More than these of longer words are not searched.
MAX_SECONDS = 0.03
MIN_READ_TERMS = 20  # So many words are read whatever it takes.
MIN_STEM_CHARS, MAX_ENDING_CHARS = 4, 4
SNIPPET_CHARS, EXCERPT_WORDS = 130, 25
MAX_SIGNS = 20  # So many are marked in an excerpt.
MAX_SESSIONS = 500  # With more of them each hit is asked where it comes from.


class SearchFilters(NamedTuple):
    """Filters of a search; None means any. `since` is a time in the format of sessions."""

    workspace: str | None = None
    since: str | None = None
    model: str | None = None
    role: str | None = None
    tasks: bool = False  # No list shows the sessions of tasks either.


NO_FILTERS = SearchFilters()
Hit = TypeVar("Hit")


class SessionSearchResult(NamedTuple, Generic[Hit]):
    """Hits in display order. `ranked` is False if there were too many and the newest come first; `complete` is False
    if older texts were not searched."""

    hits: list[Hit]
    ranked: bool
    total: int
    complete: bool = True


Rows = SessionSearchResult[IndexedText]
Hits = SessionSearchResult[dict[str, Any]]
Check = Callable[[str], bool]


def search_sessions(
    index: SessionIndex,
    text: str,
    filters: SearchFilters = NO_FILTERS,
    limit: int = 20,
    progress: Progress | None = None,
) -> Hits:
    """Search for messages that contain all the words of `text`, literally."""
    text = text.encode("utf-8", "replace").decode()
    if not text.strip():
        return SessionSearchResult([], True, 0)

    def find() -> Hits:
        index.refresh_text(progress)
        connection = index.connection
        connection.execute("BEGIN")  # Other processes may write meanwhile.
        try:
            asked = _Search(connection, text, filters, limit)
            if asked.excludes_all:
                return SessionSearchResult([], True, 0)
            words = parse_words(text)
            found = asked.find_by_signs(words) if is_punctuation(text) else asked.find_by_words(words)
            return SessionSearchResult(asked.make_hits(found.hits), *found[1:])
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    answer: Hits = index.run_guarded(find)
    return answer


class _Search:
    def __init__(self, connection: sqlite3.Connection, typed: str, filters: SearchFilters, limit: int) -> None:
        self._connection = connection
        self._typed = typed
        self._limit = limit
        self._phrases: list[str] = []  # Hits may contain these.
        self._since = filters.since or ""
        self._marks = [quote_phrase(make_role_mark(filters.role))] if filters.role else []
        self._only = self._find_sessions(filters)
        self._hidden = frozenset() if filters.tasks else self._select_sessions("origin IN ('task', 'compare')")
        if self._only is not None and len(self._only) <= MAX_SESSIONS:
            named = " OR ".join(quote_phrase(make_session_mark(session)) for session in sorted(self._only))
            self._marks += [f"({named})"] if named else []

    @property
    def excludes_all(self) -> bool:
        """Return True if no session matches the filters."""
        return self._only is not None and not self._only

    def find_by_words(self, words: list[SearchWord]) -> Rows:
        """Search for whole words first, then for longer words that begin with them."""
        self._phrases = [word.phrase for word in words]
        found = self._find_matching(self._phrases)
        if len(found.hits) >= self._limit:
            return found
        more = self._find_longer(words)
        if more is None:
            return found
        rows = [*found.hits, *(row for row in more.hits if row not in found.hits)][: self._limit]
        ranked = found.ranked and more.ranked
        return SessionSearchResult(rows, ranked, max(found.total, more.total), found.complete and more.complete)

    def find_by_signs(self, words: list[SearchWord]) -> Rows:
        """Search for exactly the typed text, newest first, among texts with the same signs."""
        wanted = self._typed.strip()
        marks = [quote_phrase(mark) for mark in make_sign_marks(wanted)]
        return self._look_through([*marks, *(word.phrase for word in words)], lambda text: wanted in text)

    def _find_longer(self, words: list[SearchWord]) -> Rows | None:
        """Search with longer words that begin like those typed, or return None if there are none."""
        parts, loose = [], []
        for word in words:
            longer = (
                []
                if count_matches(self._connection, [word.phrase]) > MAX_RANKED_HITS
                else find_longer_words(self._connection, word)
            )
            if longer is None:
                loose.append(word)
                parts += [quote_phrase(word.leading)] if word.leading else []
                self._phrases = [*self._phrases, f"{word.phrase} *"]
            else:
                self._phrases = [*self._phrases, *longer]
                parts.append(f"({' OR '.join((word.phrase, *longer))})" if longer else word.phrase)
        if loose:
            return self._look_through(parts, lambda text: all(word.begins_in(fold_words(text)) for word in loose))
        return self._find_matching(parts) if parts != [word.phrase for word in words] else None

    def _find_matching(self, parts: list[str]) -> Rows:
        wanted = [*parts, *self._marks]
        total = count_matches(self._connection, wanted)
        ranked = total <= MAX_RANKED_HITS
        total = self._count_shown(wanted) if self._hidden else total
        taken, complete = self._take_rows(self._iter_ranked(parts) if ranked else self._iter_newest(wanted))
        return SessionSearchResult(taken, ranked, total, complete)

    def _look_through(self, parts: list[str], check: Check) -> Rows:
        taken, complete = self._take_rows(self._iter_newest([*parts, *self._marks]), check)
        return SessionSearchResult(taken, False, len(taken), complete)

    def _count_shown(self, parts: list[str]) -> int:
        """Count the hits outside hidden sessions, among a bounded number of hits."""
        looked = f"SELECT rowid AS id FROM words WHERE words MATCH ? LIMIT {2 * MAX_RANKED_HITS}"  # noqa: S608
        shown = (
            f"SELECT 1 FROM ({looked}) AS hits JOIN entries ON entries.id = hits.id "  # noqa: S608
            f"WHERE session NOT IN ({', '.join(map(str, self._hidden))}) LIMIT {MAX_RANKED_HITS + 1}"
        )
        query = f"SELECT count(*) FROM ({shown})"  # noqa: S608
        found: int = self._connection.execute(query, (" AND ".join(parts),)).fetchone()[0]
        return found

    def _iter_ranked(self, parts: list[str]) -> Iterator[IndexedText]:
        """Yield the best rows first, ranked by the rarer words: weighing a word reads every text that contains it."""
        telling = (
            parts
            if len(parts) == 1
            else [part for part in parts if count_matches(self._connection, [part]) <= MAX_RANKED_HITS]
        )
        values = [" AND ".join(telling or parts)]
        among = ""
        if telling != parts or self._marks:
            among = "AND +rowid IN (SELECT rowid FROM words WHERE words MATCH ?)"
            values.append(" AND ".join([*parts, *self._marks]))
        query = f"SELECT rowid FROM words WHERE words MATCH ? {among} ORDER BY rank, rowid DESC"  # noqa: S608
        one = f"SELECT {TEXT_COLUMNS} FROM entries WHERE id = ?"  # noqa: S608
        for found in self._connection.execute(query, values).fetchall():
            yield from map(IndexedText._make, self._connection.execute(one, found))

    def _iter_newest(self, parts: list[str]) -> Iterator[IndexedText]:
        query = f"SELECT {TEXT_COLUMNS} FROM entries ORDER BY id DESC"  # noqa: S608
        if parts:
            query = (
                f"SELECT {TEXT_COLUMNS} FROM words JOIN entries ON entries.id = words.rowid "  # noqa: S608
                "WHERE words MATCH ? ORDER BY words.rowid DESC"
            )
        return map(IndexedText._make, self._connection.execute(query, (" AND ".join(parts),) if parts else ()))

    def _take_rows(self, rows: Iterable[IndexedText], check: Check | None = None) -> tuple[list[IndexedText], bool]:
        """Return the first rows that pass, and False if time ran out before all candidates were checked."""
        until = time.monotonic() + LOOK_SECONDS
        taken: list[IndexedText] = []
        for looked, row in enumerate(rows):
            if looked > MIN_LOOKED_TEXTS and time.monotonic() > until:
                return taken, False
            if self._passes(row) and (check is None or check(row.text)):
                taken.append(row)
            if len(taken) == self._limit:
                break
        return taken, True

    def _passes(self, row: IndexedText) -> bool:
        if row.session in self._hidden or (self._only is not None and row.session not in self._only):
            return False
        return not self._since or row.at >= self._since

    def _select_sessions(self, condition: str, values: Iterable[str] = ()) -> frozenset[int]:
        query = f"SELECT id FROM sessions WHERE {condition}"  # noqa: S608 - conditions are written here
        return frozenset(found for (found,) in self._connection.execute(query, tuple(values)))

    def _find_sessions(self, filters: SearchFilters) -> frozenset[int] | None:
        """Find the sessions that may contain a hit, or return None if any may."""
        wanted = {"workspace = ?": filters.workspace, "model = ?": filters.model, "last_activity >= ?": filters.since}
        given = {condition: value for condition, value in wanted.items() if value}
        return self._select_sessions(" AND ".join(given), given.values()) if given else None

    def make_hits(self, rows: Sequence[IndexedText]) -> list[dict[str, Any]]:
        texts = [row.text for row in rows]
        return [*map(self._make_hit, rows, texts, find_matches(texts, self._phrases))]

    def _make_hit(self, row: IndexedText, text: str, matches: list[Match]) -> dict[str, Any]:
        text, spans = show_matches(text, matches, EXCERPT_WORDS)
        if signs := [re.escape(typed) for typed in self._typed.split() if is_punctuation(typed)]:
            spans += itertools.islice((found.span() for found in re.finditer("|".join(signs), text)), MAX_SIGNS)
        query = "SELECT session_id, title FROM sessions WHERE id = ?"
        session_id, title = self._connection.execute(query, (row.session,)).fetchone()
        return {
            "sessionId": session_id,
            "messageId": row.number,
            "number": row.number,
            "role": row.role,
            "timestamp": row.at,
            "title": title,
            "snippet": make_excerpt(text, spans, SNIPPET_CHARS, marked=True),
        }


def count_matches(connection: sqlite3.Connection, parts: Iterable[str], most: int = MAX_RANKED_HITS) -> int:
    """Count the texts that match all of these FTS5 queries, up to `most` + 1."""
    query = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
    found: int = connection.execute(query, (" AND ".join(parts), most + 1)).fetchone()[0]
    return found


def find_longer_words(connection: sqlite3.Connection, word: SearchWord) -> list[str] | None:
    """List a phrase for every indexed stem that begins with the last part of `word`, or is a prefix of it.

    Returns None if there are too many: FTS5 would merge the positions of all of them before the first hit. Its own
    prefix queries are no way: it stems the prefix too, and looks for `hai*` instead of `hay*`.
    """
    if not word.ending:
        return []
    create_vocabulary(connection)
    query = "SELECT term, doc FROM temp.vocabulary WHERE term > ? AND term < ?"
    until = time.monotonic() + MAX_SECONDS
    terms: list[str] = []
    texts = 0
    for term, count in connection.execute(query, (word.ending, word.ending + "\U0010ffff")):
        texts += count
        terms.append(term)
        late = len(terms) > MIN_READ_TERMS and time.monotonic() > until
        if late or texts > MAX_TEXTS or len(terms) > MAX_TERMS:
            return None
    cuts = range(1, MAX_ENDING_CHARS + 1) if not has_digit(word.ending) else ()
    shorter = [word.ending[:-cut] for cut in cuts if len(word.ending) - cut >= MIN_STEM_CHARS]
    one = "SELECT 1 FROM temp.vocabulary WHERE term = ?"
    terms += [stem for stem in shorter if connection.execute(one, (stem,)).fetchone()]
    return [word.make_phrase(form) for form in find_words(terms)]


def create_vocabulary(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, words, row)")


def find_words(stems: Sequence[str]) -> list[str]:
    """Find a word for each stem that FTS5 reduces to that stem; a stem used as a word may be cut again."""
    forms = {
        form: stem
        for stem in stems
        for form in (*(stem + end for end in ("", "e", "s", "es", "ed", "ing")), stem.removesuffix("i") + "y")
    }
    stems_of = stem_words(list(forms))
    found = {stem: form for form, stem in reversed(forms.items()) if stems_of.get(form) == stem}
    return [found[stem] for stem in stems if stem in found]
