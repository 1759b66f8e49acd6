"""Texts that are said again though nothing new came in between."""

import pytest

from ollm.services.loop_detection.outputs import OutputTracker, are_alike


def say(tracker: OutputTracker, *texts: str) -> OutputTracker:
    for text in texts:
        tracker.add(text)
    return tracker


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("", "", True),
        ("", "x", False),
        ("a" * 100, "a" * 95 + "b" * 5, True),
        ("a" * 100, "a" * 94 + "b" * 6, False),
        ("a" * 90, "a" * 100, False),  # alike in length, not in 95 % of the characters
        ("a" * 95, "a" * 100, True),
        ("a" * 89, "a" * 100, False),
        ("a" * 2700, "a" * 3000, True),
        ("a" * 2699, "a" * 3000, False),
        ("a" * 3000 + "b" * 2000, "a" * 3000 + "c" * 2000, False),
        ("b" * 2000 + "a" * 3000, "c" * 2000 + "a" * 3000, False),
        ("a" * 2000 + "b" * 1000 + "a" * 2000, "a" * 2000 + "c" * 1000 + "a" * 2000, True),
    ],
)
def test_texts_are_alike_in_ninety_five_parts_of_a_hundred_at_both_ends(one: str, other: str, alike: bool) -> None:
    assert are_alike(one, other) is alike
    assert are_alike(other, one) is alike


def test_the_threshold_is_a_loop_and_one_less_a_warning() -> None:
    tracker = say(OutputTracker(3), "same")
    assert tracker.find_loop() is tracker.find_warning() is None

    warning = say(tracker, "same").find_warning()
    assert warning is not None
    assert (warning.type, warning.count) == ("repeated-output", 2)
    assert tracker.find_loop() is None

    found = say(tracker, "same").find_loop()
    assert found is not None
    assert (found.count, found.details) == (3, "the same text 3 times in a row: “same”")


def test_with_a_threshold_of_two_nothing_is_warned_of() -> None:
    assert say(OutputTracker(2), "a").find_warning() is None
    assert say(OutputTracker(2), "a", "a").find_warning() is None
    assert say(OutputTracker(2), "a", "a").find_loop() is not None


def test_another_text_starts_the_count_anew() -> None:
    assert say(OutputTracker(2), "a", "entirely different", "a").find_loop() is None


def test_before_anything_is_said_there_is_no_loop() -> None:
    assert OutputTracker(1).find_loop() is None


def test_calls_that_brought_news_make_the_same_text_work() -> None:
    tracker = say(OutputTracker(2), "a")
    tracker.record_call(brought_news=True)
    tracker.record_call(brought_news=False)

    assert say(tracker, "a").find_loop() is None
    tracker.record_call(brought_news=False)
    assert say(tracker, "a").find_loop() is not None


def test_a_step_that_only_made_calls_is_passed_over() -> None:
    tracker = say(OutputTracker(2), "a")
    tracker.record_call(brought_news=False)

    assert say(tracker, "  ").find_loop() is None
    assert say(tracker, "a").find_loop() is not None


def test_an_empty_text_without_a_call_counts() -> None:
    assert say(OutputTracker(2), "", "").find_loop() is not None


def test_the_first_text_counts_from_the_beginning_and_calls_before_it_do_not_matter() -> None:
    tracker = OutputTracker(2)
    tracker.record_call(brought_news=True)

    assert say(tracker, "a", "a").find_loop() is not None
    assert say(OutputTracker(1), "a").find_loop() is not None
    assert say(OutputTracker(2), " ").find_loop() is None
    assert say(OutputTracker(2), " ", " ").find_loop() is not None
