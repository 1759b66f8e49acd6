"""The words the index knows, asked for those that begin like one that was typed."""

from __future__ import annotations

import sqlite3
import time

from ollm.store.session_index.words import SearchWord

MAX_TERMS = 200
MAX_TEXTS = 20_000
MAX_SECONDS = 0.03
MIN_READ_TERMS = 20  # words that are read whatever it takes


def find_longer_words(connection: sqlite3.Connection, word: SearchWord) -> list[str] | None:
    """A phrase for every known word that begins like the last of `word`; None when there are too many to name.

    FTS5 would merge the places of all of them, however many, before it gives the first hit.
    """
    if not word.ending:
        return []
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, words, row)")
    query = "SELECT term, doc FROM temp.vocabulary WHERE term > ? AND term < ?"
    until = time.monotonic() + MAX_SECONDS
    phrases: list[str] = []
    texts = 0
    for term, count in connection.execute(query, (word.ending, word.ending + "\U0010ffff")):
        texts += count
        phrases.append(word.make_phrase(term))
        late = len(phrases) > MIN_READ_TERMS and time.monotonic() > until
        if late or texts > MAX_TEXTS or len(phrases) > MAX_TERMS:
            return None
    return phrases
