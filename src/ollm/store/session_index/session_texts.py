"""Search the texts of one session in the index: messages, and calls with their whole output."""

from __future__ import annotations

import math
import sqlite3
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import mul
from statistics import fmean, pstdev
from typing import TypeAlias

from ollm.store.database import run_transaction
from ollm.store.session_index.excerpts import TEXT_COLUMNS, IndexedText
from ollm.store.session_index.index import SessionIndex
from ollm.store.session_index.search import count_matches, find_longer_words
from ollm.store.session_index.words import (
    MIN_PREFIX_CHARS,
    SearchWord,
    make_role_mark,
    make_session_mark,
    quote_phrase,
    unpack_text,
)

NEIGHBOUR_ROWS = 12
MAX_LIKE_TERMS = 12
REFRESH_SECONDS = 5.0  # This is CPU time.


MIN_COMPARED = 8  # Among fewer vectors none can stand out.
MAX_COMPARED = 400

Vector: TypeAlias = "array[float]"  # It has 32-bit floats.


class SessionTexts:
    """One session in `index`. `phrase` and `term` are FTS5 queries; quote phrases first."""

    def __init__(self, index: SessionIndex, session_id: str) -> None:
        self._index = index
        self.session_id = session_id

    def refresh(self) -> None:
        """Index the records added since the last call, in bounded time."""
        self._index.refresh_session_text(self.session_id, REFRESH_SECONDS)

    @property
    def is_behind(self) -> bool:
        """Return True if the newest texts are not in the index yet."""
        return self.session_id in self._index.behind

    @property
    def connection(self) -> sqlite3.Connection:
        return self._index.connection

    @cached_property
    def _row(self) -> tuple[int, int]:
        query = "SELECT id, text_number FROM sessions WHERE session_id = ?"
        found: tuple[int, int] | None = self.connection.execute(query, (self.session_id,)).fetchone()
        return found or (0, 0)

    @property
    def session(self) -> int:
        """The session's number in the index, or 0 if it has none."""
        return self._row[0]

    @property
    def message_count(self) -> int:
        return self._row[1]

    def count_matches(self, phrase: str, most: int) -> int:
        """Count the texts that contain a phrase, up to `most` + 1."""
        return count_matches(self.connection, [self._narrow(phrase)], most)

    def holds(self, words: str) -> bool:
        """Return True if a text contains these words in sequence."""
        return self.count_matches(quote_phrase(words), 0) > 0

    def rank(self, phrases: Iterable[str], limit: int) -> list[int]:
        """List the rows that contain any of these, best first by BM25."""
        query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank, rowid DESC LIMIT ?"
        wanted = self._narrow(f"({' OR '.join(phrases)})")
        return [row for (row,) in self.connection.execute(query, (wanted, limit))]

    def _narrow(self, phrase: str) -> str:
        return f"{phrase} AND {quote_phrase(make_session_mark(self.session))}"

    def read(self, rows: Sequence[int]) -> list[IndexedText]:
        """Load these texts, in this order."""
        query = f"SELECT {TEXT_COLUMNS} FROM entries WHERE id = ? AND session = ?"  # noqa: S608
        found = (self.connection.execute(query, (row, self.session)).fetchone() for row in rows)
        return [*map(IndexedText._make, filter(None, found))]

    def read_neighbour(self, text: IndexedText, number: int) -> IndexedText | None:
        """Load the message with that number, if it was indexed at about the same time as `text`."""
        query = (
            "SELECT id FROM entries WHERE id BETWEEN ? AND ? AND session = ? AND number = ? AND coalesce(call, '') = ''"
        )
        between = (text.row - NEIGHBOUR_ROWS, text.row + NEIGHBOUR_ROWS)
        found = self.connection.execute(query, (*between, self.session, number)).fetchone()
        return self.read([found[0]])[0] if found else None

    def find_last_request(self) -> int:
        """Find the number of the user's last message, or return 0 if there is none."""
        query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 1"
        found = self.connection.execute(query, (self._narrow(quote_phrase(make_role_mark("user"))),)).fetchone()
        return self.read([found[0]])[0].number if found else 0

    def find_forms(self, word: str) -> list[str]:
        """List phrases of indexed words that begin like this one, or like most of it. Of several words only the last
        may differ."""
        leading, _, ending = word.rpartition(" ")
        if len(word) < MIN_PREFIX_CHARS:
            return []
        found = find_longer_words(self.connection, SearchWord(leading, ending)) or []
        return sorted(found, key=lambda phrase: abs(len(phrase) - len(word)))[:MAX_LIKE_TERMS]

    def list_without_vectors(self, model: str, limit: int) -> list[tuple[int, str]]:
        """List the next messages to embed with this model, by row."""
        last = "SELECT max(entry) FROM vectors WHERE session = ? AND model = ?"
        (done,) = self.connection.execute(last, (self.session, model)).fetchone()
        query = "SELECT id, text FROM entries WHERE id > ? AND session = ? AND call IS NULL ORDER BY id LIMIT ?"
        found = self.connection.execute(query, (done or 0, self.session, limit))
        return [(row, unpack_text(text)) for row, text in found]

    def save_vectors(self, model: str, vectors: Mapping[int, Vector]) -> None:
        """Save the vectors of messages that still exist, and delete those of another model."""
        query = "INSERT OR REPLACE INTO vectors SELECT id, session, ?, ?, ? FROM entries WHERE id = ? AND session = ?"
        with run_transaction(self.connection):
            gone = "DELETE FROM vectors WHERE session = ? AND model <> ?"
            self.connection.execute(gone, (self.session, model))
            for row, vector in vectors.items():
                self.connection.execute(query, (model, pack_signs(vector), vector.tobytes(), row, self.session))

    def find_nearest(self, model: str, wanted: Vector, limit: int) -> list[int]:
        """List the rows that are nearer to a vector than nearly all others, nearest first.

        All are compared by the signs of their numbers, then the nearest of them by the numbers.
        """
        query = "SELECT entry, signs FROM vectors WHERE session = ? AND model = ? AND length(signs) = ?"
        packed = pack_signs(wanted)
        asked, signs = (self.session, model, len(packed)), int.from_bytes(packed, "big")
        rated = [
            ((int.from_bytes(other, "big") ^ signs).bit_count(), row)
            for row, other in self.connection.execute(query, asked)
        ]
        if len(rated) < MIN_COMPARED:
            return []
        near = [row for _, row in sorted(rated)[:MAX_COMPARED]]
        one = "SELECT vector FROM vectors WHERE entry = ?"
        likeness = {
            row: compare_vectors(wanted, array("f", self.connection.execute(one, (row,)).fetchone()[0])) for row in near
        }
        mean, spread = fmean(likeness.values()), pstdev(likeness.values())
        by_chance = math.sqrt(2 * math.log(len(near)))  # The nearest of so many deviates by this anyway.
        found = [row for row in near if likeness[row] > mean + by_chance * spread]
        return sorted(found, key=lambda row: -likeness[row])[:limit]


def pack_signs(vector: Vector) -> bytes:
    """Pack the sign of each number into a bit."""
    bits = "".join("1" if number > 0 else "0" for number in vector)
    return int(bits or "0", 2).to_bytes((len(bits) + 7) // 8, "big")


def compare_vectors(one: Vector, other: Vector) -> float:
    """Compute the cosine of two vectors."""
    lengths = math.sqrt(sum(map(mul, one, one))) * math.sqrt(sum(map(mul, other, other)))
    return sum(map(mul, one, other)) / lengths if lengths else 0.0
