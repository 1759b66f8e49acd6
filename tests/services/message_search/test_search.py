"""Questions find the message that answers them."""

from __future__ import annotations

import pytest

from ollm.services.message_search import SearchedMessage, find_passage, search_messages
from ollm.services.message_search.words import GROUPS

SAID = [
    "The settings of resamo-svc live in /etc/resamo/a91f.toml.",
    "Please look at the parser, it drops the last line of a file.",
    "We decided that harvest keeps 5000 rows at most.",
    "The owner of the voucher service is Marta, ask her before you touch it.",
    "billing listens on port 8443, not on the usual one.",
    "The nightly job was repaired by commit 9f31c2ab.",
    "请把订单服务的超时设为三十秒。",
    "The token for mailer is read from the variable MAILER_KEY_7.",
]
MESSAGES = [
    message
    for place, text in enumerate(SAID)
    for message in (
        SearchedMessage(number=2 * place + 1, role="user", text=text),
        SearchedMessage(number=2 * place + 2, role="assistant", text=f"I looked at it and did step {place}. " * 5),
    )
]


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("Where is resamo configured?", 1),
        ("What is wrong with the parsing of files?", 3),
        ("How many records may harvest hold?", 5),
        ("Who is responsible for vouchers?", 7),
        ("Which socket does billing serve on?", 9),
        ("What change fixed the nightly job?", 11),
        ("订单服务的超时是多少？", 13),
        ("Which environment name has the secret of the mailer?", 15),
        ("resam", 1),
        ("oucher", 7),
        ("MAILER_KEY", 15),
        ("9f31c2", 11),
    ],
)
def test_a_question_in_other_words_finds_its_answer_first(question: str, number: int) -> None:
    found = search_messages(MESSAGES, question, 3)
    assert found
    assert found[0].message.number == number


@pytest.mark.parametrize(
    "question", ["What is the capital of Mongolia?", "quantum chromodynamics", "kubernetes ingress", "宇宙飞船"]
)
def test_what_nobody_spoke_of_is_not_found(question: str) -> None:
    assert search_messages(MESSAGES, question, 3) == []


@pytest.mark.parametrize(("asked", "other"), [(group.split()[0], group.split()[-1]) for group in GROUPS])
def test_a_word_that_means_the_same_is_found(asked: str, other: str) -> None:
    messages = [SearchedMessage(number=1, role="user", text=f"so it was {other} there")]

    assert [hit.message.number for hit in search_messages(messages, f"{asked}?", 3)] == [1]


def test_what_the_user_said_comes_before_what_a_tool_printed() -> None:
    messages = [
        SearchedMessage(number=1, role="tool", text="port 8443 port 8443 listening on port 8443"),
        SearchedMessage(number=2, role="user", text="Use port 8443 from now on, and restart the gateway."),
    ]
    assert search_messages(messages, "which port?", 2)[0].message.number == 2


def test_a_passage_shows_where_the_words_are() -> None:
    text = "filler " * 400 + "the port of billing is 8443 " + "filler " * 400
    passage = find_passage(text, ["port", "bill"], 120)
    assert "billing is 8443" in passage
    assert len(passage) <= 125


def test_an_answer_is_found_by_the_words_of_the_question_before_it() -> None:
    messages = [
        SearchedMessage(number=1, role="user", text="Which queue do emails go through?"),
        SearchedMessage(number=2, role="assistant", text="Through mail.outbound, ninety per minute."),
        *(message for message in MESSAGES if message.number > 2),
    ]
    found = search_messages(messages, "What was the queue of our emails?", 3)

    assert {found[0].message.number, *(other.number for other in found[0].beside)} == {1, 2}
    assert all(hit.message.number not in (1, 2) for hit in found[1:])


def test_of_two_messages_the_one_that_holds_a_time_answers_when() -> None:
    messages = [
        SearchedMessage(number=1, role="user", text="The backup runs on the blue disk."),
        SearchedMessage(number=2, role="user", text="The backup runs every night at 02:40."),
        SearchedMessage(number=3, role="user", text="The backup runs as the user carol."),
    ]
    assert search_messages(messages, "When does the backup run?", 1)[0].message.number == 2


def test_a_word_with_a_prefix_is_one_word_however_it_is_written() -> None:
    messages = [SearchedMessage(number=1, role="user", text="The preproduction box is called heron."), *MESSAGES[2:]]
    assert search_messages(messages, "Which one is pre-production?", 1)[0].message.number == 1
