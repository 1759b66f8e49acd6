"""A call and its results are never parted, and the newest tokens are found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.messages import PromptMessage, ToolCall
from ollm.services.chat_compression.groups import find_recent_start, group_messages, is_user_group, list_numbers
from tests.services import contexts as make

CALL = ToolCall(id="c1", name="ls", arguments={})


def test_results_stand_with_the_message_that_asked_for_them() -> None:
    other = ToolCall(id="c2", name="ls", arguments={})
    asked = make.assistant(2, "", CALL, other)
    first, second, foreign = make.result(3, "c1", "a"), make.result(4, "c2", "b"), make.result(5, "c9", "c")

    groups = group_messages([make.user(1, "go"), asked, first, second, foreign, make.assistant(6, "done")])

    assert [len(group) for group in groups] == [1, 3, 1, 1]
    assert groups[1] == (asked, first, second)


def test_a_result_without_an_id_goes_with_the_calls_before_it_and_with_nothing_else() -> None:
    nameless = PromptMessage(role="tool", content="x")

    assert group_messages([make.assistant(1, "", CALL), nameless]) == [(make.assistant(1, "", CALL), nameless)]
    assert group_messages([make.assistant(1, "no call"), nameless]) == [(make.assistant(1, "no call"),), (nameless,)]
    assert group_messages([nameless]) == [(nameless,)]
    assert group_messages([]) == []


@pytest.mark.parametrize(
    ("preserve", "start"),
    [(0, 3), (9, 3), (10, 3), (19, 3), (20, 2), (29, 2), (30, 1), (39, 1), (40, 0), (10**6, 0)],
)
def test_the_recent_window_begins_where_a_whole_message_still_fits(preserve: int, start: int) -> None:
    groups = group_messages([make.user(number, "x") for number in range(4)])

    assert find_recent_start(groups, lambda _message: 10, preserve) == start


def test_a_group_that_lies_partly_within_the_window_is_all_in_it() -> None:
    groups = group_messages(
        [make.user(1, "x"), make.assistant(2, "", CALL), make.result(3, "c1", "x"), make.user(4, "x")]
    )

    assert [find_recent_start(groups, lambda _message: 10, preserve) for preserve in (19, 20, 30, 40)] == [2, 1, 1, 0]


def test_of_no_groups_everything_is_recent() -> None:
    assert find_recent_start([], lambda _message: 1, 5) == 0


@given(make.contexts(), st.integers(0, 2000))
def test_groups_joined_again_are_the_messages(messages: list[PromptMessage], preserve: int) -> None:
    groups = group_messages(messages)

    assert [message for group in groups for message in group] == messages
    assert 0 <= find_recent_start(groups, lambda message: len(message.content), preserve) <= len(groups) - 1


def test_a_user_s_message_is_known_by_its_role() -> None:
    assert is_user_group((make.user(1, "x"),))
    assert not is_user_group((make.assistant(1, "x"),))


def test_numbers_come_once_and_in_order() -> None:
    merged = PromptMessage(role="system", content="", sources=(7, 2))

    assert list_numbers([merged, make.user(2, "x"), make.user(1, "y")]) == (1, 2, 7)
    assert list_numbers([make.SYSTEM]) == ()
