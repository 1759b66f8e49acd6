"""The goal tool: what the model notes stays."""

from __future__ import annotations

import pytest

from ollm.domain.errors import ToolFailure
from ollm.services.goals import GoalKeeper
from ollm.tools.framework.base import ToolContext, make_spec
from ollm.tools.goal import GoalTool


async def test_notes_of_every_kind_belong_to_the_goal_that_was_set(context: ToolContext) -> None:
    goals = GoalKeeper()
    tool = make_spec(GoalTool, goals)
    for action, text in (
        ("set", "Ship version 2"),
        ("subtask", "Write the tests"),
        ("artifact", "docs/plan.md"),
        ("blocker", "No network"),
    ):
        await tool.parse({"action": action, "text": text}).run(context)
    result = await tool.parse({"action": "decision", "text": "SQLite", "locked": True, "tags": ["architecture"]}).run(
        context
    )

    goal = goals.stack.active
    assert goal is not None
    assert (goal.text, goal.subtasks, goal.artifacts, goal.blockers) == (
        "Ship version 2",
        ("Write the tests",),
        ("docs/plan.md",),
        ("No network",),
    )
    assert (goal.decisions[0].locked, goal.decisions[0].tags) == (True, ("architecture",))
    assert "Decided (locked): SQLite" in result.llm_content
    assert result.return_display == "Decision locked: SQLite"


async def test_a_completed_goal_is_no_longer_active(context: ToolContext) -> None:
    goals = GoalKeeper()
    goals.set("First")
    await make_spec(GoalTool, goals).parse({"action": "complete"}).run(context)

    assert goals.stack.active is None
    assert goals.stack.goals[0].status == "completed"


@pytest.mark.parametrize(
    "arguments",
    [{"action": "subtask", "text": "x"}, {"action": "set", "text": " "}, {"action": "set", "text": "x" * 5000}],
)
async def test_a_mistake_is_told_to_the_model(context: ToolContext, arguments: dict[str, str]) -> None:
    with pytest.raises(ToolFailure) as failure:
        await make_spec(GoalTool, GoalKeeper()).parse(arguments).run(context)

    assert failure.value.kind == "ValidationError"
