"""Finds the messages of one session that answer any of several queries, with the words that matched.

The index defines words (FTS5: stems, no accents) and ranks hits (BM25). The search is language-independent: a word
counts by its rarity and its length, since the most common words of a language are short. A message is a hit only if it
contains enough of one query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ollm.domain.struct import Data
from ollm.domain.text import shorten_line
from ollm.store.session_index.passages import IndexedText, PassageTable, make_excerpt
from ollm.store.session_index.session_texts import SessionTexts, Vector
from ollm.store.session_index.words import UNSPACED, fold_text, has_digit, is_picture, quote_phrase

MAX_QUERIES = 5
MAX_TERMS = 24  # of one query
MAX_CANDIDATES = 60  # that are looked at closely, for each query
COMMON_SHARE, MIN_COMMON = 0.1, 3  # of all messages that hold a word, from which on it says nothing
FULL_WEIGHT_CHARS = 6
KEYWORDS = 3  # a query of so many words or fewer has no words that only grammar asks for
MIN_KEYWORD_SHARE, MIN_SENTENCE_SHARE, MIN_PAIR_SHARE = 0.25, 0.5, 0.3  # of a query's weight that a passage must hold
MIN_PART_CHARS = 4
INEXACT_WEIGHT = 0.8  # of a word that only much the same ones stand for, or longer ones that hold it
ROLE_WEIGHTS = {"user": 1.6, "assistant": 1.0, "tool": 0.6}
FUSION_RANK = 60  # of reciprocal rank fusion
SHOWN_BESIDE = 3  # so many of the first hits show both sides of an exchange
SHOWN_CHARS = 240  # of a hit by distance alone
SNIPPET_CHARS, MIN_SNIPPET_CHARS = 300, 100  # shown of a hit: of one query, and of many
TIE_SHARE = 0.001  # for each word, also those that say nothing alone

_UNSPACED = re.compile(rf"{UNSPACED}+")


class MessageMatch(Data, frozen=True):
    """A matching text. `beside` is the message before it or the answer to it."""

    text: IndexedText
    passage: str
    words: tuple[str, ...]
    beside: IndexedText | None = None


class Term(Data, frozen=True):
    """A word of a query, a compound name (`audit-log`), or two characters of a script without blanks."""

    word: str
    phrases: tuple[str, ...]
    weight: float
    is_pair: bool


class ScoredPassage(NamedTuple):
    """The share of a query that a passage covers, and the terms it contains."""

    share: float
    passage: int
    held: list[Term]


class Query(Data, frozen=True):
    terms: tuple[Term, ...]

    @property
    def phrases(self) -> list[str]:
        """Words that candidates must contain: all except very common ones, or all if there are no others."""
        counting = [term for term in self.terms if term.weight] or self.terms
        return [phrase for term in counting for phrase in term.phrases]

    def weigh(self, held: Sequence[Term]) -> float:
        """Return the share of the query that these terms cover, or 0 if it is too small to answer it."""
        counting = [term for term in self.terms if term.weight]
        if not counting:
            return float(len(held) == len(self.terms))
        share = sum(term.weight for term in held) / sum(term.weight for term in counting)
        if len(counting) <= KEYWORDS:
            enough = share >= MIN_KEYWORD_SHARE
        else:
            pairs = sum(term.is_pair for term in counting)
            least = MIN_PAIR_SHARE if 2 * pairs > len(counting) else MIN_SENTENCE_SHARE
            enough = share >= least and sum(term.weight > 0 for term in held) > 1
        return share if enough else 0.0


def search_messages(
    texts: SessionTexts, queries: Iterable[str], limit: int, model: str = "", vectors: Sequence[Vector] = ()
) -> list[MessageMatch]:
    """Find the texts that answer any of the queries, best first: exact words, then longer and similar ones.

    The request that is being answered is left out; what followed it comes last. `vectors` are the embeddings of the
    queries by `model`.
    """
    texts.refresh()
    if not texts.session:
        return []
    nearest = [texts.find_nearest(model, vector, limit) for vector in vectors]
    parsed = [query for query in (_read_query(texts, query) for query in list(queries)[:MAX_QUERIES]) if query.terms]
    working = texts.find_last_request()

    def is_late(text: IndexedText) -> bool:
        return 0 < working <= text.number

    def find(widened: Sequence[Query], near: Sequence[Sequence[int]] = ()) -> list[MessageMatch]:
        found = _find_matches(texts, widened, near, limit + 1, is_late)
        return [match for match in found if match.text.number != working or match.text.role != "user"]

    matches = find(parsed, nearest)
    if sum(not is_late(match.text) for match in matches) < limit:
        known = {match.text.row for match in matches}
        matches += [match for match in find(_widen_queries(texts, parsed)) if match.text.row not in known]
    ordered = sorted(matches or find(_widen_queries(texts, parsed, scan=True)), key=lambda match: is_late(match.text))
    return _add_neighbours(texts, ordered[:limit])


def _read_query(texts: SessionTexts, query: str) -> Query:
    names, words, pairs = [], [], []
    for typed in query.split():
        folded = fold_text(typed)
        runs = _UNSPACED.findall(folded)
        pairs += [run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1))]  # most words there have two
        parts = _UNSPACED.sub(" ", folded).split()
        name = " ".join(parts) if len(parts) > 1 and not runs else ""
        is_identifier = bool(name) and has_digit(name)  # none of its parts can stand for it
        names += [name] if is_identifier or (name and texts.holds(name)) else []
        words += [] if is_identifier else [word for word in parts if _is_telling_word(word)]
    chosen = list(dict.fromkeys([*names, *words, *pairs]))[:MAX_TERMS]
    return Query(terms=tuple(_make_term(texts, word, is_pair=word in pairs) for word in chosen))


def _is_telling_word(word: str) -> bool:
    return len(word) > 1 or word.isdigit() or is_picture(word)


def _make_term(
    texts: SessionTexts, word: str, *, is_pair: bool = False, parts: Sequence[str] = (), widen: bool = False
) -> Term:
    """Weigh a word. If it is not found, or to widen, longer words stand for it, else similar ones or its `parts`. A
    word with a digit is an identifier: other ones of the same length or less are different things."""
    count = texts.message_count
    common = max(MIN_COMMON, int(COMMON_SHARE * count))
    phrases = [quote_phrase(" ".join(word) if is_pair else word)]
    held, inexact = texts.count_matches(phrases[0], common), False
    is_identifier = has_digit(word)
    if (widen or not held) and not is_pair:
        longer = texts.find_longer(word)
        inexact = not longer
        phrases += map(quote_phrase, longer or ([] if is_identifier else [*texts.find_alike(word), *parts]))
        held = texts.count_matches(f"({' OR '.join(phrases)})", common) if len(phrases) > 1 else held
    rarity = 0.0 if held > common else math.log((count + 1) / min(max(held, 1), count)) / math.log(count + 1)
    is_whole = is_pair or is_identifier or not word.isalnum()
    length_weight = 1.0 if is_whole else min(1.0, (len(word) - 1) / (FULL_WEIGHT_CHARS - 1))
    return Term(
        word=word,
        phrases=tuple(phrases),
        weight=rarity * length_weight * (INEXACT_WEIGHT if inexact and held else 1.0),
        is_pair=is_pair,
    )


def _widen_queries(texts: SessionTexts, queries: Sequence[Query], *, scan: bool = False) -> list[Query]:
    """Let words match longer and similar words, and after a `scan` of all indexed words those that contain them."""
    terms = [term for query in queries for term in query.terms]
    words = [term.word for term in terms if not term.is_pair]
    wanted = [word for word in words if len(word) >= MIN_PART_CHARS and not has_digit(word)]
    parts = texts.find_containing(wanted) if scan and wanted else {}

    def widen(term: Term) -> Term:
        return _make_term(texts, term.word, is_pair=term.is_pair, parts=parts.get(term.word, ()), widen=True)

    return [Query(terms=tuple(map(widen, query.terms))) for query in queries]


def _find_matches(
    texts: SessionTexts,
    queries: Sequence[Query],
    nearest: Sequence[Sequence[int]],
    limit: int,
    is_late: Callable[[IndexedText], bool],
) -> list[MessageMatch]:
    """Find up to `limit` matches, best first; late ones come last."""
    rows = list(dict.fromkeys(row for query in queries for row in texts.rank(query.phrases, MAX_CANDIDATES)))
    table = PassageTable(texts.read(rows), [phrase for query in queries for phrase in query.phrases])
    try:
        scores, best, leading = _score_passages(table, queries, rows)
        late = {row for row, (found, *_) in best.items() if is_late(table.owners[found.passage])}
        place = {row: at for at, row in enumerate(rows)}
        ranked = sorted(scores, key=lambda row: (row in late, row not in leading, -scores[row], place[row]))[:limit]
        chars = max(MIN_SNIPPET_CHARS, SNIPPET_CHARS // max(1, len(queries)))
        matches = {row: _make_match(table, best[row], chars) for row in ranked}
    finally:
        table.close()
    if not any(nearest):
        return list(matches.values())
    return _add_nearest(texts, matches, ranked, nearest)


def _make_match(table: PassageTable, found: Sequence[ScoredPassage], chars: int) -> MessageMatch:
    """Make a match of the best passage, with the words of all queries that the text answers."""
    shown = [table.show(one.passage, [phrase for term in one.held for phrase in term.phrases]) for one in found]
    words = dict.fromkeys(text[start:end].casefold() for text, matches in shown for start, end in matches)
    return MessageMatch(text=table.owners[found[0].passage], passage=make_excerpt(*shown[0], chars), words=tuple(words))


def _score_passages(
    table: PassageTable, queries: Sequence[Query], rows: Sequence[int]
) -> tuple[dict[int, float], dict[int, list[ScoredPassage]], set[int]]:
    """Score each text by its best passage for every query. Also returns these passages, the best first, and the best
    text of each query."""
    scores: dict[int, float] = {}
    best: dict[int, list[ScoredPassage]] = {}
    weights = {text.row: ROLE_WEIGHTS.get(text.role, 1.0) for text in table.owners.values()}
    leading: set[int] = set()
    for query in queries:
        holding: dict[int, list[Term]] = {}
        for term in query.terms:
            for passage in table.find(term.phrases):
                holding.setdefault(passage, []).append(term)
        found: dict[int, ScoredPassage] = {}
        for passage, held in holding.items():
            share, row = query.weigh(held), table.owners[passage].row
            share += share and len(held) * TIE_SHARE
            if share and (row not in found or share > found[row].share):
                found[row] = ScoredPassage(share, passage, held)
        for row, one in found.items():
            scores[row] = scores.get(row, 0.0) + one.share * weights[row]
            best.setdefault(row, []).append(one)
        if found:
            leading.add(max(found, key=lambda row: (found[row].share * weights[row], -rows.index(row))))
    for passages in best.values():
        passages.sort(key=lambda one: -one.share)
    return scores, best, leading


def _add_nearest(
    texts: SessionTexts, matches: Mapping[int, MessageMatch], ranked: Sequence[int], nearest: Sequence[Sequence[int]]
) -> list[MessageMatch]:
    """Merge the ranking by words with those by distance, using reciprocal rank fusion."""
    scores: dict[int, float] = {}
    for ranking in (ranked, *nearest):
        for place, row in enumerate(ranking):
            scores[row] = scores.get(row, 0.0) + 1 / (FUSION_RANK + place)
    order = sorted(scores, key=lambda row: -scores[row])
    others = {text.row: text for text in texts.read([row for row in order if row not in matches])}
    return [
        matches.get(row)
        or MessageMatch(text=others[row], passage=shorten_line(others[row].text, SHOWN_CHARS), words=())
        for row in order
        if row in matches or row in others
    ]


def _add_neighbours(texts: SessionTexts, found: Sequence[MessageMatch]) -> list[MessageMatch]:
    """Add the other side of the exchange to the first hits, unless it is a hit itself."""
    shown = {match.text.number for match in found}

    def add(match: MessageMatch) -> MessageMatch:
        number = match.text.number + (1 if match.text.role == "user" else -1)
        if match.text.call or number in shown:
            return match
        return msgspec.structs.replace(match, beside=texts.read_neighbour(match.text, number))

    return [*map(add, found[:SHOWN_BESIDE]), *found[SHOWN_BESIDE:]]
