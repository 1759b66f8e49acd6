"""Calls that repeat themselves, alone or in a cycle."""

from typing import Any

import pytest

from ollm.services.loop_detection.calls import CallTracker

NESTED: dict[str, Any] = {"a": [1, {"b": None}]}


def call(tracker: CallTracker, *names: str) -> CallTracker:
    for name in names:
        tracker.add(name, {})
    return tracker


def poll(tracker: CallTracker, times: int) -> CallTracker:
    for number in range(times):
        tracker.add("poll", {})
        tracker.complete("poll", {}, f"result {number}")
    return tracker


def test_a_call_is_new_only_once() -> None:
    tracker = CallTracker(3)

    assert [tracker.add(*asked) for asked in (("ls", {}), ("ls", NESTED), ("rg", {}), ("ls", {}))] == [
        True,
        True,
        True,
        False,
    ]
    assert not tracker.add("ls", {"a": [1, {"b": None}]})


def test_name_and_arguments_are_kept_apart() -> None:
    tracker = CallTracker(2)
    tracker.add("a", {})

    assert tracker.add("a\0", {})


def test_a_result_goes_to_the_earliest_call_that_waits_and_is_news_once() -> None:
    tracker = call(CallTracker(3), "ls", "ls")

    assert tracker.complete("ls", {}, "one") is True
    assert tracker.complete("ls", {}, "one") is False
    assert tracker.complete("ls", {}, "two") is False  # nobody waits for it
    assert tracker.complete("rg", {}, "one") is False


def test_the_details_name_the_call_and_how_often() -> None:
    tracker = CallTracker(2)
    tracker.add("shell", {"command": "make"})
    tracker.add("shell", {"command": "make"})

    found = tracker.find_loop()

    assert found is not None
    assert (found.type, found.count) == ("repeated-tool", 2)
    assert found.details == 'shell {"command":"make"} was called 2 times in a row'


def test_a_warning_comes_one_call_before_the_loop_and_not_again() -> None:
    tracker = call(CallTracker(3), "ls")
    assert tracker.find_warning() is None
    assert call(tracker, "ls").find_warning() is not None
    assert tracker.find_loop() is None
    assert call(tracker, "ls").find_warning() is None
    assert tracker.find_loop() is not None


def test_with_a_threshold_of_two_a_first_call_is_no_warning() -> None:
    assert call(CallTracker(2), "ls").find_warning() is None


@pytest.mark.parametrize("threshold", [2, 3])
def test_polling_is_warned_of_at_the_threshold_and_stopped_at_three_times_it(threshold: int) -> None:
    assert poll(CallTracker(threshold), threshold).find_loop() is None
    warning = poll(CallTracker(threshold), threshold).find_warning()
    assert warning is not None
    assert warning.details.endswith("times in a row, with a different result each time")
    assert poll(CallTracker(threshold), 3 * threshold - 1).find_loop() is None
    found = poll(CallTracker(threshold), 3 * threshold).find_loop()
    assert found is not None
    assert found.count == 3 * threshold


def test_results_of_an_earlier_streak_are_no_polling() -> None:
    tracker = poll(CallTracker(3), 2)
    call(tracker, "ls", "poll", "poll", "poll")

    assert tracker.find_loop() is not None


@pytest.mark.parametrize("period", [2, 3, 4, 5])
def test_a_cycle_is_found_with_its_calls_in_order(period: int) -> None:
    names = "abcde"[:period]
    tracker = call(CallTracker(3), *names, *names, *names[:-1])
    assert tracker.find_loop() is None
    warning = call(CallTracker(3), *names, *names).find_warning()
    assert warning is not None
    assert (warning.type, warning.count) == ("repeated-cycle", 2)

    found = call(tracker, names[-1]).find_loop()

    assert found is not None
    assert found.details == f"the same {period} calls were repeated 3 times: " + " → ".join(f"{n} {{}}" for n in names)


def test_six_calls_are_no_cycle_and_one_round_is_none() -> None:
    assert call(CallTracker(3), *"abcdef" * 3).find_loop() is None
    assert call(CallTracker(2), *"ab").find_warning() is None


def test_a_cycle_whose_results_differ_is_work_and_unknown_results_do_not_matter() -> None:
    tracker = CallTracker(2)
    for number in range(2):
        for name in "ab":
            tracker.add(name, {})
            if name == "b":
                tracker.complete(name, {}, str(number))
    assert tracker.find_loop() is None
    same = CallTracker(2)
    for name in "abab":
        same.add(name, {})
        if name == "a":
            same.complete(name, {}, "x")
    assert same.find_loop() is not None


def test_arguments_that_json_cannot_hold_are_compared_by_their_text(caplog: pytest.LogCaptureFixture) -> None:
    tracker = CallTracker(2)
    odd: dict[str, Any] = {"f": "\ud800"}

    assert tracker.add("x", odd)
    assert not tracker.add("x", odd)
    assert tracker.find_loop() is not None
    assert tracker.add("x", {"f": "\ud801"})
    assert "cannot be compared exactly" in caplog.text
