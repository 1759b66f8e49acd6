"""Finds the messages of one session that answer any of several queries, with the words that matched.

The index defines words (FTS5: stems, no accents) and ranks hits (BM25). The search is language-independent: a word
counts by its rarity and its length, since the most common words of a language are short. A message is a hit only if it
contains enough of one query, or something of several. Words that only look alike find no message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from ollm.domain.struct import Data
from ollm.domain.text import shorten_line
from ollm.store.session_index.excerpts import (
    IndexedText,
    Match,
    choose_window,
    find_matches,
    make_excerpt,
    show_matches,
)
from ollm.store.session_index.session_texts import SessionTexts, Vector
from ollm.store.session_index.words import UNSPACED, fold_text, has_digit, is_picture, quote_phrase

MAX_QUERIES = 5
MAX_TERMS = 24
MAX_CANDIDATES = 60  # Only this many candidates of a query are scored.
COMMON_SHARE, MIN_COMMON = 0.1, 3  # A word in more messages than this has no weight.
FULL_WEIGHT_CHARS, SURE_CHARS = 6, 8
KEYWORDS = 4  # Short queries rarely contain filler words.
MIN_SHARE, MIN_CLEAR_SHARE, MIN_PAIR_SHARE = 0.25, 0.5, 0.3  # A hit needs this share of the weight.
INEXACT_WEIGHT = 0.8  # Words that occur only in other forms weigh less.
ROLE_WEIGHTS = {"user": 1.6, "assistant": 1.0, "tool": 0.6}
FUSION_RANK = 60  # The constant of reciprocal rank fusion.
SHOWN_BESIDE = 3  # The first hits show both sides of an exchange.
SHOWN_CHARS = 240
PASSAGE_WORDS = 250  # Only words this close to each other count together.
TIE_SHARE = 0.001  # Every word counts this much, even a common one.

_UNSPACED = re.compile(rf"{UNSPACED}+")


class MessageMatch(Data, frozen=True):
    """A matching text. `beside` is the message before it or the answer to it."""

    text: IndexedText
    passage: str
    words: tuple[str, ...]
    beside: IndexedText | None = None


class Term(Data, frozen=True):
    """A word of a query, a compound name (`audit-log`), or two characters of a script without blanks. `forms` are
    other forms of it, and `held` is True if a message has the word itself."""

    word: str
    phrase: str
    forms: tuple[str, ...]
    weight: float
    held: bool
    is_pair: bool


class Query(Data, frozen=True):
    terms: tuple[Term, ...]

    @property
    def counting(self) -> Sequence[Term]:
        """The words that are not very common, or all if there are no others."""
        return [term for term in self.terms if term.weight] or self.terms

    def weigh(self, found: frozenset[str]) -> float:
        """Return the share of the query that a passage with these phrases covers, or 0 if it is too small."""
        counting, held = self.counting, [term for term in self.terms if found.intersection((term.phrase, *term.forms))]
        if not counting[0].weight:
            return float(len(held) == len(self.terms))
        all_weight = sum(term.weight for term in counting)
        if len(counting) > KEYWORDS and any(len(term.word) >= SURE_CHARS for term in held):
            all_weight -= sum(term.weight for term in counting if not (term.held or term.forms)) / 2
        share, least = sum(term.weight for term in held) / all_weight, MIN_SHARE
        if len(counting) > KEYWORDS:
            pairs = sum(term.is_pair for term in counting)
            least = MIN_PAIR_SHARE if 2 * pairs > len(counting) else MIN_CLEAR_SHARE
            share *= sum(term.weight > 0 for term in held) > 1
        return share + len(held) * TIE_SHARE if share >= least else 0.0


class ScoredPassage(NamedTuple):
    """The part of a text that answers a query best."""

    share: float
    matches: Sequence[Match]

    @property
    def is_sure(self) -> bool:
        """Return True if it holds half of the query, or a word so long that it is rarely used for anything else."""
        longest = max(len(match.phrase.strip('"')) for match in self.matches)
        return self.share >= MIN_CLEAR_SHARE or longest >= SURE_CHARS


def search_messages(
    texts: SessionTexts, queries: Iterable[str], limit: int, model: str = "", vectors: Sequence[Vector] = ()
) -> list[MessageMatch]:
    """Find the texts that answer any of the queries, best first.

    The request that is being answered is left out; what followed it comes last. `vectors` are the embeddings of the
    queries by `model`.
    """
    texts.refresh()
    if not texts.session:
        return []
    nearest = [texts.find_nearest(model, vector, limit) for vector in vectors]
    parsed = _read_queries(texts, queries)
    working = texts.find_last_request()

    def is_late(text: IndexedText) -> bool:
        return 0 < working <= text.number

    found = _find_matches(texts, parsed, limit + 1, is_late)
    if any(nearest):
        found = _add_nearest(texts, found, nearest)
    shown = [match for match in found if match.text.number != working or match.text.role != "user"]
    return _add_neighbours(texts, sorted(shown, key=lambda match: is_late(match.text))[:limit])


def _read_queries(texts: SessionTexts, queries: Iterable[str]) -> list[Query]:
    return [query for query in (_read_query(texts, query) for query in list(queries)[:MAX_QUERIES]) if query.terms]


def _read_query(texts: SessionTexts, query: str) -> Query:
    names, words, pairs = [], [], []
    for typed in query.split():
        folded = fold_text(typed)
        runs = _UNSPACED.findall(folded)
        pairs += [run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1))]  # Most words have two.
        parts = _UNSPACED.sub(" ", folded).split()
        name = " ".join(parts) if len(parts) > 1 and not runs else ""
        is_identifier = bool(name) and has_digit(name)  # No part of an identifier can replace it.
        names += [name] if is_identifier or (name and texts.holds(name)) else []
        words += (
            [] if is_identifier else [word for word in parts if len(word) > 1 or word.isdigit() or is_picture(word)]
        )
    chosen = list(dict.fromkeys([*names, *words, *pairs]))[:MAX_TERMS]
    return Query(terms=tuple(_make_term(texts, word, is_pair=word in pairs) for word in chosen))


def _make_term(texts: SessionTexts, word: str, *, is_pair: bool = False) -> Term:
    """Weigh a word. One with a digit is an identifier: only longer ones that begin with it can stand for it."""
    count = texts.message_count
    common = max(MIN_COMMON, int(COMMON_SHARE * count))
    phrase = quote_phrase(" ".join(word) if is_pair else word)
    is_identifier = has_digit(word)
    forms = () if is_pair else tuple(form for form in texts.find_forms(word) if form != phrase)
    own = texts.count_matches(phrase, common)
    held = own or (texts.count_matches(f"({' OR '.join(forms)})", common) if forms else 0)
    rarity = 0.0 if held > common else math.log((count + 1) / min(max(held, 1), count)) / math.log(count + 1)
    is_whole = is_pair or is_identifier or not word.isalnum()
    length_weight = 1.0 if is_whole else min(1.0, (len(word) - 1) / (FULL_WEIGHT_CHARS - 1))
    weight = rarity * length_weight * (INEXACT_WEIGHT if held and not own else 1.0)
    return Term(word=word, phrase=phrase, forms=forms, weight=weight, held=own > 0, is_pair=is_pair)


def _find_matches(
    texts: SessionTexts, queries: Sequence[Query], limit: int, is_late: Callable[[IndexedText], bool]
) -> list[MessageMatch]:
    """Find up to `limit` matches, best first; late ones come last."""
    scores: dict[int, float] = {}
    best: dict[int, list[ScoredPassage]] = {}
    leading: set[int] = set()
    texts_by_row: dict[int, IndexedText] = {}
    for query in queries:
        rows = texts.rank([one for term in query.counting for one in (term.phrase, *term.forms)], MAX_CANDIDATES)
        candidates = texts.read(rows)
        texts_by_row |= {text.row: text for text in candidates}
        phrases = [phrase for term in query.terms for phrase in (term.phrase, *term.forms)]
        found = find_matches([text.text for text in candidates], phrases)
        windows = (choose_window(matches, PASSAGE_WORDS, query.weigh) for matches in found)
        passages = {text.row: ScoredPassage(*one) for text, one in zip(candidates, windows, strict=True)}
        passages = {row: one for row, one in passages.items() if one.share}
        weighed = {row: one.share * ROLE_WEIGHTS.get(texts_by_row[row].role, 1.0) for row, one in passages.items()}
        for row, passage in passages.items():
            scores[row] = scores.get(row, 0.0) + weighed[row]
            best.setdefault(row, []).append(passage)
        leading |= {max(weighed, key=lambda row: weighed[row])} if weighed else set()
    hits = [row for row, found in best.items() if len(queries) == 1 or len(found) > 1 or found[0].is_sure]
    late = {row for row in hits if is_late(texts_by_row[row])}
    ranked = sorted(hits, key=lambda row: (row in late, row not in leading, -scores[row]))[:limit]
    return [_make_match(texts_by_row[row], best[row]) for row in ranked]


def _make_match(text: IndexedText, passages: Sequence[ScoredPassage]) -> MessageMatch:
    """Make a match of the best passage, with the words of all queries that the text answers."""
    ordered = sorted(passages, key=lambda one: -one.share)
    shown = [show_matches(text.text, one.matches, PASSAGE_WORDS) for one in ordered]
    words = dict.fromkeys(whole[start:end].casefold() for whole, spans in shown for start, end in spans)
    return MessageMatch(text=text, passage=make_excerpt(*shown[0], SHOWN_CHARS), words=tuple(words))


def _add_nearest(
    texts: SessionTexts, matches: Sequence[MessageMatch], nearest: Sequence[Sequence[int]]
) -> list[MessageMatch]:
    """Merge the ranking by words with those by distance, using reciprocal rank fusion."""
    scores: dict[int, float] = {}
    known = {match.text.row: match for match in matches}
    for ranking in (list(known), *nearest):
        for place, row in enumerate(ranking):
            scores[row] = scores.get(row, 0.0) + 1 / (FUSION_RANK + place)
    for text in texts.read([row for row in scores if row not in known]):
        known[text.row] = MessageMatch(text=text, passage=shorten_line(text.text, SHOWN_CHARS), words=())
    return [known[row] for row in sorted(scores, key=lambda row: -scores[row]) if row in known]


def _add_neighbours(texts: SessionTexts, found: Sequence[MessageMatch]) -> list[MessageMatch]:
    """Add the other side of the exchange to the first hits, unless it is a hit itself."""
    shown = {match.text.number for match in found}

    def add(match: MessageMatch) -> MessageMatch:
        number = match.text.number + (1 if match.text.role == "user" else -1)
        if match.text.call or number in shown:
            return match
        return msgspec.structs.replace(match, beside=texts.read_neighbour(match.text, number))

    return [*map(add, found[:SHOWN_BESIDE]), *found[SHOWN_BESIDE:]]
