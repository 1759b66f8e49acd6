"""Loops: what is one, what only looks like one, and what a loop does."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.config.settings import LoopSettings
from ollm.domain.events import Event, LoopDetected, LoopWarning
from ollm.services.loop_detection import LoopDetectionService, LoopPattern, format_advice
from tests.covers import covers

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
json_objects = st.dictionaries(st.text(max_size=8), json_values, max_size=4)
thresholds = st.integers(2, 9)


def detector(threshold: int = 3, **more: Any) -> LoopDetectionService:
    return LoopDetectionService(LoopSettings(repeat_threshold=threshold, **more))


def record_call(service: LoopDetectionService, name: str, args: dict[str, Any], result: str) -> None:
    service.record_tool_call(name, args)
    service.record_tool_result(name, args, result)


def kind(pattern: LoopPattern | None) -> str | None:
    return pattern.type if pattern else None


@covers("P14", "S4.1", "S4.4", "D213", "D234")
@given(
    name=st.sampled_from(["grep", "shell", "read_file", "mcp__server__tool"]) | st.text(min_size=1, max_size=9),
    args=json_objects,
    threshold=st.integers(2, 25),
    result=st.none() | st.text(max_size=20),
)
def test_the_nth_identical_call_in_a_row_is_a_loop(
    name: str, args: dict[str, Any], threshold: int, result: str | None
) -> None:
    """Feature: services-sessions, Property 14: Repeated tool call detection"""
    service = detector(threshold)

    seen = []
    for _ in range(threshold):
        service.record_tool_call(name, args)
        seen.append(service.check_for_loop())
        if result is not None:
            service.record_tool_result(name, args, result)

    assert [kind(pattern) for pattern in seen] == [None] * (threshold - 1) + ["repeated-tool"]
    assert seen[-1] is not None
    assert seen[-1].count == threshold


@covers("P14", "S4.4")
@given(args=st.lists(json_objects, min_size=1, max_size=5, unique_by=repr), threshold=thresholds)
def test_calls_with_other_arguments_are_no_loop(args: list[dict[str, Any]], threshold: int) -> None:
    service = detector(threshold)
    for one in args:
        service.record_tool_call("grep", one)

    assert service.check_for_loop() is None


@covers("D243")
def test_nested_arguments_count_and_the_order_of_keys_does_not() -> None:
    service = detector(3)
    for depth in (1, 2, 3):
        service.record_tool_call("edit", {"edits": [{"target": "a", "at": {"line": depth}}]})
    assert service.check_for_loop() is None

    service.reset()
    for args in ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}, {"a": 1, "b": {"c": 2, "d": 3}}):
        service.record_tool_call("edit", args)
    assert kind(service.check_for_loop()) == "repeated-tool"


@covers("P15", "S4.2", "S4.5", "D213")
@given(output=st.text(max_size=200), threshold=thresholds)
def test_the_nth_identical_output_in_a_row_is_a_loop(output: str, threshold: int) -> None:
    """Feature: services-sessions, Property 15: Repeated output detection"""
    service = detector(threshold)

    seen = [service.record_output(output) or service.check_for_loop() for _ in range(threshold)]

    assert [kind(pattern) for pattern in seen] == [None] * (threshold - 1) + ["repeated-output"]


@covers("S4.5", "D244")
def test_outputs_that_are_almost_the_same_are_the_same() -> None:
    service = detector(3)
    for number in range(3):
        service.record_output(
            f"Let me look at the configuration once more, attempt {number}, to see what is wrong with it."
        )
    assert kind(service.check_for_loop()) == "repeated-output"

    service.reset()
    for topic in ("the parser", "a database", "our tests"):
        service.record_output(f"Now I look at {topic}.")
    assert service.check_for_loop() is None


def test_saying_the_same_while_the_calls_bring_news_is_work() -> None:
    service = detector(3)
    for number in range(10):
        service.record_output("Let me read the next file.")
        record_call(service, "read_file", {"path": f"{number}.py"}, f"content {number}")

    assert service.check_for_loop() is None


def test_steps_that_only_make_calls_are_no_output() -> None:
    service = detector(3)
    for number in range(6):
        service.record_output("")
        record_call(service, "read_file", {"path": f"{number % 4}.py"}, "same")

    assert service.check_for_loop() is None


@covers("P16", "S4.3", "S4.6", "D213", "D215", "D229", "D245")
@given(limit=st.integers(1, 60), extra=st.integers(1, 5))
def test_more_steps_than_the_limit_are_a_loop(limit: int, extra: int) -> None:
    """Feature: services-sessions, Property 16: Turn limit detection"""
    service = LoopDetectionService(LoopSettings(max_turns=limit))
    for _ in range(limit):
        service.record_turn()
    assert service.check_for_loop() is None

    for _ in range(extra):
        service.record_turn()

    pattern = service.check_for_loop()
    assert pattern is not None
    assert (pattern.type, pattern.count) == ("turn-limit", limit + extra)


@covers("P17", "S4.7", "S4.8", "D215", "D237", "D247")
@given(args=json_objects, others=st.lists(json_objects, max_size=2), threshold=thresholds)
def test_a_loop_is_told_once_and_stands_until_the_user_speaks(
    args: dict[str, Any], others: list[dict[str, Any]], threshold: int
) -> None:
    """Feature: services-sessions, Property 17: Loop detection stops execution"""
    events: list[Event] = []
    service = LoopDetectionService(LoopSettings(repeat_threshold=threshold), events.append)
    for _ in range(threshold):
        service.record_tool_call("grep", args)
    first = service.check_for_loop()
    for other in others:
        service.record_tool_call("other", other)
        assert service.check_for_loop() == first

    assert first is not None
    assert [event for event in events if isinstance(event, LoopDetected)] == [
        LoopDetected(pattern="repeated-tool", details=first.details, count=threshold)
    ]
    assert "grep" in first.details
    assert first.details in format_advice(first)
    service.reset()
    assert service.check_for_loop() is None


@given(threshold=st.integers(2, 6))
def test_polling_whose_results_differ_is_warned_about_at_n_and_stopped_at_three_times_n(threshold: int) -> None:
    service = detector(threshold)
    loops, warnings = [], []
    for number in range(3 * threshold):
        service.record_tool_call("shell", {"id": "job-1"})
        loops.append(kind(service.check_for_loop()))
        warnings.append(kind(service.check_for_warning()))
        service.record_tool_result("shell", {"id": "job-1"}, f"{number} lines")

    stop = 3 * threshold if threshold > 2 else 2
    assert loops.index("repeated-tool") == stop - 1
    if threshold > 2:
        told = [index + 1 for index, warning in enumerate(warnings) if warning]
        assert told == ([2, 3] if threshold == 3 else [threshold])  # with one result there is no telling yet


@given(period=st.integers(2, 5), threshold=st.integers(2, 5))
def test_a_cycle_of_calls_is_found_after_n_rounds(period: int, threshold: int) -> None:
    service = detector(threshold)
    seen = []
    for number in range(period * threshold):
        record_call(service, "read_file", {"path": str(number % period)}, f"content {number % period}")
        seen.append(kind(service.check_for_loop()))

    assert seen == [None] * (period * threshold - 1) + ["repeated-cycle"]


def test_a_cycle_whose_results_change_is_work() -> None:
    service = detector(3)
    for number in range(12):
        record_call(service, "edit_file", {"path": "a"}, "edited")
        record_call(service, "shell", {"command": "make test"}, f"{12 - number} failed")

    assert service.check_for_loop() is None


def test_the_model_is_warned_one_repetition_before_a_loop_and_once() -> None:
    events: list[Event] = []
    service = LoopDetectionService(LoopSettings(repeat_threshold=4), events.append)
    told = []
    for _ in range(3):
        service.record_tool_call("grep", {})
        told += [service.check_for_warning(), service.check_for_warning()]

    assert [kind(pattern) for pattern in told] == [None, None, None, None, "repeated-tool", None]
    assert [type(event) for event in events] == [LoopWarning]


@given(
    unit=st.text(min_size=1, max_size=300),
    threshold=st.integers(2, 4),
    size=st.integers(1, 90),
    channel=st.sampled_from(["text", "thinking"]),
)
def test_a_streamed_text_that_repeats_itself_is_stopped(unit: str, threshold: int, size: int, channel: Any) -> None:
    service = detector(threshold)
    service.record_turn()
    text = "An answer begins. " + unit * (2 * threshold + 2000 // len(unit) + 2)

    found = [service.record_text(text[start : start + size], channel) for start in range(0, len(text), size)]

    pattern = next(one for one in found if one)
    assert pattern.type == "repeated-text"
    assert pattern.count > threshold
    assert service.check_for_loop() == pattern


@given(
    words=st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8), min_size=30, max_size=40, unique=True)
)
def test_text_that_goes_on_is_no_loop(words: list[str]) -> None:
    service = detector()
    service.record_turn()

    assert not any(service.record_text(word + " ") for word in words)


@pytest.mark.parametrize(
    "text",
    [
        "-" * 120 + "\n",
        "| --- | --- | --- | --- |\n" * 3,
        "0, " * 200,
        "\n".join(f"{number}. step number {number} of the plan" for number in range(100)),
        "    return None\n\n\ndef f():\n" * 3,
    ],
)
def test_rules_tables_and_lists_are_honest_text(text: str) -> None:
    service = detector()
    service.record_turn()

    assert not any(service.record_text(letter) for letter in text)


@covers("D226")
def test_another_configuration_counts_at_once() -> None:
    service = detector(9)
    service.configure(LoopSettings(repeat_threshold=2))
    for _ in range(2):
        service.record_tool_call("grep", {})

    assert kind(service.check_for_loop()) == "repeated-tool"


@covers("D616")
def test_arguments_that_cannot_be_compared_exactly_are_watched_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    service = detector(3)
    for _ in range(3):
        service.record_tool_call("odd", {"value": object})

    assert kind(service.check_for_loop()) == "repeated-tool"
    assert "cannot be compared exactly" in caplog.text


@covers("D221")
def test_nothing_is_found_when_it_is_switched_off() -> None:
    service = detector(2, enabled=False, max_turns=1)
    for _ in range(9):
        service.record_turn()
        service.record_tool_call("grep", {})
        service.record_output("again")
        assert service.record_text("again " * 500) is None

    assert service.check_for_loop() is None
    assert service.check_for_warning() is None


@covers("D818")
def test_a_turn_costs_less_than_a_millisecond() -> None:
    service = detector()
    args = {"path": "src/main.py", "content": "x" * 5_000}
    text = "some words of an answer " * 100
    best = 1.0
    for number in range(50):
        started = time.thread_time()
        service.record_turn()
        service.record_output(f"{number} {text} {number}")
        record_call(service, "write_file", args | {"number": number}, text)
        service.check_for_warning()
        service.check_for_loop()
        best = min(best, time.thread_time() - started)

    assert best < 0.001
