"""T11: memory and write_todos, through dispatch."""

import subprocess
import sys
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


@covers("T11.1", "T11.2")
@pytest.mark.parametrize(
    "value", ["text", "", 5, 2.5, True, None, [1, {"a": None}], {"deep": {"er": [10**30]}}, "漢\n\t"]
)
async def test_a_value_comes_back_as_it_was_in_another_process(
    drive: Desk, workspace: Path, tmp_path: Path, value
) -> None:
    await drive("memory", action="set", key="k", value=value)

    got = await Desk(workspace, tmp_path / "home")("memory", action="get", key="k")

    import json

    text = content(got)
    assert text == value if isinstance(value, str) else json.loads(text) == value


@covers("T11.2")
async def test_a_missing_key_is_said_with_the_nearest_ones(drive: Desk) -> None:
    await drive("memory", action="set", key="build command", value="make")

    kind, message = error(await drive("memory", action="get", key="build comand"))

    assert kind == "NotFound"
    assert "build command" in message


@covers("T11.3", "T11.4")
async def test_deleted_keys_are_gone_and_the_rest_listed(drive: Desk) -> None:
    for key in ("b", "a", "c"):
        await drive("memory", action="set", key=key, value=1)

    content(await drive("memory", action="delete", key="b"))

    assert content(await drive("memory", action="list")) == "a\nc"
    assert error(await drive("memory", action="delete", key="b"))[0] == "NotFound"


async def test_global_values_are_apart_from_the_workspace(drive: Desk, tmp_path: Path) -> None:
    await drive("memory", action="set", key="k", value="here")
    await drive("memory", action="set", key="k", value="everywhere", scope="global")

    assert content(await drive("memory", action="get", key="k")) == "here"
    other = tmp_path / "other"
    other.mkdir()
    assert (
        content(await Desk(other, tmp_path / "home")("memory", action="get", key="k", scope="global")) == "everywhere"
    )


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
        ({"action": "forget", "key": "k"}, "one of delete, get, list, set"),
        ({"key": "k"}, "action: missing"),
        ({"action": "list", "scope": "moon"}, "one of global, workspace"),
    ],
)
async def test_what_cannot_be_remembered(drive: Desk, workspace: Path, arguments: dict[str, Any], said: str) -> None:
    kind, message = error(await drive("memory", **arguments))

    assert kind == "ValidationError"
    assert said in message
    assert not (workspace / ".ollm" / "memory.db").exists()


@covers("T11.9")
def test_processes_setting_at_once_leave_a_key_each(workspace: Path) -> None:
    script = """if True:
        import sys
        from pathlib import Path
        from ollm.store.database import WORKSPACE_MIGRATIONS
        from ollm.store.notes import NoteStore
        store = NoteStore(lambda: Path(sys.argv[1]), WORKSPACE_MIGRATIONS)
        store.set(f"key {sys.argv[2]}", "1")
        store.add_todo(sys.argv[2])
    """
    path = workspace / "memory.db"
    started = [subprocess.Popen([sys.executable, "-c", script, str(path), str(number)]) for number in range(6)]

    assert [process.wait(60) for process in started] == [0] * 6
    store = NoteStore(lambda: path, WORKSPACE_MIGRATIONS)
    assert len(store.list_keys()) == 6
    assert len({todo.id for todo in store.list_todos()}) == 6
