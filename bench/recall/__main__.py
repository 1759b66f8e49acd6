"""`python -m bench.recall --facts held-back`: questions about a long conversation, and how many `recall` answers."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

from bench.recall.conversation import make_conversation, make_everyday_conversation, make_passing_conversation
from bench.recall.everyday import EVERYDAY_HELD_BACK, EVERYDAY_TUNING, Exchange
from bench.recall.facts import HELD_BACK, TUNING, ToldFact
from bench.recall.fresh import FRESH
from bench.recall.in_passing import FIRST_SET, SECOND_SET
from ollm.services.message_search import SearchedMessage, search_messages
from ollm.services.message_search.search import split_question, split_words
from ollm.services.message_search.words import stem

FIRST_HITS = 3
MIN_WORD_CHARS = 5
SETS = {"tuning": TUNING, "held-back": HELD_BACK, "fresh": FRESH}
UNRELATED = (
    "What is the capital of Mongolia?",
    "quantum chromodynamics lattice",
    "Who won the chess olympiad?",
    "Which spice goes into a goulash?",
    "Who painted the ceiling of the chapel?",
    "Which key is the sonata in?",
    "How is the Kubernetes ingress annotated?",
    "What did the umbrella corporation announce?",
    "xyzzy plugh",
    "宇宙飞船的燃料是什么？",
    "When did the Roman empire fall?",
    "How deep is the ocean trench?",
)


def take_part(fact: ToldFact) -> str:
    """The middle of the word that the fewest messages have."""
    words = [word for word in split_words(fact.text) if len(word) >= MIN_WORD_CHARS] or split_words(fact.text)
    word = min(words, key=lambda word: (count_holding()[stem(word)], -len(word)))
    return word[1:-1]


def drop_key_word(fact: ToldFact) -> str:
    """The question that names the subject, without the one word that the fewest messages have."""
    shared = split_question(fact.named).keys() & set(map(stem, split_words(fact.text)))
    key = min(sorted(shared), key=lambda word: count_holding()[word])
    return " ".join(word for word in fact.named.split() if key not in map(stem, split_words(word)))


@cache
def count_holding() -> Counter[str]:
    """How many messages have a word, by stem."""
    return Counter(word for message in make_conversation() for word in set(map(stem, split_words(message.text))))


def find_shared_words(fact: ToldFact) -> set[str]:
    """Words of the fact that the question in other words has, too."""
    return split_question(fact.reworded).keys() & set(map(stem, split_words(fact.text)))


ASKED: dict[str, Callable[[ToldFact], str]] = {
    "names the subject": lambda fact: fact.named,
    "without its rarest word": drop_key_word,
    "shares no word": lambda fact: fact.reworded,
    "part of a word": take_part,
}


def count_found(facts: tuple[ToldFact, ...], ask: Callable[[ToldFact], str], missed: list[str] | None = None) -> int:
    messages = make_conversation()
    found = 0
    for fact in facts:
        hits = search_messages(messages, ask(fact), FIRST_HITS)
        answered = any(fact.text in hit.message.text for hit in hits)
        found += answered
        if not answered and missed is not None:
            missed.append(f"{ask(fact)} <- {fact.text}")
    return found


def count_found_exchanges(
    exchanges: tuple[Exchange, ...], messages: tuple[SearchedMessage, ...], missed: list[str] | None = None
) -> int:
    """Those whose fact stands in the first hits, or beside them, where `recall` shows it with them."""
    found = 0
    for exchange in exchanges:
        hits = search_messages(messages, exchange.question, FIRST_HITS)
        answered = any(exchange.fact in (hit.message.text, *(other.text for other in hit.beside)) for hit in hits)
        found += answered
        if not answered and missed is not None:
            missed.append(f"{exchange.question} <- {exchange.fact}")
    return found


def list_unrelated_answers() -> Iterator[str]:
    messages = make_conversation()
    return (question for question in UNRELATED if search_messages(messages, question, FIRST_HITS))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.recall", description=__doc__)
    parser.add_argument("--facts", choices=tuple(SETS), default="tuning", help="which questions are asked")
    parser.add_argument("--verbose", action="store_true", help="list what was not found")
    asked = parser.parse_args()
    facts = SETS[asked.facts]
    for name, ask in ASKED.items():
        missed: list[str] = []
        print(f"{name:<24} {count_found(facts, ask, missed)} of {len(facts)}")
        if asked.verbose:
            print(*(f"  {line}" for line in missed), sep="\n")
    everyday, passing = make_everyday_conversation(), make_passing_conversation()
    for name, exchanges, messages in (
        ("everyday, tuned on", EVERYDAY_TUNING, everyday),
        ("everyday, held back", EVERYDAY_HELD_BACK, everyday),
        ("in passing, first set", FIRST_SET, passing),
        ("in passing, second set", SECOND_SET, passing),
    ):
        print(f"{name:<24} {count_found_exchanges(exchanges, messages)} of {len(exchanges)}")
    print(f"unrelated questions that found something: {len(list(list_unrelated_answers()))} of {len(UNRELATED)}")


if __name__ == "__main__":
    main()
