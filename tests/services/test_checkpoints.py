"""Checkpoints age and merge, and never forget what they stand for."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.domain.context import Checkpoint, format_number_ranges
from ollm.services.checkpoints import CheckpointManager, shorten_summary
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
def test_a_checkpoint_becomes_medium_and_then_compact_as_newer_ones_come() -> None:
    manager = CheckpointManager(counter, 200)
    standing: tuple[Checkpoint, ...] = ()
    for number in range(1, 5):
        standing = manager.age((*standing, made(number)), 100_000).checkpoints

    assert [old.age for old in standing] == ["compact", "medium", "medium", "detailed"]
    assert standing[0].tokens < standing[1].tokens < standing[3].tokens
    assert all("Facts: 8443; src/a.py" in old.text for old in standing)


def test_only_those_that_changed_are_named() -> None:
    manager = CheckpointManager(counter, 200)
    first = manager.age((made(1), made(2)), 100_000)
    again = manager.age(first.checkpoints, 100_000)

    assert [old.id for old in first.changed] == ["k1"]
    assert again.changed == ()
    assert again.checkpoints == first.checkpoints


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("ab cd:\n-"), min_size=1, max_size=900), min_size=1, max_size=9),
    st.integers(300, 900),
)
def test_together_they_never_take_more_than_their_cap_and_keep_every_number(texts: list[str], cap: int) -> None:
    standing = [made(number, text) for number, text in enumerate(texts, 1)]

    aged = CheckpointManager(counter, 200).age(standing, cap).checkpoints

    assert sum(old.tokens for old in aged) <= cap
    assert {n for old in aged for n in old.message_ids} == {n for old in standing for n in old.message_ids}
    assert all(old.tokens == counter.count_message(old.message) for old in aged)


def test_the_line_of_the_oldest_user_messages_does_not_age() -> None:
    line = Checkpoint(
        id="user-messages", text="User messages 1-9.", message_ids=(1, 9), timestamp="", tokens=30, age="compact"
    )

    aged = CheckpointManager(counter, 200).age((line, *map(made, range(1, 9))), 600).checkpoints

    assert aged[0] is line


def test_shortening_keeps_the_top_of_every_heading() -> None:
    text = shorten_summary(TEXT, 70, counter)

    assert text.splitlines()[:2] == ["Goal:", "- reach aim 0 before the others do"]
    assert "Decisions:" in text
    assert counter.count_text(text) <= 75


def test_numbers_are_cited_as_ranges() -> None:
    assert format_number_ranges([3, 1, 2, 7, 9, 10]) == "1-3, 7, 9-10"
    assert format_number_ranges(range(2, 4000, 2)) == "2-3998"
