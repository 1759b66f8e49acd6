"""goal: the purpose of the work, stored outside the reach of compression (H: goalStack)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from ollm.domain.errors import ToolFailure, UsageError
from ollm.domain.tools import ToolResult
from ollm.services.goals import GoalKeeper, describe_goals
from ollm.tools.framework.base import SmallForm, Tool, ToolContext

Action = Literal["set", "subtask", "decision", "artifact", "blocker", "complete"]


class GoalTool(Tool[GoalKeeper], frozen=True):
    """Note the goal of the work, its subtasks, decisions, files made and blockers; they are never forgotten."""

    name: ClassVar = "goal"
    category: ClassVar = "notes"
    aliases: ClassVar = {"content": "text", "description": "text", "type": "action"}
    priority: ClassVar = {"code": 8, "debug": 8, "plan": 7, "assistant": 10}
    small: ClassVar = SmallForm(
        description="Note goals and decisions.",
        parameters=("text",),
        clear_name=False,
    )

    action: Annotated[Action, Meta(description="What to note; set starts a new goal.")]
    text: Annotated[str, Meta(description="In a sentence.")] = ""
    locked: Annotated[bool, Meta(description="A decision that must not be changed.")] = False
    tags: Annotated[tuple[str, ...], Meta(description="For a decision, such as architecture.")] = ()

    def summary(self) -> str:
        return f"Note {self.action}: {self.text}" if self.text else f"Note {self.action}"

    async def run(self, context: ToolContext, needs: GoalKeeper) -> ToolResult:
        try:
            reply = self._record_action(needs)
        except UsageError as error:
            raise ToolFailure("ValidationError", error.message, action=error.action) from error
        return ToolResult(llm_content=f"{reply}\n\n{describe_goals(needs.stack)}".strip(), return_display=reply)

    def _record_action(self, goals: GoalKeeper) -> str:
        match self.action:
            case "decision":
                return goals.decision(self.text, locked=self.locked, tags=self.tags)
            case "complete":
                return goals.complete()
            case "set":
                return goals.set(self.text)
        return goals.note(self.action, self.text)
