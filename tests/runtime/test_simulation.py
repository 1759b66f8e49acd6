"""Long conversations in small windows: nothing overflows, nothing is lost, the front stands."""

from __future__ import annotations

import pytest
from bench.simulation import Report, simulate

from tests.sizes import size


def assert_sound(report: Report, window: int) -> None:
    assert report.largest <= window
    assert report.unreachable == set()
    assert report.facts_lost == []
    assert report.broken_inside_turns == 0


@pytest.mark.parametrize("window", [4096, 8192, 16384, 32768])
def test_turns_of_a_twentieth_of_the_window_need_less_than_one_compression_in_five(window: int) -> None:
    report = simulate(window, size(80, 1000))

    assert_sound(report, window)
    assert 0 < report.per_turn < 0.2


@pytest.mark.parametrize("window", [4096, 16384])
def test_heavy_turns_fit_too(window: int) -> None:
    assert_sound(simulate(window, size(40, 500), share=0.2, seed=2), window)


def test_a_window_smaller_than_most_still_works() -> None:
    assert_sound(simulate(2048, size(60, 500)), 2048)
