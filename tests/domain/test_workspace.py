"""What a workspace remembers: where a plan stands, and how a command ended."""

import pytest

from ollm.domain.workspace import CommandOutcome, PlanState, PlanStep

STEPS = (PlanStep(text="a", done=True), PlanStep(text="b"), PlanStep(text="c"))


@pytest.mark.parametrize(("index", "text"), [(0, "a"), (1, "b"), (2, "c"), (3, None), (-1, None)])
def test_the_step_under_way_is_the_one_at_the_index_or_none(index: int, text: str | None) -> None:
    step = PlanState(steps=STEPS, current_step_index=index).current_step

    assert (step.text if step else None) == text


def test_what_is_done_is_counted() -> None:
    assert PlanState(steps=STEPS).done_count == 1
    assert PlanState().done_count == 0


def test_only_ok_is_ok() -> None:
    assert CommandOutcome(command="ls", outcome="ok").ok
    assert not CommandOutcome(command="ls", outcome="exit 1").ok
