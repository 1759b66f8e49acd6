"""Finds the messages of one conversation that answer a question: BM25 over word stems, trigrams for parts of words.

Stop words do not count, words of one meaning in this trade find each other, what the user said comes first, a message
counts with what was asked or answered beside it, and when nothing really fits nothing is found. Pure: texts in, numbers
out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ollm.domain.struct import Data
from ollm.services.message_search.answer_kinds import find_answer_patterns
from ollm.services.message_search.words import STOP_WORDS, get_meanings, stem

K1, B = 1.2, 0.6  # of BM25: how soon repetition stops counting, how much length does
ROLE_WEIGHTS = {"user": 1.6, "assistant": 1.0, "tool": 0.6}
MEANING_WEIGHT = 0.6  # of a word that means the same
PART_WEIGHT = 0.8  # of a word that the one asked for is a part of
ALIKE_WEIGHT = 0.5  # of a word that looks much the same
MIN_ALIKE_SHARE = 0.6  # of their trigrams two words have in common
MIN_PART_CHARS = 3
MAX_LONGER_CHARS = 24  # than the other, for two words to be compared
MIN_COVERAGE = 0.34  # of what a question asks for by weight that a message must hold
MIN_RARE_COVERAGE = 0.12  # where it holds a word of the question, as it is, that hardly any other does
RARE_SHARE = 0.6  # of the weight of a word that nobody said
BESIDE_WEIGHT = 0.5  # of a word that only the question before an answer has, or the answer after what was told
KIND_WEIGHT = 1.3  # of a text that holds what the question asks for: a time, an amount, a person, a place
MAX_BESIDE_CHARS = 4_000
MAX_SCANNED_CHARS = 60_000

_WORD = re.compile(r"[a-z0-9à-ɏЀ-ӿ]+")
_IDEOGRAPHS = re.compile(r"[぀-ヿ㐀-鿿가-힯豈-﫿]+")
_PREFIXED = re.compile(r"\b(pre|post|re|non|sub|co|de|un|e|multi|inter)-(?=[a-z])")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class SearchedMessage(Data, frozen=True):
    """A message as it is looked through."""

    number: int
    role: str
    text: str


class MessageMatch(Data, frozen=True):
    message: SearchedMessage
    score: float
    words: tuple[str, ...]  # of the message, that were matched
    beside: tuple[SearchedMessage, ...] = ()  # what was asked before it, or answered to it


def split_words(text: str) -> list[str]:
    """The words as they are written, ideographs in overlapping pairs."""
    spaced = _PREFIXED.sub(r"\1", _CAMEL.sub(" ", text).casefold())
    found = _WORD.findall(spaced)
    for run in _IDEOGRAPHS.findall(spaced):
        found += [run[at : at + 2] for at in range(len(run) - 1)] or [run]
    return found


def split_question(text: str) -> dict[str, str]:
    """What a question asks for, by stem: its words without those that every question has."""
    words = split_words(text)
    return {stem(word): word for word in words if word not in STOP_WORDS} or {stem(word): word for word in words}


class _Texts:
    """The messages as counted words."""

    def __init__(self, messages: Sequence[SearchedMessage]) -> None:
        self.forms: dict[str, set[str]] = {}  # of a stem, as they were written
        self.counts = [self._count_words(message.text[:MAX_SCANNED_CHARS]) for message in messages]
        self.lengths = [sum(counts.values()) for counts in self.counts]
        self.mean_length = max(1.0, sum(self.lengths) / max(1, len(self.lengths)))
        self.spread = Counter(word for counts in self.counts for word in counts)

    def _count_words(self, text: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        for word, count in Counter(split_words(text)).items():
            counts[stem(word)] += count
            self.forms.setdefault(stem(word), set()).add(word)
        return counts

    def weigh_word(self, word: str) -> float:
        """How telling a word is: the fewer messages hold it, the more."""
        total, holding = len(self.counts), self.spread[word]
        return math.log(1 + (total - holding + 0.5) / (holding + 0.5))

    def score(self, place: int, word: str) -> float:
        count = self.counts[place][word]
        if not count:
            return 0.0
        longer = 1 - B + B * self.lengths[place] / self.mean_length
        return self.weigh_word(word) * count * (K1 + 1) / (count + K1 * longer)

    def expand(self, wanted: str, written: str) -> dict[str, float]:
        """The words of these texts that count for the one asked for, with how much each does."""
        found: dict[str, float] = {wanted: 1.0} if wanted in self.spread else {}
        for other in get_meanings().get(wanted, ()):
            if other in self.spread:
                found.setdefault(other, MEANING_WEIGHT)
        if len(wanted) >= MIN_PART_CHARS:
            mine = _list_trigrams(wanted)
            for word, forms in self.forms.items():
                if word not in found and (weight := _compare_words(wanted, written, mine, word, forms)):
                    found[word] = weight
        return found


def _list_trigrams(word: str) -> set[str]:
    return {word[at : at + 3] for at in range(len(word) - 2)}


def _compare_words(wanted: str, written: str, mine: set[str], word: str, forms: set[str]) -> float:
    """What a word counts for the one asked for: one that it is a part of, one that is a part of it, one much alike."""
    if len(word) < MIN_PART_CHARS or abs(len(word) - len(wanted)) > MAX_LONGER_CHARS:
        return 0.0
    if any(written in form for form in forms):
        return PART_WEIGHT
    if wanted in word or (len(word) >= 5 and word in wanted):
        return ALIKE_WEIGHT
    if wanted.isdigit() or word.isdigit() or len(wanted) < 5:
        return 0.0
    if word[:2] != wanted[:2] and word[-2:] != wanted[-2:]:
        return 0.0  # alike words begin or end alike
    theirs = _list_trigrams(word)
    common = len(mine & theirs)
    return ALIKE_WEIGHT if common and 2 * common / (len(mine) + len(theirs)) >= MIN_ALIKE_SHARE else 0.0


def search_messages(messages: Iterable[SearchedMessage], question: str, limit: int) -> list[MessageMatch]:
    """The messages that fit best, best first, one of each exchange; none when none holds enough of what was asked."""
    looked = list(messages)
    wanted = split_question(question)
    if not wanted or not looked:
        return []
    texts = _Texts(looked)
    expanded = {word: texts.expand(word, written) for word, written in wanted.items()}
    importance = {word: _weigh_words(texts, found) for word, found in expanded.items()}
    held = [
        {word: _find_best_score(texts, place, found) for word, found in expanded.items()}
        for place in range(len(looked))
    ]
    beside = _find_beside(looked)
    kinds = find_answer_patterns(question)
    hits = []
    for place, message in enumerate(looked):
        near = [held[other] for other in beside[place]]
        score = _score_message(held[place], near, importance, len(looked))
        if score:
            weight = ROLE_WEIGHTS.get(message.role, 1.0) * (KIND_WEIGHT if _holds(message, kinds) else 1.0)
            words = tuple(dict.fromkeys(word for own, word in held[place].values() if own))
            pair = tuple(looked[other] for other in beside[place])
            hits.append(MessageMatch(message=message, score=score * weight, words=words, beside=pair))
    hits.sort(key=lambda hit: (-hit.score, -hit.message.number))
    return _take_one_of_each(hits, limit)


def _find_beside(messages: Sequence[SearchedMessage]) -> list[tuple[int, ...]]:
    """For each message the other side of its exchange: the user's words, or the last answer to them."""
    found: list[tuple[int, ...]] = [()] * len(messages)
    asked: int | None = None
    answer: int | None = None
    for place, message in enumerate(messages):
        if message.role == "user":
            asked, answer = place, None
        elif message.role == "assistant" and asked is not None and len(message.text) <= MAX_BESIDE_CHARS:
            answer = place
            found[asked] = (answer,)
            found[place] = (asked,) if len(messages[asked].text) <= MAX_BESIDE_CHARS else ()
    return found


def _score_message(
    own: dict[str, tuple[float, str]],
    near: Sequence[dict[str, tuple[float, str]]],
    importance: dict[str, float],
    count: int,
) -> float:
    """How well a message answers, with what is beside it; 0 where it holds too little of what was asked."""
    whole = sum(importance.values())
    beside = {word: max((held[word][0] for held in near), default=0.0) * BESIDE_WEIGHT for word in own}
    scores = {word: max(score, beside[word]) for word, (score, _) in own.items()}
    coverage = sum(importance[word] * (1.0 if own[word][0] else BESIDE_WEIGHT) for word in own if scores[word]) / whole
    rarest = RARE_SHARE * math.log(1 + 2 * count)
    rare = any(score and found == word and importance[word] >= rarest for word, (score, found) in own.items())
    if coverage < (MIN_RARE_COVERAGE if rare else MIN_COVERAGE):
        return 0.0
    return sum(scores.values()) * (0.5 + coverage)


def _holds(message: SearchedMessage, kinds: Sequence[re.Pattern[str]]) -> bool:
    return any(kind.search(message.text[:MAX_BESIDE_CHARS]) for kind in kinds)


def _take_one_of_each(hits: Sequence[MessageMatch], limit: int) -> list[MessageMatch]:
    """The best of each exchange: its other side is shown with it."""
    taken: list[MessageMatch] = []
    shown: set[int] = set()
    for hit in hits:
        if hit.message.number not in shown:
            taken.append(hit)
            shown |= {hit.message.number, *(other.number for other in hit.beside)}
        if len(taken) == limit:
            break
    return taken


def _weigh_words(texts: _Texts, found: dict[str, float]) -> float:
    """What a word of the question weighs; one that nobody said weighs as much as the rarest that was."""
    return max((texts.weigh_word(word) for word in found), default=math.log(1 + 2 * len(texts.counts)))


def _find_best_score(texts: _Texts, place: int, found: dict[str, float]) -> tuple[float, str]:
    """The best score any of these words gives a message."""
    counts = texts.counts[place]
    scores = ((texts.score(place, word) * weight, word) for word, weight in found.items() if counts[word])
    return max(scores, default=(0.0, ""))


def find_passage(text: str, words: Sequence[str], characters: int) -> str:
    """The stretch of a text that holds most of these words, on one line."""
    if len(text) <= characters:
        return " ".join(text.split())
    places = sorted(_find_places(text, words))
    if not places:
        return " ".join(text[:characters].split()) + "…"

    def count_behind(at: int) -> int:
        return len({word for place, word in places if at <= place < at + characters * 3 // 4})

    begin = max(0, max((at for at, _ in places), key=count_behind) - characters // 4)
    piece = " ".join(text[begin : begin + characters].split())
    return ("…" if begin else "") + piece + ("…" if begin + characters < len(text) else "")


def _find_places(text: str, words: Sequence[str]) -> list[tuple[int, str]]:
    folded = text.casefold()
    found: list[tuple[int, str]] = []
    for word in words:
        at = folded.find(word)
        while at >= 0 and len(found) < 200:
            found.append((at, word))
            at = folded.find(word, at + len(word))
    return found
