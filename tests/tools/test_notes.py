"""T11: memory, write_todos and goal, through dispatch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.errors import ToolFailure
from ollm.domain.tools import Todo
from ollm.services.goals import GoalKeeper
from ollm.store.database import WORKSPACE_MIGRATIONS, Database
from ollm.store.notes import NoteStore
from ollm.tools.framework.base import ToolContext, make_spec
from ollm.tools.goal import GoalTool
from tests.covers import covers
from tests.tools.drive import Driver, content, error


@covers("T11.1", "T11.2")
@pytest.mark.parametrize(
    "value", ["text", "", 5, 2.5, True, None, [1, {"a": None}], {"deep": {"er": [10**30]}}, "漢\n\t"]
)
async def test_a_value_comes_back_as_it_was_in_another_process(
    drive: Driver, workspace: Path, tmp_path: Path, value
) -> None:
    await drive("memory", action="set", key="k", value=value)

    got = await Driver(workspace)("memory", action="get", key="k")

    import json

    text = content(got)
    assert text == value if isinstance(value, str) else json.loads(text) == value


@covers("T11.2")
async def test_a_missing_key_is_said_with_the_nearest_ones(drive: Driver) -> None:
    await drive("memory", action="set", key="build command", value="make")

    kind, message = error(await drive("memory", action="get", key="build comand"))

    assert kind == "NotFound"
    assert "build command" in message


@covers("T11.3", "T11.4")
async def test_deleted_keys_are_gone_and_the_rest_listed(drive: Driver) -> None:
    for key in ("b", "a", "c"):
        await drive("memory", action="set", key=key, value=1)

    content(await drive("memory", action="delete", key="b"))

    assert content(await drive("memory", action="list")) == "a\nc"
    assert error(await drive("memory", action="delete", key="b"))[0] == "NotFound"


async def test_global_values_are_apart_from_the_workspace(drive: Driver, tmp_path: Path) -> None:
    await drive("memory", action="set", key="k", value="here")
    await drive("memory", action="set", key="k", value="everywhere", scope="global")

    assert content(await drive("memory", action="get", key="k")) == "here"
    other = tmp_path / "other"
    other.mkdir()
    assert content(await Driver(other)("memory", action="get", key="k", scope="global")) == "everywhere"


DEEP: Any = "x"

for _ in range(2000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"action": "set", "value": 1}, "key: expected"),
        ({"action": "set", "key": "  ", "value": 1}, "key: expected"),
        ({"action": "get", "key": "x" * 1025}, "1,025 bytes"),
        ({"action": "set", "key": "é" * 513, "value": 1}, "1,026 bytes"),
        ({"action": "set", "key": "k"}, "value: missing"),
        ({"action": "set", "key": "k", "value": "x" * 1_000_001}, "at most 1,000,000"),
        ({"action": "set", "key": "k", "value": float("nan")}, "no JSON form"),
        ({"action": "set", "key": "k", "value": DEEP}, "nested too deeply"),
        ({"action": "set", "key": "\ud800", "value": 1}, "valid text"),
        ({"action": "forget", "key": "k"}, "expected set, get, delete, list"),
        ({"key": "k"}, "action: missing"),
        ({"action": "list", "scope": "moon"}, "expected workspace, global"),
    ],
)
async def test_what_cannot_be_remembered(drive: Driver, workspace: Path, arguments: dict[str, Any], said: str) -> None:
    kind, message = error(await drive("memory", **arguments))

    assert kind == "ValidationError"
    assert said in message
    assert not (workspace / ".ollm" / "memory.db").exists()


@covers("T11.9")
def test_processes_setting_at_once_leave_a_key_each(workspace: Path) -> None:
    script = """if True:
        import sys
        from pathlib import Path
        from ollm.store.database import WORKSPACE_MIGRATIONS, Database
        from ollm.store.notes import NoteStore
        store = NoteStore(lambda: Database(Path(sys.argv[1]), WORKSPACE_MIGRATIONS))
        store.set(f"key {sys.argv[2]}", "1")
        store.add_todo(sys.argv[2])
    """
    path = workspace / "memory.db"
    started = [subprocess.Popen([sys.executable, "-c", script, str(path), str(number)]) for number in range(6)]

    assert [process.wait(60) for process in started] == [0] * 6
    store = NoteStore(lambda: Database(path, WORKSPACE_MIGRATIONS))
    assert len(store.list_keys()) == 6
    assert len({todo.id for todo in store.list_todos()}) == 6


@covers("T11.5", "T11.6", "T11.7", "T11.8")
async def test_todos_are_added_completed_removed_and_listed(drive: Driver) -> None:
    for text in ("one", "two", "three"):
        await drive("write_todos", action="add", text=text)

    await drive("write_todos", action="complete", id="2")
    record = await drive("write_todos", action="remove", id=1)

    assert content(record) == "Removed todo 1.\n[x] 2. two\n[ ] 3. three"
    assert content(await drive("write_todos", action="list")) == "[x] 2. two\n[ ] 3. three"
    assert len(drive.services.told) == 5
    assert drive.services.told[-1] == (Todo(id="2", text="two", status="done"), Todo(id="3", text="three"))


@covers("T11.5")
async def test_a_removed_todos_number_is_not_given_out_again(drive: Driver) -> None:
    await drive("write_todos", action="add", text="one")
    await drive("write_todos", action="remove", id="#1")

    assert content(await drive("write_todos", action="add", text="two")).startswith("Added todo 2.")


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        ({"action": "complete", "id": "9"}, "NotFound", "The ids are: none"),
        ({"action": "remove", "id": "x"}, "NotFound", '"x"'),
        ({"action": "remove", "id": "9" * 100}, "NotFound", "There is no todo"),
        ({"action": "complete"}, "ValidationError", "id: missing"),
        ({"action": "add"}, "ValidationError", "text: expected"),
        ({"action": "add", "text": " \n "}, "ValidationError", "text: expected"),
        ({"action": "add", "text": "x" * 2001}, "ValidationError", "2,001"),
        ({}, "ValidationError", "action: missing"),
    ],
)
async def test_todos_that_make_no_sense(drive: Driver, arguments: dict[str, Any], kind: str, said: str) -> None:
    found, message = error(await drive("write_todos", **arguments))

    assert found == kind
    assert said in message
    assert drive.services.told == []


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
