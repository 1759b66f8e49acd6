"""Modes, goals, and the arithmetic of a context window."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.context import Checkpoint, GoalDecision, ModeName
from ollm.domain.errors import UsageError
from ollm.domain.messages import PromptMessage
from ollm.domain.tools import ToolCategory
from ollm.services import budget as rules
from ollm.services.goals import GoalKeeper, describe_goals, list_lasting_decisions, make_goals_checkpoint
from ollm.services.modes import MODES, make_mode_change, shows_tool
from ollm.services.token_counting import TokenCounter
from tests.covers import covers

ALL: tuple[ToolCategory | None, ...] = ("read", "notes", "write", "web", "run", None)  # none: of an extension


def list_shown(mode: ModeName) -> tuple[ToolCategory | None, ...]:
    return tuple(category for category in ALL if shows_tool(mode, category))


def test_plan_shows_only_tools_that_read_and_sets_read_only() -> None:
    assert list_shown("plan") == ("read", "notes", "web")
    assert MODES["plan"].approval == "read-only"


@covers("H150")
def test_a_change_is_written_down_as_the_history_keeps_it() -> None:
    step = make_mode_change("assistant", "code", "auto", 0.95)

    assert list(step) == ["from", "to", "timestamp", "trigger", "confidence"]
    assert (step["from"], step["to"], step["trigger"], step["confidence"]) == ("assistant", "code", "auto", 0.95)


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


@covers("H397", "H400", "H403", "H407", "D205")
def test_an_8k_window_with_500_fixed_tokens_compresses_above_5170() -> None:
    state = rules.compute_budget(8192, 500)

    assert (state.limit, state.available, state.trigger) == (6963, 6463, 5170)
    assert not rules.needs_compression(state, 5170)
    assert rules.needs_compression(state, 5171)


@covers("H426", "H431")
def test_a_2000_token_checkpoint_moves_the_next_trigger_to_3570() -> None:
    state = rules.compute_budget(8192, 500, 2000)

    assert (state.available, state.trigger) == (4463, 3570)


@given(st.integers(512, 300_000), st.integers(0, 20_000), st.integers(0, 20_000), st.floats(0.01, 1))
def test_no_part_is_ever_negative_or_larger_than_the_whole(window: int, fixed: int, kept: int, share: float) -> None:
    state = rules.compute_budget(window, fixed, kept, share)

    assert 0 <= state.trigger <= state.available <= state.limit < window
    assert 0 <= rules.compute_target_tokens(state) <= state.available // 2
    assert 0 <= rules.compute_answer_tokens(state, fixed) <= window


def test_a_summary_may_take_several_times_what_the_model_needs_and_never_more_than_is_set() -> None:
    assert rules.compute_summary_seconds(60, 5000, 500, (None, 20.0)) == 60
    assert rules.compute_summary_seconds(60, 5000, 500, (2000.0, 100.0)) == 30
    assert rules.compute_summary_seconds(60, 5000, 500, (50.0, 5.0)) == 60
    assert rules.compute_summary_seconds(60, 500, 50, (9000.0, 500.0)) == rules.MIN_SUMMARY_SECONDS
    assert rules.compute_summary_seconds(5, 500, 50, (9000.0, 500.0)) == 5
