"""The table of meanings is a table: words, each once in a line, never alone."""

from __future__ import annotations

from ollm.services.message_search.meanings import GROUPS
from ollm.services.message_search.words import get_meanings, stem


def test_a_line_has_several_words_each_once() -> None:
    for group in GROUPS:
        words = group.split()
        assert len(words) >= 2, group
        assert len(set(words)) == len(words), group
        assert group == group.casefold()


def test_meanings_go_both_ways() -> None:
    meanings = get_meanings()
    for word, others in meanings.items():
        assert all(word in meanings[other] for other in others)
    assert stem("secret") in meanings[stem("token")]
