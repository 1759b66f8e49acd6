"""Goals: nested, completed, and what of them no compression may lose."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ollm.domain.context import Checkpoint, GoalDecision
from ollm.domain.errors import UsageError
from ollm.domain.messages import PromptMessage
from ollm.services.goals import GoalKeeper, ToldGoals, describe_goals, list_lasting_decisions, make_goals_checkpoint
from ollm.services.token_counting import TokenCounter
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


@covers("H444")
def test_all_of_an_open_goal_is_said_and_stands_as_a_checkpoint() -> None:
    goals = GoalKeeper(clock=lambda: datetime(2026, 1, 27, 10, tzinfo=UTC), ids=lambda: "g1")
    counter = TokenCounter()
    assert make_goals_checkpoint(goals.stack, counter) == ()

    said = [
        goals.set("  Ship it  "),
        goals.note("subtask", " Write the notes "),
        goals.decision(" Use SQLite ", locked=True),
        goals.decision("Name it x", tags=["style"]),
        goals.note("artifact", " notes.md "),
        goals.note("blocker", " No licence "),
    ]

    assert said == [
        "Goal set: Ship it",
        "Subtask added: Write the notes",
        "Decision locked: Use SQLite",
        "Decision noted: Name it x",
        "Artefact noted: notes.md",
        "Blocker noted: No licence",
    ]
    lines = ["Goal: Ship it", "Decided (locked): Use SQLite", "Decided: Name it x"]
    lines += ["Subtask: Write the notes", "Artefact: notes.md", "Blocked by: No licence"]
    assert describe_goals(goals.stack).splitlines() == lines
    assert goals.stack.goals[0].decisions[1] == GoalDecision(
        text="Name it x", locked=False, tags=("style",), timestamp="2026-01-27T10:00:00.000Z"
    )
    text = "\n".join(["[Goals and decisions in force]", *lines])
    tokens = counter.count_message(PromptMessage(role="system", content=text))
    (made,) = make_goals_checkpoint(goals.stack, counter)
    assert made == Checkpoint(id="goals", text=text, message_ids=(), timestamp="", tokens=tokens, engine_written=True)
    assert tokens > 10


def test_what_cannot_be_a_goal_is_refused() -> None:
    goals = GoalKeeper()
    for change in (lambda text: goals.note("blocker", text), goals.decision, lambda _: goals.complete()):
        with pytest.raises(UsageError, match="No active goal"):
            change("x")
    with pytest.raises(UsageError, match="The text is empty"):
        goals.set("  ")
    with pytest.raises(UsageError, match="longer than 2000 characters"):
        goals.set("x" * 2001)
    assert goals.stack.goals == ()
    assert goals.set("x" * 2000) == f"Goal set: {'x' * 2000}"


def test_goals_are_described_again_once_they_differ_from_what_was_told() -> None:
    keeper = GoalKeeper()
    told = ToldGoals(keeper)
    assert (told.are_told, told.describe_changed()) == (True, "")
    keeper.set("ship it")
    assert (told.are_told, told.describe_changed()) == (False, "Goal: ship it")
    told.mark_told()
    assert (told.are_told, told.describe_changed()) == (True, "")
    told.forget()
    assert (told.are_told, told.describe_changed()) == (False, "Goal: ship it")
