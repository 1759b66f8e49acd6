"""The arithmetic of the window, with the numbers of the requirements."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ollm.services import budget as rules
from tests.covers import covers


@covers("H397", "H400", "H403", "H407", "D205")
def test_an_8k_window_with_500_fixed_tokens_compresses_above_5170() -> None:
    state = rules.compute_budget(8192, 500)

    assert (state.limit, state.available, state.trigger) == (6963, 6463, 5170)
    assert not rules.needs_compression(state, 5170)
    assert rules.needs_compression(state, 5171)


@covers("H426", "H431")
def test_a_2000_token_checkpoint_moves_the_next_trigger_to_3570() -> None:
    state = rules.compute_budget(8192, 500, 2000)

    assert (state.available, state.trigger) == (4463, 3570)


def test_a_result_may_take_a_quarter_of_what_is_left_before_a_compaction() -> None:
    state = rules.compute_budget(8192, 500)
    even = msgspec.structs.replace(state, trigger=4000)

    assert rules.compute_result_cap(even) == 1000
    assert rules.compute_result_cap(even, 2000) == 500
    assert rules.compute_result_cap(even, 4000) == max(8192 // 24, min(8192 // 16, rules.SMALL_RESULT_TOKENS))
    assert rules.compute_result_cap(msgspec.structs.replace(even, trigger=80_000)) == state.available // 4


def test_the_recent_window_is_at_most_a_tenth_of_what_is_available() -> None:
    state = rules.compute_budget(8192, 500)

    assert rules.compute_recent_tokens(state, 4096) == 6463 // 10
    assert rules.compute_recent_tokens(state, 300) == 300


def test_the_nearer_a_compression_is_the_less_a_result_takes_down_to_a_part_of_the_window() -> None:
    for window, least in ((2048, 128), (4096, 256), (8192, 341), (32768, 1365)):
        state = rules.compute_budget(window, window // 8)
        assert rules.compute_result_cap(state, 0) == state.trigger // 4
        assert rules.compute_result_cap(state, state.trigger) == least
        assert rules.compute_step_cap(state, 0) == min(state.available // 2, state.trigger * 2 // 3)
        assert rules.compute_step_cap(state, state.trigger) == 2 * least


@given(st.integers(512, 300_000), st.integers(0, 20_000), st.integers(0, 20_000), st.floats(0.01, 1))
def test_no_part_is_ever_negative_or_larger_than_the_whole(window: int, fixed: int, kept: int, share: float) -> None:
    state = rules.compute_budget(window, fixed, kept, share)

    assert 0 <= state.trigger <= state.available <= state.limit < window
    assert 0 <= rules.compute_target_tokens(state) <= state.available // 2
    assert 0 <= rules.compute_answer_tokens(state, fixed) <= window


def test_a_summary_may_take_several_times_what_the_model_needs_and_never_more_than_is_set() -> None:
    assert rules.compute_summary_seconds(60, 5000, 500, (None, 20.0)) == 60
    assert rules.compute_summary_seconds(60, 5000, 500, (2000.0, 100.0)) == 30
    assert rules.compute_summary_seconds(60, 5000, 500, (50.0, 5.0)) == 60
    assert rules.compute_summary_seconds(60, 500, 50, (9000.0, 500.0)) == rules.MIN_SUMMARY_SECONDS
    assert rules.compute_summary_seconds(5, 500, 50, (9000.0, 500.0)) == 5


def test_records_make_room_for_a_long_message_down_to_a_part_of_the_limit() -> None:
    state = rules.compute_budget(4096, 600, 1200)

    assert rules.compute_user_cap(state) == (state.limit - 600) // 2
    assert rules.compute_checkpoints_cap(state) == rules.compute_checkpoints_cap(state, 100) == state.limit * 36 // 100
    assert rules.compute_checkpoints_cap(state, 1300) == state.limit - 600 - 1950
    assert rules.compute_checkpoints_cap(state, 3000) == state.limit // 12


def test_while_results_are_read_a_compression_waits_for_half_of_what_the_threshold_leaves() -> None:
    state = rules.compute_budget(8192, 500)

    assert rules.compute_working_trigger(state) == (5170 + 6463) // 2


def test_every_share_of_an_8k_window() -> None:
    state = rules.compute_budget(8192, 500, 300)

    assert (state.limit, state.fixed, state.checkpoints, state.available, state.trigger) == (6963, 500, 300, 6163, 4930)
    assert rules.compute_working_trigger(state) == 5546
    assert rules.compute_target_tokens(state) == 616
    assert rules.compute_result_cap(state) == 1232
    assert rules.compute_step_cap(state) == 3081
    assert rules.compute_user_cap(state) == 3231
    assert rules.compute_checkpoints_cap(state) == 2506
    assert rules.compute_ledger_cap(8192) == 1638
    assert rules.compute_entries_cap(8192) == 1740
    assert [rules.compute_summary_cap(state, wanted) for wanted in (10, 1000)] == [10, 580]
    assert rules.compute_summary_cap(rules.compute_budget(256, 0), 99) == 40
    answers = [(0, 0, 8192), (8000, 0, 192), (8000, 500, 64), (8192, 0, 0), (9000, 0, 0), (1000, 100, 7092)]
    for prompt, doubt, tokens in answers:
        assert rules.compute_answer_tokens(state, prompt, doubt) == tokens


def test_a_window_that_is_all_instructions_has_nothing_left() -> None:
    state = rules.compute_budget(1000, 2000)

    assert (state.available, state.trigger) == (0, 0)
    assert rules.compute_budget(1000, 850).available == 0
    assert rules.compute_budget(1000, 849).available == 1


def test_a_step_may_take_two_thirds_of_what_is_left_before_a_compression() -> None:
    even = msgspec.structs.replace(rules.compute_budget(8192, 500), trigger=3000)

    assert [rules.compute_step_cap(even, messages) for messages in (0, 300, 1200, 3000)] == [2000, 1800, 1200, 682]
    assert rules.compute_step_cap(even) == 2000
