"""The todo list, through dispatch."""

from pathlib import Path
from typing import Any

import pytest

from ollm.domain.tools import Todo
from ollm.store.database import GLOBAL_MIGRATIONS, WORKSPACE_MIGRATIONS
from ollm.store.notes import NoteStore
from ollm.tools.memory import Memory, MemoryStores
from ollm.tools.write_todos import TodoList, WriteTodos
from tests.covers import covers
from tests.tools.drive import Driver, content, error


class Desk(Driver):
    """A driver with both tools, and every todo list it was told of."""

    def __init__(self, workspace: Path, home: Path) -> None:
        super().__init__(workspace)
        own = NoteStore(lambda: workspace / ".ollm" / "memory.db", WORKSPACE_MIGRATIONS)
        self.told: list[tuple[Todo, ...]] = []
        self.registry.register(
            Memory, MemoryStores(workspace=own, everywhere=NoteStore(lambda: home / "global.db", GLOBAL_MIGRATIONS))
        )
        self.registry.register(WriteTodos, TodoList(store=own, changed=self.told.append))


@pytest.fixture
def drive(workspace: Path, tmp_path: Path) -> Desk:
    return Desk(workspace, tmp_path / "home")


@covers("T11.5", "T11.6", "T11.7", "T11.8")
async def test_todos_are_added_completed_removed_and_listed(drive: Desk) -> None:
    for text in ("one", "two", "three"):
        await drive("write_todos", action="add", text=text)

    await drive("write_todos", action="complete", id="2")
    record = await drive("write_todos", action="remove", id=1)

    assert content(record) == "Removed todo 1.\n[x] 2. two\n[ ] 3. three"
    assert content(await drive("write_todos", action="list")) == "[x] 2. two\n[ ] 3. three"
    assert len(drive.told) == 5
    assert drive.told[-1] == (Todo(id="2", text="two", status="done"), Todo(id="3", text="three"))


@covers("T11.5")
async def test_a_removed_todos_number_is_not_given_out_again(drive: Desk) -> None:
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
async def test_todos_that_make_no_sense(drive: Desk, arguments: dict[str, Any], kind: str, said: str) -> None:
    found, message = error(await drive("write_todos", **arguments))

    assert found == kind
    assert said in message
    assert drive.told == []
