"""Checkpoints age and merge, and never forget what they stand for."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.domain.context import Checkpoint, RequestLine, format_number_ranges
from ollm.domain.messages import PromptMessage
from ollm.services.checkpoints import CheckpointManager, merge_summaries, shorten_summary
from ollm.services.token_counting import TokenCounter
from tests.covers import covers

counter = TokenCounter()
TEXT = "\n".join(
    [
        "Goal:",
        *[f"- reach aim {n} before the others do" for n in range(9)],
        "Decisions:",
        *[f"- take road {n} and not the other one" for n in range(9)],
        "Facts: 8443; src/a.py",
    ]
)


def made(number: int, text: str = TEXT) -> Checkpoint:
    bare = Checkpoint(id=f"k{number}", text=text, message_ids=(number * 10, number * 10 + 1), timestamp="", tokens=0)
    return Checkpoint(
        **{**{f: getattr(bare, f) for f in bare.__struct_fields__}, "tokens": counter.count_message(bare.message)}
    )


@covers("H730")
def test_records_stand_untouched_until_they_take_too_much_and_are_then_written_anew_as_one() -> None:
    manager = CheckpointManager(counter)
    three = (made(1), made(2), made(3))
    cap = sum(old.tokens for old in three)

    assert manager.age(three, cap) == manager.age(three, cap + 500)
    assert manager.age(three, cap).checkpoints == three
    assert manager.age(three, cap).changed == ()

    four = manager.age((*three, made(4)), cap)
    (merged,) = four.checkpoints
    assert four.changed == (merged,)
    assert merged.age in ("medium", "compact")
    assert merged.tokens < 0.7 * cap
    assert merged.text.count("Goal:") == 1
    assert "Facts: 8443; src/a.py" in merged.text


def test_requests_outlive_the_summaries_beside_them() -> None:
    asked = tuple(RequestLine(number=n, text=f"Please mend part_{n} and keep port {9000 + n} open.") for n in range(20))
    records = [
        msgspec.structs.replace(made(number), requests=asked[number * 5 : number * 5 + 5]) for number in range(4)
    ]

    (merged,) = CheckpointManager(counter).age(records, 600, 500).checkpoints

    assert [line.number for line in merged.requests] == list(range(20 - len(merged.requests), 20))
    assert len(merged.requests) >= 9
    assert f"#19 {asked[19].text}" in merged.message.content


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("ab cd:\n-"), min_size=1, max_size=900), min_size=1, max_size=9),
    st.integers(300, 900),
)
def test_together_they_never_take_more_than_their_cap_and_keep_every_number(texts: list[str], cap: int) -> None:
    standing = [made(number, text) for number, text in enumerate(texts, 1)]

    aged = CheckpointManager(counter).age(standing, cap).checkpoints

    assert sum(old.tokens for old in aged) <= cap
    assert {n for old in aged for n in old.message_ids} == {n for old in standing for n in old.message_ids}
    assert all(old.tokens == counter.count_message(old.message) for old in aged)


def test_the_line_of_the_oldest_user_messages_does_not_age() -> None:
    line = Checkpoint(
        id="user-messages", text="User messages 1-9.", message_ids=(1, 9), timestamp="", tokens=30, age="compact"
    )

    aged = CheckpointManager(counter).age((line, *map(made, range(1, 9))), 600).checkpoints

    assert aged[0] is line


def test_shortening_never_leaves_a_heading_without_a_line_and_drops_facts_last() -> None:
    for tokens in range(4, 160, 3):
        lines = shorten_summary(TEXT, tokens, counter).splitlines()
        assert lines
        for line, below in zip(lines, [*lines[1:], "Facts:"], strict=True):
            assert not line.endswith(":") or below.startswith("-")
        assert counter.count_text("\n".join(lines)) <= max(tokens, 8) + 3
        if tokens > 40:
            assert lines[-1] == "Facts: 8443; src/a.py"


def test_shortening_keeps_the_top_of_every_heading() -> None:
    text = shorten_summary(TEXT, 70, counter)

    assert text.splitlines()[:2] == ["Goal:", "- reach aim 0 before the others do"]
    assert "Decisions:" in text
    assert counter.count_text(text) <= 75


def test_numbers_are_cited_as_ranges() -> None:
    assert format_number_ranges([3, 1, 2, 7, 9, 10]) == "1-3, 7, 9-10"
    assert format_number_ranges(range(2, 4000, 2)) == "2-3998"


class WordCounter(TokenCounter):
    """A word is a token."""

    def count_text(self, text: str) -> int:
        return len(text.split())


WORDS = WordCounter()
SHORT = (
    "intro line\nGoal:\n- a one two\n- b one two\nEmpty:\nDecisions:\n- c one two three\n- d\n"
    "  : not a heading:\nFacts: f1; f2; f three; f4"
)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (31, SHORT),
        (22, "intro line\nGoal:\n- a one two\n- b one two\nFacts: f1; f2; f three; f4"),
        (18, "intro line\nGoal:\n- a one two\nFacts: f2; f three; f4"),
        (14, "intro line\nFacts: f three; f4"),
        (10, "intro line\nFacts: f4"),
        (6, "intro line\nFacts: f4"),
        (5, "intro line"),
        (1, "intro li"),
    ],
)
def test_what_is_left_of_a_summary(tokens: int, text: str) -> None:
    assert shorten_summary(SHORT, tokens, WORDS) == text


def test_a_line_that_does_not_fit_is_cut_and_several_summaries_become_one() -> None:
    assert shorten_summary("Goal:\n- one two three four five six", 3, WORDS) == "- one tw"
    assert shorten_summary("Goal:", 0, WORDS) == ""
    texts = ["Goal:\n- old\nFacts: f1; f2", "Goal:\n- new\n- old\nDecisions:\n- x\nFacts: f2; f3", "", "Bare:"]
    assert merge_summaries(texts) == "Goal:\n- new\n- old\nDecisions:\n- x\nFacts: f1; f2; f3"


@pytest.mark.parametrize(
    ("cap", "ledger", "requests", "tokens", "age", "last"),
    [
        (196, None, [1, 2, 3, 4], 85, "medium", "- c two two three"),
        (60, None, [4], 58, "compact", "- a two two"),
        (200, 23, [3, 4], 85, "medium", "- d"),
        (200, 20, [4], 96, "medium", "- c one two three"),
        (200, 10, [], 82, "medium", "- c one two three"),
    ],
)
def test_what_records_become_when_they_are_written_anew(
    cap: int, ledger: int | None, requests: list[int], tokens: int, age: str, last: str
) -> None:
    def make(name: str, text: str, asked: tuple[int, ...], ids: tuple[int, ...]) -> Checkpoint:
        lines = tuple(RequestLine(number=number, text=f"do thing {number}") for number in asked)
        bare = Checkpoint(id=name, text=text, message_ids=ids, timestamp=name, tokens=0, requests=lines)
        return msgspec.structs.replace(bare, tokens=WORDS.count_message(bare.message))

    pinned = make("user-messages", "u v w", (), (1,))
    records = [pinned, make("k1", SHORT, (1, 2), (1, 2)), make("k2", SHORT.replace("one", "two"), (3, 4), (3, 9))]
    assert [record.tokens for record in records] == [21, 88, 88]
    manager = CheckpointManager(WORDS)
    assert manager.age(records, 197, 24).checkpoints == tuple(records)

    aged = manager.age(records, cap, ledger)

    assert aged.checkpoints[0] is pinned
    (merged,) = aged.changed
    assert aged.checkpoints[1:] == (merged,)
    assert [line.number for line in merged.requests] == requests
    assert (merged.id, merged.timestamp, merged.message_ids) == ("k2", "k2", (1, 2, 3, 9))
    assert (merged.tokens, merged.age) == (tokens, age)
    assert merged.text.splitlines()[-2:] == [last, "Facts: f1; f2; f three; f4"]


class CharacterCounter(TokenCounter):
    """A token a character, so that limits can be told by eye."""

    def count_text(self, text: str) -> int:
        return len(text)

    def count_message(self, message: PromptMessage) -> int:
        return len(message.content)


@pytest.mark.parametrize(
    ("line", "tokens", "left"),
    [
        ("x" * 10, 10, 10),
        ("x" * 10, 9, 8),
        ("x" * 10, 5, 8),
        ("x" * 9, 5, 7),
        ("x" * 8, 5, 8),
        ("x" * 20, 1, 7),
        ("x" * 15, 12, 12),
        ("x" * 16, 11, 9),
    ],
)
def test_a_single_line_is_cut_by_a_fifth_until_it_fits_or_is_short(line: str, tokens: int, left: int) -> None:
    assert shorten_summary(line, tokens, CharacterCounter()) == "x" * left


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (59, "A:\n- one\nB:\n- two\nFacts: x; y"),
        (30, "A:\n- one\nB:\n- two\nFacts: x; y"),
        (29, "A:\n- one\nFacts: x; y"),
        (22, "A:\n- one\nFacts: x; y"),
        (21, "A:\n- one\nFacts: y"),
        (18, "A:\n- one\nFacts: y"),
        (17, "A:\n- one"),
        (9, "A:\n- one"),
        (8, "- one"),
    ],
)
def test_what_each_token_more_leaves_of_a_summary(tokens: int, text: str) -> None:
    """Facts may take half; each line costs one more, a heading with its first line."""
    whole = "A:\n- one\nB:\n- two\nFacts: x; y"
    assert shorten_summary(whole + "\nC:\n- three and a half and more", tokens, CharacterCounter()) == text


@pytest.mark.parametrize(
    ("cap", "kept"),
    [(6226, 240), (6225, 220), (5726, 220), (5725, 202), (0, 0), (249, 0), (250, 1), (275, 1), (276, 2)],
)
def test_of_requests_that_fill_a_record_the_oldest_go_a_twelfth_at_a_time(cap: int, kept: int) -> None:
    asked = tuple(RequestLine(number=1000 + n, text=f"{n:03}") for n in range(240))
    record = msgspec.structs.replace(made(1, "Goal:"), requests=asked, tokens=10**6)

    (merged,) = CheckpointManager(CharacterCounter()).age([record], cap).checkpoints

    assert [line.number for line in merged.requests] == [line.number for line in asked[240 - kept :]]
