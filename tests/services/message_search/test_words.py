"""Words that mean the same in this trade find each other."""

from __future__ import annotations

from ollm.services.message_search.words import STOP_WORDS, get_meanings, stem


def test_endings_of_grammar_are_taken_off() -> None:
    assert stem("listening") == stem("listens") == stem("listen")
    assert stem("configurations") == stem("configuration")
    assert stem("8443") == "8443"
    assert stem("bus") == "bus"


def test_meanings_go_both_ways() -> None:
    assert stem("secret") in get_meanings()[stem("token")]
    assert stem("token") in get_meanings()[stem("secret")]
    assert "the" in STOP_WORDS
    assert "port" not in STOP_WORDS
