"""Questions of people about what they said in a long conversation; the set is the one the measurement uses."""

from __future__ import annotations

import pytest
from bench.recall.__main__ import (
    ASKED,
    UNRELATED,
    count_found,
    count_found_exchanges,
    find_shared_words,
    list_unrelated_answers,
)
from bench.recall.conversation import make_everyday_conversation, make_passing_conversation
from bench.recall.everyday import EVERYDAY_HELD_BACK
from bench.recall.facts import FACTS
from bench.recall.fresh import FRESH
from bench.recall.in_passing import SECOND_SET

from tests.sizes import SOAK, size

MIN_FOUND = 40  # of 48


@pytest.mark.parametrize(
    ("asked", "least"),
    [("names the subject", MIN_FOUND), ("without its rarest word", MIN_FOUND), ("part of a word", 48)],
)
def test_the_answer_is_among_the_first_three_hits(asked: str, least: int) -> None:
    missed: list[str] = []
    assert count_found(FRESH, ASKED[asked], missed) >= least, missed


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
def test_questions_of_everyday_find_more_by_the_other_side_of_an_exchange() -> None:
    missed: list[str] = []
    assert count_found_exchanges(EVERYDAY_HELD_BACK, make_everyday_conversation(), missed) >= 11, missed


def test_what_was_said_in_passing_is_found_by_questions_that_do_not_name_it() -> None:
    asked, missed = SECOND_SET[:: size(8, 1)], list[str]()
    assert count_found_exchanges(asked, make_passing_conversation(), missed) >= len(asked) * MIN_FOUND // 48, missed


def test_what_nobody_spoke_of_finds_nothing() -> None:
    assert len(list(list_unrelated_answers())) <= len(UNRELATED) // 8


def test_no_question_holds_its_answer() -> None:
    for fact in (*FACTS, *FRESH):
        assert fact.value in fact.text
        assert fact.value.casefold() not in fact.named.casefold()
        assert fact.value.casefold() not in fact.reworded.casefold()


def test_questions_in_other_words_share_none_but_a_few() -> None:
    assert sum(bool(find_shared_words(fact)) for fact in (*FACTS, *FRESH)) <= 4
