"""Where the plan stands, and whose todos a conversation keeps."""

import pytest

from ollm.domain.tools import Todo
from ollm.runtime.plan import Plan, TodoOwner


def todo(text: str, status: str = "open") -> Todo:
    return Todo(id=text, text=text, status=status)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("done", "current"), [((), 0), ((False, False), 0), ((True, False), 1), ((False, True), 0), ((True, True), 2)]
)
def test_the_step_under_way_is_the_first_that_is_not_done(done: tuple[bool, ...], current: int) -> None:
    plan = Plan(lambda: [todo(str(n), "done" if one else "open") for n, one in enumerate(done)])

    state = plan.get_state()

    assert [step.done for step in state.steps] == list(done)
    assert (state.current_step_index, state.paused) == (current, False)


def test_a_plan_is_paused_until_it_is_resumed() -> None:
    plan = Plan(lambda: [todo("a")])
    plan.set_paused(True)
    assert plan.get_state().paused
    plan.set_paused(False)
    assert not plan.get_state().paused


def test_todos_of_before_the_first_message_go_over_to_the_session_once() -> None:
    session: list[str] = []
    moved: list[tuple[str, str]] = []
    owner = TodoOwner(lambda: session[0] if session else None, lambda old, new: moved.append((old, new)))
    draft = owner.get()
    assert owner.get() == draft
    assert moved == []
    session.append("s1")

    assert (owner.get(), owner.get()) == ("s1", "s1")
    assert moved == [(draft, "s1")]


def test_without_a_draft_nothing_goes_over() -> None:
    moved: list[tuple[str, str]] = []

    assert TodoOwner(lambda: "s1", lambda old, new: moved.append((old, new))).get() == "s1"
    assert moved == []
