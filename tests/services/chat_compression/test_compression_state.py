"""What of a context may go, what stays, and how the sums are kept while one compression runs."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.domain.context import Checkpoint, RequestLine
from ollm.domain.messages import PromptMessage
from ollm.services.chat_compression.compression_state import MAX_FOLDED_LINES, MIN_SAVING_TOKENS, CompressionState
from ollm.services.chat_compression.folding import is_folded_line
from ollm.services.chat_compression.options import CompressionOptions
from ollm.services.chat_compression.users import USER_LINE_ID, add_aside
from ollm.services.token_counting import TokenCounter
from tests.services import contexts as make
from tests.services.chat_compression.swept_targets import counter as word_counter

counter = TokenCounter()


def state(messages: list[PromptMessage], recent: int = 0, **more: Any) -> CompressionState:
    return CompressionState(messages, CompressionOptions(preserve_recent_tokens=recent, **more), counter)


def checkpoint(name: str, *numbers: int, requests: tuple[RequestLine, ...] = ()) -> Checkpoint:
    made = Checkpoint(id=name, text=f"minutes {name}", message_ids=numbers, timestamp="", tokens=0, requests=requests)
    return Checkpoint(
        id=name,
        text=made.text,
        message_ids=numbers,
        timestamp="",
        tokens=counter.count_message(made.message),
        requests=requests,
    )


def test_the_system_prompt_is_no_group_and_the_last_group_is_recent() -> None:
    work = state(make.talk(2))

    assert len(work.old) == 5
    assert [message.sources for group in work.recent for message in group] == [(8,)]
    assert work.build_messages() == tuple(make.talk(2))
    assert state(make.talk(2)[1:]).build_messages() == tuple(make.talk(2)[1:])
    assert state([]).build_messages() == ()


def test_the_total_counts_everything_and_half_of_it_is_the_target() -> None:
    point = checkpoint("k", 1)
    work = state(make.talk(2), checkpoints=(point,))

    assert work.total == counter.count_messages(make.talk(2)) + point.tokens
    assert work.target == work.total // 2
    assert state(make.talk(2), target_tokens=7).target == 7
    assert work.build_messages()[1] == point.message


@settings(max_examples=60, deadline=None)
@given(make.contexts(), st.integers(0, 400), st.integers(0, 900))
def test_whatever_is_done_the_total_stays_true_and_no_number_is_lost(
    messages: list[PromptMessage], recent: int, target: int
) -> None:
    numbers = {number for message in messages for number in message.sources}
    for step in ("settle_user_messages", "fold_results", "truncate", "truncate_to_target"):
        work = state(messages, recent, target_tokens=target)
        before = work.total
        getattr(work, step)()
        assert work.total == counter.count_messages(work.build_messages())
        assert work.total <= before or step == "settle_user_messages" or target < before
        assert {number for message in work.build_messages() for number in message.sources} == numbers


def test_old_user_messages_lose_their_aside_but_not_the_one_being_worked_on() -> None:
    messages = [make.SYSTEM, make.user(1, add_aside("one", "Monday")), make.user(2, add_aside("two", "Monday"))]
    messages.append(make.assistant(3, "yes"))
    work = state(messages, request=2)

    work.settle_user_messages()

    assert [group[0].content for group in work.old] == ["one", add_aside("two", "Monday")]
    assert work.total < counter.count_messages(messages)


def test_requests_are_recorded_only_with_a_ledger_and_never_the_current_one() -> None:
    messages = make.talk(3)
    assert state(messages).list_past_requests() == []
    work = state(messages, ledger_tokens=500, request=5)

    assert [group[0].sources for group in work.list_past_requests()] == [(1,), (9,)]
    known = checkpoint("k", 0, requests=(RequestLine(number=0, text="before"),))
    lines = state(messages, ledger_tokens=500, checkpoints=(known,)).request_lines(work.list_past_requests())
    assert [(line.number, line.text) for line in lines] == [(1, "Look at part 0"), (9, "Look at part 2")]


def test_long_output_is_folded_and_short_output_is_not_worth_it() -> None:
    work = state(make.talk(2))
    before = work.total
    folded = work.old[1]
    work.fold_results()

    assert work.old[1] != folded
    assert work.get_originals([work.old[1], work.old[0]]) == [folded, work.old[0]]
    assert work.total <= before - MIN_SAVING_TOKENS
    short = state(make.talk(2, lines=3))
    groups = list(short.old)
    short.fold_results()
    assert short.old == groups


def test_only_as_much_of_the_oldest_is_chosen_as_is_needed() -> None:
    messages = make.talk(8, lines=10)
    total = counter.count_messages(messages)

    chosen = state(messages, target_tokens=total * 3 // 4).select_oldest(40)

    assert 0 < len(chosen) < 8
    assert chosen[0][0].sources == (2,)
    assert not any(group[0].role == "user" for group in chosen)
    assert len(state(messages, target_tokens=total * 3 // 4).select_oldest(None)) == 15
    assert len(state(messages, target_tokens=total, ledger_tokens=1).select_oldest(40)) == 15
    assert state(messages, target_tokens=total).select_oldest(40) == []


def test_records_of_users_and_of_nothing_are_not_merged() -> None:
    points = (checkpoint(USER_LINE_ID, 1), checkpoint("goals"), checkpoint("k", 2, 3))

    assert state(make.talk(1), checkpoints=points).list_mergeable() == points[2:]


def test_a_summary_is_made_from_what_the_user_said_around_it_too() -> None:
    work = state(make.talk(4))
    chosen = work.select_oldest(None)[:2]

    told = work.add_user_messages(chosen)

    assert [group[0].sources[0] for group in told] == [1, 2, 4]
    assert work.add_user_messages([]) == []


def test_the_user_s_words_are_those_not_yet_in_a_record() -> None:
    point = checkpoint("k", 1, 2, 3)
    work = state(make.talk(4), checkpoints=(point,))
    chosen = [group for group in work.old if group[0].sources in ((6,), (8,), (10,))]

    assert work.list_user_words(chosen) == ["Look at part 1", "Look at part 2"]
    assert state(make.talk(4)).list_user_words(chosen) == [f"Look at part {n}" for n in range(3)]


def test_what_was_replaced_is_gone_from_the_context_and_its_numbers_are_known() -> None:
    old, new = checkpoint("old", 90), checkpoint("new", 2, 3, 90)
    work = state(make.talk(2), checkpoints=(old,))
    chosen = [work.old[1]]

    work.replace_groups(chosen, [old], new)

    assert work.checkpoints == [new]
    assert work.list_gone_numbers() == (2, 3)
    assert work.total == counter.count_messages(work.build_messages())


def test_truncating_stops_at_the_target_and_joins_neighbours() -> None:
    messages = make.talk(6)
    total = counter.count_messages(messages)
    work = state(messages, target_tokens=total - 1)

    work.truncate()

    lines = [group[0] for group in work.old if is_folded_line(group[0])]
    assert [line.sources for line in lines] == [(2, 3)]
    work = state(messages, target_tokens=0)
    work.truncate()
    assert [group[0].sources for group in work.old if is_folded_line(group[0])][:2] == [(2, 3, 4), (6, 7, 8)]
    assert work.list_gone_numbers()[:6] == (2, 3, 4, 6, 7, 8)


def test_many_lines_become_few() -> None:
    work = state(make.talk(MAX_FOLDED_LINES + 4), target_tokens=0)

    work.truncate()

    lines = [group[0] for group in work.old if is_folded_line(group[0])]
    assert len(lines) == MAX_FOLDED_LINES // 2 + 1
    assert lines[0].content.endswith("; recall brings them back]")
    assert sum(group[0].role == "user" for group in work.old) == MAX_FOLDED_LINES + 4
    few = state(make.talk(MAX_FOLDED_LINES + 1), target_tokens=0)
    few.truncate()
    assert sum(is_folded_line(group[0]) for group in few.old) == MAX_FOLDED_LINES // 2 + 1


@pytest.mark.parametrize(
    ("target", "line", "left"), [(75, "1", 3), (23, "1", 3), (22, "1-2", 2), (20, "1-2", 2), (19, "1-3", 1)]
)
def test_no_more_of_the_oldest_become_one_line_than_must(target: int, line: str, left: int) -> None:
    """A token is a word here."""
    said = [
        make.SYSTEM,
        make.user(1, "word " * 60),
        make.assistant(2, "short answer"),
        make.user(3, "x"),
        make.assistant(4, "end"),
    ]
    work = CompressionState(said, CompressionOptions(preserve_recent_tokens=0, target_tokens=target), word_counter)

    work.truncate_to_target()

    system, merged, *rest = work.build_messages()
    assert system == make.SYSTEM
    assert merged.content == f"[Folded messages {line}; recall brings them back]"
    assert rest == said[-left:]
    assert work.total == word_counter.count_messages(work.build_messages()) <= target
