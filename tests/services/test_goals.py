"""Goals: nested, completed, and what of them no compression may lose."""

from __future__ import annotations

from ollm.services.goals import GoalKeeper, describe_goals, list_lasting_decisions
from tests.covers import covers


def test_completing_the_newest_goal_brings_back_the_one_before() -> None:
    goals = GoalKeeper()
    goals.set("Big")
    goals.set("Small")
    assert goals.complete() == "Goal completed: Small"

    assert goals.stack.active is not None
    assert goals.stack.active.text == "Big"


@covers("H445", "H446")
def test_locked_and_architecture_decisions_outlive_their_goal() -> None:
    goals = GoalKeeper()
    goals.set("First")
    goals.decision("Use SQLite", locked=True)
    goals.decision("Three floors", tags=["architecture"])
    goals.decision("Name it x")
    goals.complete()
    goals.set("Second")

    assert [decision.text for decision in list_lasting_decisions(goals.stack)] == ["Use SQLite", "Three floors"]
    assert describe_goals(goals.stack).splitlines() == ["Goal: Second", "Decided: Use SQLite", "Decided: Three floors"]


def test_without_goals_nothing_is_said() -> None:
    assert describe_goals(GoalKeeper().stack) == ""
