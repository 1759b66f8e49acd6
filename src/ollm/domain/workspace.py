"""Memory of a workspace about its sessions (W): the record, the plan, and the actions of each turn."""

from __future__ import annotations

from typing import Any

from msgspec import field

from ollm.domain.session import SessionStatus
from ollm.domain.struct import Data


class CommandOutcome(Data, frozen=True):
    command: str
    outcome: str  # "ok", "exit 1", "Timeout"

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"


class Episode(Data, frozen=True):
    """One turn, as the engine saw it; `number` is the number of the user's message."""

    session_id: str
    number: int
    timestamp: int  # epoch milliseconds
    request: str
    answer: str = ""
    reason: str = "answered"
    files: tuple[str, ...] = ()
    commands: tuple[CommandOutcome, ...] = ()
    decisions: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


class PlanStep(Data, frozen=True):
    text: str
    done: bool = False


class PlanState(Data, frozen=True):
    """Progress of the work: the steps, the current one, and whether it waits for an answer."""

    steps: tuple[PlanStep, ...] = ()
    current_step_index: int = 0
    awaiting_continuation: bool = False
    paused: bool = False

    @property
    def current_step(self) -> PlanStep | None:
        return self.steps[self.current_step_index] if 0 <= self.current_step_index < len(self.steps) else None

    @property
    def done_count(self) -> int:
        return sum(step.done for step in self.steps)


class ChatSession(Data, frozen=True):
    """A row of `chat_sessions` (W). Times are epoch milliseconds."""

    session_id: str
    title: str
    model: str
    status: SessionStatus
    created_at: int
    updated_at: int
    summary: str = ""
    recent_messages: tuple[dict[str, Any], ...] = ()
    plan: PlanState = field(default_factory=PlanState)
