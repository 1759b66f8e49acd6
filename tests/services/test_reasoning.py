"""Thinking traces: five whole, the rest short."""

from __future__ import annotations

from ollm.domain.context import ReasoningStorage
from ollm.services.reasoning import add_trace
from ollm.services.token_counting import TokenCounter


def test_the_five_newest_traces_stand_in_full_and_older_ones_short() -> None:
    storage = ReasoningStorage()
    for number in range(1, 9):
        storage = add_trace(storage, number, f"{number} " + "thinking " * 100, TokenCounter())

    lengths = [len(trace.text) for trace in storage.traces]
    assert all(length <= 200 for length in lengths[:3])
    assert all(length > 800 for length in lengths[3:])
    assert storage.total_tokens > 800


def test_no_thinking_leaves_no_trace() -> None:
    assert add_trace(ReasoningStorage(), 1, " \n", TokenCounter()) == ReasoningStorage()


def test_traces_do_not_pile_up_for_ever() -> None:
    storage = ReasoningStorage()
    for number in range(300):
        storage = add_trace(storage, number, "so", TokenCounter())

    assert [trace.message_id for trace in storage.traces] == list(range(200, 300))
    assert storage.total_tokens == 300 * TokenCounter().count_text("so")


def test_an_older_trace_is_cut_from_two_hundred_and_one_characters_on() -> None:
    storage, texts = ReasoningStorage(), ["a" * 200, "b" * 201, "c" * 198 + "  d" * 9]
    for number, text in enumerate([*texts, "five", "more", "of", "other", "thoughts"]):
        storage = add_trace(storage, number, text, TokenCounter())

    assert [trace.text for trace in storage.traces[:4]] == ["a" * 200, "b" * 199 + "…", "c" * 198 + "…", "five"]
    assert storage.traces[1].tokens == TokenCounter().count_text("b" * 201)
