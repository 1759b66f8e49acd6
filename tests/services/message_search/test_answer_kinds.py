"""What a question asks for, and what answers look like."""

from __future__ import annotations

import pytest

from ollm.services.message_search.answer_kinds import find_answer_patterns


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("When is the release?", "on Thursday", "with Anna"),
        ("How long may a token live?", "20 minutes at most", "as long as it must"),
        ("At what hour are copies made?", "at 02:40", "by the old machine"),
        ("支払いはいつですか", "毎月25日です", "銀行です"),
        ("How many workers are there?", "six of them", "a few of them"),
        ("Which port is it?", "8443", "the usual"),
        ("Who signs it off?", "ask Ines about it", "somebody must"),
        ("Where are uploads stored?", "under /srv/media", "on the other machine"),
    ],
)
def test_an_answer_of_the_kind_asked_for_is_told_from_another(question: str, answer: str, other: str) -> None:
    patterns = find_answer_patterns(question)

    assert any(pattern.search(answer) for pattern in patterns)
    assert not any(pattern.search(other) for pattern in patterns)


def test_a_question_that_does_not_tell_asks_for_no_kind() -> None:
    assert find_answer_patterns("What did we say about the parser?") == []
