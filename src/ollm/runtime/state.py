"""Mutable state of a conversation: model, approvals, plan, and the history of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ollm.domain.clock import make_id
from ollm.domain.context import ActiveContext, Approval, ModeName
from ollm.domain.session import PlanState, PlanStep
from ollm.domain.tools import Todo

if TYPE_CHECKING:
    from ollm.runtime.model.model import Model


class ConversationState(msgspec.Struct, kw_only=True):
    """`approval` is what was chosen, apart from what a mode imposes; `last_loop` says why the last turn was stopped."""

    model: Model
    approval: Approval = "ask"
    has_rules: bool  # without configured rules, policy has nothing to say of tools from outside
    auto_switch: Literal["off", "propose", "on"] = "off"
    proposed_modes: set[ModeName] = msgspec.field(default_factory=set)
    last_loop: str = ""
    chosen_model: str = ""  # the name given with /model, which the next session keeps
    mode_history: list[dict[str, Any]] = msgspec.field(default_factory=list)
    context_history: list[dict[str, Any]] = msgspec.field(default_factory=list)
    rewound: list[ActiveContext] = msgspec.field(default_factory=list)  # contexts before the rewinds of this process

    async def sees(self) -> bool:
        """Whether the model of the moment can see pictures; its server may have to be asked."""
        return await self.model.supports_images()

    def is_unguided(self) -> bool:
        """Whether it makes its calls without a guide, which tells a model that writes blocks what became of files."""
        return self.model.facts.call_form != "blocks"


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
