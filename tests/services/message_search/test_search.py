"""Questions find the message that answers them."""

from __future__ import annotations

import pytest

from ollm.services.message_search import SearchedMessage, find_passage, search_messages
from ollm.services.message_search.search import split_question, split_words
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


TALK = [
    SearchedMessage(number=1, role="user", text="The gateway listens on port 8443, port 8443 only."),
    SearchedMessage(number=2, role="assistant", text="Noted: the gateway uses 8443."),
    SearchedMessage(number=3, role="tool", text="gateway gateway started, 8080 open, 3 workers"),
    SearchedMessage(number=4, role="user", text="Which schedule has the backup of the warehouse?"),
    SearchedMessage(number=5, role="assistant", text="It runs every night at 02:40 on heron."),
    SearchedMessage(number=6, role="user", text="Carol owns heron and the warehouses."),
    SearchedMessage(number=7, role="assistant", text="x" * 4100 + " heron"),
    SearchedMessage(number=8, role="system", text="getUserName reads the configuration of heron from herons.toml"),
]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("gateway port", [(1, 9.97, "gatewa port", (2,)), (3, 0.8595, "gatewa", ())]),
        ("When does the backup run?", [(4, 5.0947, "backup", (5,)), (3, 0.6488, "work", ())]),
        ("warehouse", [(6, 3.2418, "warehous", ()), (4, 2.9555, "warehous", (5,))]),
        ("heron", [(6, 1.7542, "heron", ()), (7, 1.3598, "heron", ()), (8, 1.2737, "heron", ())]),
        ("who owns heron?", [(6, 8.1754, "own heron", ())]),
        ("user name", [(8, 2.2815, "user", ())]),
        ("where is it configured?", [(8, 2.966, "configur", ())]),
        ("warehouze", [(6, 1.6209, "warehous", ()), (4, 1.4777, "warehous", (5,))]),
        ("844", [(1, 3.1926, "8443", (2,))]),
        ("of the", [(4, 4.5369, "of the", (5,)), (8, 2.2582, "of the", ())]),
        ("gatewayport", [(1, 1.0435, "gatewa", (2,)), (3, 0.5867, "gatewa", ())]),
        ("ouse", [(6, 2.5934, "warehous", ()), (4, 2.3644, "warehous", (5,))]),
        ("8444", []),
        ("confugiration", []),
        ("", []),
    ],
)
def test_how_much_each_message_counts(question: str, expected: list[tuple[int, float, str, tuple[int, ...]]]) -> None:
    """BM25 with its weights for roles, parts of words, meanings and exchanges: a weight that changes is seen here."""
    found = search_messages(TALK, question, 3)

    assert [
        (hit.message.number, round(hit.score, 4), " ".join(hit.words), tuple(other.number for other in hit.beside))
        for hit in found
    ] == expected
    assert [hit.message.number for hit in search_messages(TALK, question, 1)] == [hit[0] for hit in expected[:1]]


def test_words_are_split_as_people_write_them() -> None:
    assert split_words("getUserName pre-production 订单服务 单 A-b") == [
        *("get", "user", "name", "preproduction", "a", "b"),
        *("订单", "单服", "服务", "单"),
    ]
    assert split_question("Which port?") == {"port": "port"}
    assert split_question("which is it") == {"which": "which", "is": "is", "it": "it"}


@pytest.mark.parametrize(
    ("words", "characters", "passage"),
    [
        (["port", "bill"], 40, "…iller the port of billing filler filler…"),
        (["zzz"], 40, "alpha beta. filler filler filler filler…"),
        (["alpha"], 40, "alpha beta. filler filler filler filler…"),
        (["x"], 40, "…t billing x"),
    ],
)
def test_a_passage_is_the_stretch_with_most_of_the_words(words: list[str], characters: int, passage: str) -> None:
    text = f"alpha beta. {'filler ' * 20}the port of billing {'filler ' * 20}port port billing x"

    assert find_passage(text, words, characters) == passage
    assert find_passage(text, words, len(text)) == text
    assert find_passage(text, words, len(text) - 1) != text


@pytest.mark.parametrize(
    ("asked", "said", "score"),
    [
        ("ports", "ports", 0.4315),
        ("ort", "port", 0.3452),
        ("eron", "heron", 0.3452),
        ("rt", "port", 0),
        ("heronry", "heron", 0.2158),
        ("123456", "12345", 0.2158),
        ("12345", "12346", 0),
        ("gatewayport", "port", 0),
        ("warehouze", "warehouse", 0.2158),
        ("varehouse", "warehouse", 0.2158),
        ("xarehousq", "warehouse", 0),
        ("garden", "warden", 0.2158),
        ("abcdx", "abcd", 0.2158),
        ("abcdef", "abcxyz", 0),
        ("port", "pore", 0),
        ("qwrtp", "qwrtp" + 12 * "zk", 0.3452),
        ("qwrtp", "qwrtp" + 12 * "zk" + "z", 0),
    ],
)
def test_what_a_word_that_is_much_the_same_counts(asked: str, said: str, score: float) -> None:
    found = search_messages([SearchedMessage(number=1, role="assistant", text=said)], asked, 3)

    assert [round(hit.score, 4) for hit in found] == ([score] if score else [])


@pytest.mark.parametrize(
    ("text", "words", "characters", "passage"),
    [
        ("short  text\nhere", ["text"], 16, "short text here"),
        ("0123456789 abcdefghi", ["zzz"], 10, "0123456789…"),
        ("0123456789 abcdefghi", [], 12, "0123456789 a…"),
        ("port 456789 abcdefghi", ["port"], 8, "port 456…"),
        ("012345678 port cdefghi", ["port"], 8, "…8 port c…"),
        ("0123456789 abc de port", ["port"], 8, "…e port"),
        ("0123456789 abc port", ["port"], 8, "…c port"),
        ("port a bill bbbbbbbb port", ["port", "bill"], 12, "port a bill…"),
        ("port aaaaaaaaaaaaaaaaaaa port bill b", ["port", "bill"], 12, "…aa port bill…"),
        ("port port aaaaaaaaaaaaaaaa bill port", ["port", "bill"], 12, "…aa bill port"),
        ("port 0123456789 port 0123456789", ["port"], 8, "port 012…"),
    ],
)
def test_the_stretch_that_is_shown_of_a_text(text: str, words: list[str], characters: int, passage: str) -> None:
    assert find_passage(text, words, characters) == passage


def test_a_word_that_stands_everywhere_does_not_hide_the_others() -> None:
    """Two hundred places are looked at, of all words together."""
    text = "aa " * 198 + "b " * 40 + "zz yy"

    assert find_passage(text, ["aa", "zz", "yy"], 20) == "…b b zz yy"
    assert find_passage(f"aa {text}", ["aa", "zz", "yy"], 20) == "aa aa aa aa aa aa aa…"


def test_what_is_alone_is_scored_as_well() -> None:
    """By the formula, with a text of one word and one of none."""
    lone = [SearchedMessage(number=1, role="user", text="heron")]
    blank = [*lone, SearchedMessage(number=2, role="user", text="")]

    assert [round(hit.score, 6) for hit in search_messages(lone, "heron?", 3)] == [0.690437]
    assert [round(hit.score, 6) for hit in search_messages(blank, "heron?", 3)] == [1.663553]
    assert search_messages([SearchedMessage(number=1, role="user", text="")], "heron?", 3) == []
    assert search_messages(blank, "heron or falcon?", 3) == [], "it holds too little of what is asked for"
    four = [SearchedMessage(number=n, role="user", text=text) for n, text in enumerate(("heron", "a b", "blue", "red"))]
    assert [round(hit.score, 6) for hit in search_messages(four, "heron or falcon?", 3)] == [1.760299]


@pytest.mark.parametrize(
    ("said", "found"), [("abcdexk", True), ("abcdxkz", False), ("zzcdefg", True), ("zbcdezg", False)]
)
def test_words_are_alike_that_share_three_fifths_of_their_trigrams_and_an_end(said: str, found: bool) -> None:
    messages = [SearchedMessage(number=1, role="user", text=said)]

    assert bool(search_messages(messages, "abcdefg", 3)) is found


def test_how_far_a_long_message_is_looked_through() -> None:
    def is_found(before: int) -> bool:
        text = "." * before + " zebra"
        return bool(search_messages([*MESSAGES, SearchedMessage(number=99, role="user", text=text)], "zebra", 3))

    assert is_found(60_000 - len(" zebra"))
    assert not is_found(60_000)
