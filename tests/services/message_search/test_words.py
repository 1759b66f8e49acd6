"""Words are compared by their stems."""

from __future__ import annotations

import pytest

from ollm.services.message_search.words import GROUPS, STOP_WORDS, get_meanings, stem


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


@pytest.mark.parametrize(
    ("word", "stemmed"),
    [
        ("dropped", "drop"), ("egg", "egg"), ("eggs", "egg"), ("ebbed", "ebb"), ("adds", "add"), ("putting", "put"),
        ("falling", "fal"), ("being", "being"), ("buses", "bus"), ("uses", "use"), ("yes", "yes"), ("does", "doe"),
        ("naïve", "naïve"), ("v2s", "v2s"), ("found", "find"), ("people", "person"), ("cities", "cit"), ("toys", "toy"),
    ],
)  # fmt: skip
def test_the_stem_of_a_word(word: str, stemmed: str) -> None:
    assert stem(word) == stemmed


def test_each_word_of_a_group_means_all_others_and_not_itself() -> None:
    meanings = get_meanings()

    for group in GROUPS:
        stems = {stem(word) for word in group.split()}
        for one in stems:
            assert stems - {one} <= set(meanings[one])
            assert one not in meanings[one]
