"""Goals with subtasks, decisions, artefacts and blockers (H: goalStack), and their protection in compression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ollm.domain.clock import Clock, NewId, format_stamp, make_id, now
from ollm.domain.context import Checkpoint, Goal, GoalDecision, GoalStack
from ollm.domain.errors import UsageError
from ollm.domain.messages import PromptMessage
from ollm.services.token_counting import TokenCounter

MAX_TEXT_CHARS = 2000
NoteKind = Literal["subtask", "artifact", "blocker"]
NOTES: dict[NoteKind, str] = {
    "subtask": "Subtask added", "artifact": "Artefact noted", "blocker": "Blocker noted",
}  # fmt: skip
GOALS_CHECKPOINT_ID = "goals"  # This checkpoint holds the goals and the current decisions.


class GoalKeeper:
    """The goals of one session. Every method returns a line that describes the change."""

    def __init__(self, *, clock: Clock = now, ids: NewId = make_id) -> None:
        self.stack = GoalStack()
        self._clock = clock
        self._ids = ids

    def set(self, text: str) -> str:
        """Add a new goal, which becomes the active one."""
        goal = Goal(id=self._ids(), text=_check_text(text))
        self.stack = GoalStack(goals=(*self.stack.goals, goal))
        return f"Goal set: {goal.text}"

    def decision(self, text: str, *, locked: bool = False, tags: Sequence[str] = ()) -> str:
        made = GoalDecision(
            text=_check_text(text), locked=locked, tags=tuple(tags), timestamp=format_stamp(self._clock())
        )
        self._append("decisions", made)
        return f"Decision {'locked' if locked else 'noted'}: {made.text}"

    def note(self, kind: NoteKind, text: str) -> str:
        noted = _check_text(text)
        self._append(f"{kind}s", noted)
        return f"{NOTES[kind]}: {noted}"

    def complete(self) -> str:
        goal = self._require_active_goal()
        self._replace_goal(msgspec.structs.replace(goal, status="completed"))
        return f"Goal completed: {goal.text}"

    def _require_active_goal(self) -> Goal:
        goal = self.stack.active
        if goal is None:
            raise UsageError("No active goal.", action="Set one first.")
        return goal

    def _append(self, field: str, entry: object) -> None:
        goal = self._require_active_goal()
        self._replace_goal(msgspec.structs.replace(goal, **{field: (*getattr(goal, field), entry)}))

    def _replace_goal(self, changed: Goal) -> None:
        goals = tuple(changed if goal.id == changed.id else goal for goal in self.stack.goals)
        self.stack = GoalStack(goals=goals)


def list_lasting_decisions(stack: GoalStack) -> tuple[GoalDecision, ...]:
    """List decisions that compression must keep: locked, or tagged architecture, even if their goal is done."""
    return tuple(
        decision
        for goal in stack.goals
        for decision in goal.decisions
        if decision.locked or "architecture" in decision.tags
    )


def describe_goals(stack: GoalStack) -> str:
    """Describe the goals for the context after a compression, or return "" if there are none."""
    open_goals = [goal for goal in stack.goals if goal.status == "active"]
    lines = [line for goal in open_goals for line in _describe_goal(goal)]
    others = [decision.text for decision in list_lasting_decisions(stack)]
    shown = {decision.text for goal in open_goals for decision in goal.decisions}
    lines += [f"Decided: {text}" for text in others if text not in shown]
    return "\n".join(lines)


def make_goals_checkpoint(stack: GoalStack, counter: TokenCounter) -> tuple[Checkpoint, ...]:
    """Make a checkpoint of goals and decisions in force, to follow the records. Empty if there are none."""
    kept = describe_goals(stack)
    if not kept:
        return ()
    text = f"[Goals and decisions in force]\n{kept}"
    tokens = counter.count_message(PromptMessage(role="system", content=text))
    return (
        Checkpoint(id=GOALS_CHECKPOINT_ID, text=text, message_ids=(), timestamp="", tokens=tokens, engine_written=True),
    )


def _describe_goal(goal: Goal) -> list[str]:
    decided = [f"Decided{' (locked)' if made.locked else ''}: {made.text}" for made in goal.decisions]
    named = (("Subtask", goal.subtasks), ("Artefact", goal.artifacts), ("Blocked by", goal.blockers))
    return [f"Goal: {goal.text}", *decided, *(f"{name}: {text}" for name, texts in named for text in texts)]


def _check_text(text: str) -> str:
    words = text.strip()
    if not words:
        raise UsageError("The text is empty.", action="Describe it in a sentence.")
    if len(words) > MAX_TEXT_CHARS:
        raise UsageError(f"The text is longer than {MAX_TEXT_CHARS} characters.", action="Shorten it to a sentence.")
    return words
