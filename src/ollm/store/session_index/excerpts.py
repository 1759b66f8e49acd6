"""Show where texts contain the words of a query, and cut excerpts.

FTS5's `highlight` and `snippet` take time that grows with the square of the matches: half a minute for a log of a
megabyte. Here a text is folded as the index folds it, and FTS5 only makes the stems.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from unicodedata import normalize

from ollm.store.database import TOKENIZER
from ollm.store.session_index.words import ROLES, find_spans, fold_words, unpack_text

TEXT_COLUMNS = "entries.id, session, number, role, at, call, entries.text"  # They are the fields of `IndexedText`.
_BLOCK_CHARS = 1_500
_SAME_CHARS = 2  # A stem never changes the first letters of a word.
MAX_CUT_CHARS = 20  # An excerpt begins and ends with a whole word.
OPEN, CLOSE = "«", "»"
Span = tuple[int, int]


class IndexedText(NamedTuple):
    """A message, or a call with its output, as the index stores it; `number` is the message's, or that of the message
    with the call."""

    row: int
    session: int
    number: int
    role_number: int
    at: str
    call: str | None
    stored: str | bytes

    @property
    def role(self) -> str:
        return ROLES[self.role_number]

    @property
    def text(self) -> str:
        return unpack_text(self.stored)


class Match(NamedTuple):
    """Words of a text that match a phrase: the place of the first among all its words, and how many they are."""

    place: int
    size: int
    phrase: str


def find_matches(texts: Sequence[str], phrases: Sequence[str]) -> list[list[Match]]:
    """Find the words of each text that match one of these FTS5 phrases."""
    wanted = {phrase: phrase.replace('"', " ").split() for phrase in phrases}
    starts = tuple({word[:_SAME_CHARS] for words in wanted.values() for word in words})
    folded = [fold_words(text).split() for text in texts]
    near = {word for words in folded for word in set(words) if word.startswith(starts)} if starts else set()
    stems = stem_words([*near.union(*wanted.values())])
    by_stem: dict[str, list[tuple[str, list[str]]]] = {}
    for phrase, (first, *rest) in wanted.items():
        if rest == ["*"]:
            for word in near:
                if word.startswith(first):
                    by_stem.setdefault(stems.get(word, word), []).append((phrase, []))
        else:
            by_stem.setdefault(stems.get(first, first), []).append((phrase, [stems.get(one, one) for one in rest]))
    return [list(_iter_matches([stems.get(word, "") for word in words], by_stem)) for words in folded]


def _iter_matches(stems: Sequence[str], wanted: dict[str, list[tuple[str, list[str]]]]) -> Iterator[Match]:
    for place, stem in enumerate(stems):
        for phrase, rest in wanted.get(stem, ()):
            if stems[place + 1 : place + 1 + len(rest)] == rest:
                yield Match(place, 1 + len(rest), phrase)


def choose_window(
    matches: Sequence[Match], words: int, weigh: Callable[[frozenset[str]], float] = len
) -> tuple[float, Sequence[Match]]:
    """Choose the matches within so many words whose different phrases weigh most. Returns that weight, and them."""
    known: dict[frozenset[str], float] = {}
    begin, best, held = 0, (0.0, 0, 0), Counter[str]()
    for end, match in enumerate(matches, start=1):
        held[match.phrase] += 1
        while matches[begin].place + words <= match.place:
            held[matches[begin].phrase] -= 1
            begin += 1
        phrases = frozenset(+held)
        if phrases not in known:
            known[phrases] = weigh(phrases)
        best = max(best, (known[phrases], -begin, end))
    return best[0], matches[-best[1] : best[2]]


def locate_matches(text: str, matches: Sequence[Match]) -> list[Span]:
    """Find the places of matches, in rising order, in a text in NFC."""
    found: list[Span] = []
    start = count = 0
    for block in _cut_text(text) if matches else ():
        here = len(fold_words(block).split())
        spans = find_spans(block) if matches[len(found)].place < count + here else []
        while len(found) < len(matches) and matches[len(found)].place < count + len(spans):
            match = matches[len(found)]
            first, last = match.place - count, min(match.place - count + match.size, len(spans)) - 1
            found.append((start + spans[first][0], start + spans[last][1]))
        start, count = start + len(block), count + here
        if len(found) == len(matches):
            break
    return found


def _cut_text(text: str) -> Iterator[str]:
    """Cut a text into blocks, between words if possible."""
    start = 0
    while len(text) - start > _BLOCK_CHARS:
        cut = max(text.rfind(blank, start, start + _BLOCK_CHARS) for blank in " \n") + 1 or start + _BLOCK_CHARS
        yield text[start:cut]
        start = cut
    yield text[start:]


def make_excerpt(text: str, spans: Sequence[Span], chars: int, *, marked: bool = False) -> str:
    """Return the part of a text with the most different of these places, on one line of about so many characters."""
    ordered = sorted(spans) or [(0, 0)]
    windows = [[span for span in ordered if first <= span[0] < first + chars] for first, _ in ordered]
    within = max(windows, key=lambda window: len({text[start:end].casefold() for start, end in window}))
    first, last = within[0][0], within[-1][1]
    around = max(0, chars - (last - first)) // 2
    start, end = max(0, first - around), min(len(text), max(last + around, chars))
    if start:
        start = max(start, text.find(" ", start, min(start + MAX_CUT_CHARS, first)) + 1)
    if end < len(text):
        end = max(text.rfind(" ", max(last, end - MAX_CUT_CHARS), end), 0) or end
    parts, place = [], start
    for opened, closed in within if marked and spans else ():
        if opened >= place:  # A span inside the one before is skipped.
            parts += [text[place:opened], OPEN, text[opened:closed], CLOSE]
            place = closed
    line = " ".join("".join([*parts, text[place:end]]).split())
    return ("…" if start else "") + line + ("…" if end < len(text) else "")


def show_matches(text: str, matches: Sequence[Match], words: int) -> tuple[str, list[Span]]:
    """Return the text in NFC, and the places of the matches in its best part of so many words."""
    text = normalize("NFC", text)
    return text, locate_matches(text, choose_window(matches, words)[1])


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
