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

    assert len(storage.traces) == 100
    assert storage.traces[-1].message_id == 299
