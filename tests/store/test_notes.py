"""The agent's notes: values by key, and todos that belong to a session."""

from pathlib import Path

import pytest

from ollm.domain.tools import Todo
from ollm.store.database import WORKSPACE_MIGRATIONS
from ollm.store.notes import NoteStore


@pytest.fixture
def notes(tmp_path: Path) -> NoteStore:
    return NoteStore(lambda: tmp_path / "memory.db", WORKSPACE_MIGRATIONS)


def test_a_value_is_set_replaced_read_and_deleted(notes: NoteStore) -> None:
    assert notes.get("k") is None
    notes.set("k", '"ä😀"')
    notes.set("k", '"two"')
    notes.set("a", "1")

    assert notes.get("k") == '"two"'
    assert notes.list_keys() == ["a", "k"]
    assert notes.delete("k") is True
    assert notes.delete("k") is False
    assert notes.list_keys() == ["a"]


def test_another_process_sees_it(notes: NoteStore, tmp_path: Path) -> None:
    notes.set("k", "1")

    assert NoteStore(lambda: tmp_path / "memory.db", WORKSPACE_MIGRATIONS).get("k") == "1"


def test_todos_are_numbered_completed_and_removed(notes: NoteStore) -> None:
    assert notes.add_todo("one") == Todo(id="1", text="one")
    notes.add_todo("two")

    assert notes.complete_todo("1") is True
    assert notes.complete_todo("9") is False
    assert notes.list_todos() == (Todo(id="1", text="one", status="done"), Todo(id="2", text="two"))
    assert notes.remove_todo("2") is True
    assert notes.remove_todo("2") is False
    assert notes.add_todo("three").id == "3", "a number is never given out twice"


@pytest.mark.parametrize("number", ["", "x", "-1", "1.0", "²", "9" * 30, "9" * 18])
def test_an_id_that_is_no_number_is_no_todo(notes: NoteStore, number: str) -> None:
    notes.add_todo("one")

    assert not notes.complete_todo(number)
    assert not notes.remove_todo(number)
    assert notes.list_todos() == (Todo(id="1", text="one"),)


def test_todos_belong_to_a_session(notes: NoteStore) -> None:
    notes.get_todo_owner = lambda: "mine"
    number = notes.add_todo("mine").id
    notes.get_todo_owner = lambda: "other"

    assert notes.list_todos() == ()
    assert not notes.complete_todo(number)
    assert not notes.remove_todo(number)
    notes.reassign_todos("mine", "other")
    assert [todo.text for todo in notes.list_todos()] == ["mine"]


def test_a_plan_is_restored_only_where_there_is_no_todo(notes: NoteStore) -> None:
    notes.get_todo_owner = lambda: "s"
    notes.restore_todos([("a", True), ("b", False)])
    notes.restore_todos([("c", False)])

    assert [(todo.text, todo.status) for todo in notes.list_todos()] == [("a", "done"), ("b", "open")]


def test_a_damaged_file_is_put_aside_and_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"nonsense" * 1000)
    notes = NoteStore(lambda: tmp_path / "memory.db", WORKSPACE_MIGRATIONS)
    told: list[str] = []
    notes.report = told.append

    notes.set("k", "1")

    assert notes.get("k") == "1"
    assert len(told) == 1
    assert len(list(tmp_path.glob("memory.db*"))) >= 2
