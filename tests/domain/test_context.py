"""The active context as data: how messages are cited, and which goal is the one under way."""

import pytest

from ollm.domain.context import Checkpoint, Goal, GoalStack, format_number_ranges


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((), ""),
        ((7,), "7"),
        ((1, 2, 3, 4), "1-4"),
        ((4, 2, 3, 1, 3), "1-4"),
        ((1, 2, 7, 9, 10), "1-2, 7, 9-10"),
        ((1, 3, 5, 7, 9), "1, 3, 5, 7, 9"),
        ((1, 3, 5, 7, 9, 11), "1-11"),
    ],
)
def test_numbers_are_cited_as_ranges_and_many_ranges_as_one(numbers: tuple[int, ...], text: str) -> None:
    assert format_number_ranges(numbers) == text


def checkpoint(*numbers: int) -> Checkpoint:
    return Checkpoint(id="c", text="They chose SQLite.", message_ids=numbers, timestamp="", tokens=5)


def test_a_checkpoint_stands_as_a_record_that_names_what_it_stands_for() -> None:
    message = checkpoint(1, 2, 3).message

    assert message.role == "system"
    assert "messages 1-3" in message.content
    assert "recall" in message.content
    assert message.content.endswith("\nThey chose SQLite.")
    assert message.sources == (1, 2, 3)


def test_a_checkpoint_that_cites_nothing_is_its_text_alone() -> None:
    assert checkpoint().message.content == "They chose SQLite."
    assert checkpoint().message.sources == ()


def test_the_goal_under_way_is_the_newest_that_is_not_done() -> None:
    first, done, last = Goal(id="1", text="a"), Goal(id="2", text="b", status="completed"), Goal(id="3", text="c")

    assert GoalStack().active is None
    assert GoalStack(goals=(first, done)).active is first
    assert GoalStack(goals=(first, done, last)).active is last
    assert GoalStack(goals=(done,)).active is None
