"""How far the plan is (W): the steps are the todo list, the one under way is the first that is not done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ollm.domain.clock import make_id
from ollm.domain.tools import Todo
from ollm.domain.workspace import PlanState, PlanStep


class TodoOwner:
    """Whose todos a conversation keeps: its session's. Those of before the first message go over to it."""

    def __init__(self, get_session_id: Callable[[], str | None], reassign: Callable[[str, str], None]) -> None:
        self._get_session_id = get_session_id
        self._reassign = reassign
        self._draft = make_id()
        self._drafted = False

    def get(self) -> str:
        session_id = self._get_session_id()
        if session_id is None:
            self._drafted = True
            return self._draft
        if self._drafted:
            self._drafted = False
            self._reassign(self._draft, session_id)
        return session_id


class Plan:
    """`todos` gives the list as it is now."""

    def __init__(self, todos: Callable[[], Sequence[Todo]]) -> None:
        self._todos = todos
        self._paused = False

    def set_paused(self, paused: bool) -> None:
        self._paused = paused

    def get_state(self) -> PlanState:
        steps = tuple(PlanStep(text=todo.text, done=todo.status == "done") for todo in self._todos())
        current = next((index for index, step in enumerate(steps) if not step.done), len(steps))
        return PlanState(steps=steps, current_step_index=current, paused=self._paused)
