"""Show where texts contain the words of a query: texts cut into passages in an FTS5 table in memory."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize

from ollm.store.session_index.database import TOKENIZER
from ollm.store.session_index.words import find_spans, fold_words

PASSAGE_CHARS = 1_500
MAX_TEXT_PASSAGES = 40  # of one text that are looked at closely
MAX_CUT_CHARS = 20  # left out at either end of an excerpt, so that it begins and ends with a whole word
OPEN, CLOSE = "«", "»"
_OPEN, _CLOSE = "\ue000", "\ue001"
Span = tuple[int, int]


class IndexedText(NamedTuple):
    """A message, or a call with its output; `number` is the message's, or that of the message with the call."""

    row: int
    number: int
    role: str
    call: str | None
    text: str


class PassageTable:
    """The passages of texts that may hold one of the phrases, those with the most of their words first."""

    def __init__(self, texts: Iterable[IndexedText], phrases: Iterable[str]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(f'CREATE VIRTUAL TABLE passages USING fts5(text, tokenize="{TOKENIZER}")')
        self.owners: dict[int, IndexedText] = {}
        self._passages: dict[int, str] = {}
        words = sorted({word for phrase in phrases for word in phrase.replace('"', " ").split()})
        beginnings = {stem[:-1] if stem[-1] in "iel" else stem for stem in stem_words(words).values()}
        for text in texts if beginnings else ():
            for passage, folded in _choose_passages(text.text, sorted(beginnings)):
                query = "INSERT INTO passages(text) VALUES (?)"
                row = self._connection.execute(query, (folded,)).lastrowid or 0
                self.owners[row], self._passages[row] = text, passage

    def find(self, phrases: Sequence[str]) -> list[int]:
        """Find the passages that hold one of these phrases, best first."""
        if not phrases:
            return []
        query = "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rank"
        return [row for (row,) in self._connection.execute(query, (" OR ".join(phrases),))]

    def show(self, passage: int, phrases: Iterable[str]) -> tuple[str, list[Span]]:
        """Return a passage and the places in it that match."""
        query = (
            f"SELECT highlight(passages, 0, '{_OPEN}', '{_CLOSE}') FROM passages "  # noqa: S608
            "WHERE passages MATCH ? AND rowid = ?"
        )
        (marked,) = self._connection.execute(query, (" OR ".join(phrases), passage)).fetchone()
        text = normalize("NFC", self._passages[passage])
        matches: list[Span] = []
        for (start, end), word in zip(find_spans(text), marked.split(), strict=False):
            if word.startswith(_OPEN):
                matches.append((start, end))
            if word.endswith(_CLOSE) and matches:
                matches[-1] = (matches[-1][0], end)
        return text, matches

    def close(self) -> None:
        self._connection.close()


def _choose_passages(text: str, beginnings: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Cut a text into passages, each beginning in the middle of the previous one, and yield those with most of the
    words that begin so, with their folded text. Folding takes long: passages that seem to hold the words come first,
    and the others are left out once every word was found."""
    find_likely = re.compile(rf"(?<!\w)(?:{'|'.join(map(_spell_variants, beginnings))})").findall
    find = re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, beginnings))})").findall
    halves = [(part, set(find_likely(part.casefold()))) for part in cut_text(text, PASSAGE_CHARS // 2)]
    passages = [(one[0] + other[0], len(one[1] | other[1])) for one, other in pairwise(halves)]
    passages = passages or [(part, len(words)) for part, words in halves]
    missing, count = {one for one in beginnings if find(one) == [one]}, 0
    for passage, likely in sorted(passages, key=lambda one: -one[1]):
        if count == MAX_TEXT_PASSAGES or not (likely or missing):
            return
        folded = fold_words(passage)
        if words := set(find(folded)):
            yield passage, folded
            missing, count = missing - words, count + 1
        if len(words) == len(beginnings):
            return


@cache
def _spell_variants(word: str) -> str:
    """Make a pattern for a folded word with any accents that are written as one character with its letter."""
    classes = ({normalize("NFC", letter + mark) for mark in ("", *map(chr, range(0x300, 0x370)))} for letter in word)
    return "".join(f"[{re.escape(''.join(one for one in variants if len(one) == 1))}]" for variants in classes)


def cut_text(text: str, chars: int) -> Iterator[str]:
    """Cut a text into parts of at most so many characters, if possible between lines or words."""
    start = 0
    while len(text) - start > chars:
        cut = max(text.rfind(blank, start + chars // 2, start + chars) for blank in " \n") + 1 or start + chars
        yield text[start:cut]
        start = cut
    yield text[start:]


def make_excerpt(text: str, matches: Sequence[Span], chars: int, *, marked: bool = False) -> str:
    """Return the part of a text with the most different matches, on one line of about so many characters."""
    ordered = sorted(matches) or [(0, 0)]
    windows = [[match for match in ordered if first <= match[0] < first + chars] for first, _ in ordered]
    within = max(windows, key=lambda window: len({text[start:end].casefold() for start, end in window}))
    first, last = within[0][0], within[-1][1]
    around = max(0, chars - (last - first)) // 2
    start, end = max(0, first - around), min(len(text), max(last + around, chars))
    if start:
        start = max(start, text.find(" ", start, min(start + MAX_CUT_CHARS, first)) + 1)
    if end < len(text):
        end = max(text.rfind(" ", max(last, end - MAX_CUT_CHARS), end), 0) or end
    parts, place = [], start
    for opened, closed in within if marked and matches else ():
        parts += [text[place:opened], OPEN, text[opened:closed], CLOSE]
        place = closed
    line = " ".join("".join([*parts, text[place:end]]).split())
    return ("…" if start else "") + line + ("…" if end < len(text) else "")


def stem_words(words: Sequence[str]) -> dict[str, str]:
    """Return the stem that FTS5 makes of each word."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f'CREATE VIRTUAL TABLE forms USING fts5(text, tokenize="{TOKENIZER}")')
        connection.execute("CREATE VIRTUAL TABLE places USING fts5vocab(forms, instance)")
        connection.executemany("INSERT INTO forms(rowid, text) VALUES (?, ?)", enumerate(words))
        return {words[place]: stem for place, stem in connection.execute("SELECT doc, term FROM places")}
    finally:
        connection.close()
