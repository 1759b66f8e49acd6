"""Words are compared by their stems."""

from __future__ import annotations

from ollm.services.message_search.words import STOP_WORDS, stem


def test_endings_of_grammar_are_taken_off() -> None:
    assert stem("listening") == stem("listens") == stem("listen")
    assert stem("configurations") == stem("configuration")
    assert stem("8443") == "8443"
    assert stem("bus") == "bus"


def test_what_every_question_has_is_left_out() -> None:
    assert "the" in STOP_WORDS
    assert "port" not in STOP_WORDS


def test_irregular_and_doubled_forms_have_one_stem() -> None:
    assert stem("rewritten") == stem("rewrote") == stem("rewrite")
    assert stem("dropped") == stem("drop")
