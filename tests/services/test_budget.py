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


def test_the_nearer_a_compression_is_the_less_a_result_takes_down_to_a_part_of_the_window() -> None:
    for window, least in ((2048, 128), (4096, 256), (8192, 341), (32768, 1365)):
        state = rules.compute_budget(window, window // 8)
        assert rules.compute_result_cap(state, 0) == state.trigger // 4
        assert rules.compute_result_cap(state, state.trigger) == least
        assert rules.compute_step_cap(state, 0) == state.trigger // 2
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
