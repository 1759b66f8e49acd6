"""What is kept of workspaces and models: notes, records, facts."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ollm.config.environment import Home
from ollm.domain.model_facts import ModelFacts
from ollm.domain.session import ChatSession, CommandOutcome, Episode, PlanState, PlanStep
from ollm.domain.tools import Todo
from ollm.store.database import WORKSPACE_MIGRATIONS, Database
from ollm.store.model_facts import ModelFactsFile, make_facts_key
from ollm.store.notes import NoteStore
from ollm.store.workspace_db import WorkspaceDatabase
from ollm.store.workspace_place import (
    ensure_fallback_directory,
    ensure_usable,
    ensure_workspace_directory,
    find_database,
    find_databases,
    find_untrusted_memory,
    get_fallback_directory,
)
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user

KEY = make_facts_key("ollama", "http://127.0.0.1:11434", "qwen3:8b")


def test_what_was_learnt_is_known_in_the_next_run_and_grows(tmp_path: Path) -> None:
    path = tmp_path / "home" / "facts.json"
    ModelFactsFile(path).update(KEY, {"call_form": "text", "window": 8192}, {})
    ModelFactsFile(path).update(KEY, {"decode_per_second": 12.5}, {})
    ModelFactsFile(path).update("other", {"window": 1}, {})

    found = ModelFactsFile(path).get(KEY)
    assert (found.call_form, found.window, found.decode_per_second) == ("text", 8192, 12.5)
    assert found.learnt.keys() == {"call_form", "window", "decode_per_second"}
    assert [facts.key for facts in ModelFactsFile(path).list_all()] == [KEY, "other"]
    assert [place.stat().st_mode & 0o777 for place in (path, path.parent)] == [0o600, 0o700]


def test_fields_of_a_newer_version_survive(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({KEY: {"window": 5, "dreams": True}}), encoding="utf-8")
    ModelFactsFile(path).update(KEY, {"window": 6}, {})

    assert json.loads(path.read_text(encoding="utf-8"))[KEY].items() >= {"window": 6, "dreams": True}.items()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"a": 1}', b'{"k": {"window": "large"}}'])
def test_a_file_that_cannot_be_read_is_learnt_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "facts.json"
    path.write_bytes(content)

    assert ModelFactsFile(path).get("k") == ModelFacts(key="k")
    assert ModelFactsFile(path).update("k", {"window": 7}, {}).window == 7


def test_processes_that_learn_at_once_lose_nothing(tmp_path: Path) -> None:
    script = "import sys; from pathlib import Path; from ollm.store.model_facts import ModelFactsFile\n"
    script += "for n in range(10): "
    script += "ModelFactsFile(Path(sys.argv[1])).update(f'{sys.argv[2]}-{n}', {'window': n + 1}, {})"
    path = tmp_path / "facts.json"
    runs = [subprocess.Popen([sys.executable, "-c", script, str(path), str(number)]) for number in range(4)]

    assert [run.wait() for run in runs] == [0] * 4
    assert len(ModelFactsFile(path).list_all()) == 40


@pytest.fixture
def notes(tmp_path: Path) -> NoteStore:
    return NoteStore(lambda: Database(tmp_path / "memory.db", WORKSPACE_MIGRATIONS))


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


def test_todos_are_numbered_completed_and_removed(notes: NoteStore) -> None:
    assert notes.add_todo("one") == Todo(id="1", text="one")
    notes.add_todo("two")

    assert notes.complete_todo("1") is True
    assert notes.complete_todo("9") is False
    assert notes.list_todos() == (Todo(id="1", text="one", status="done"), Todo(id="2", text="two"))
    assert notes.remove_todo("2") is True
    assert notes.remove_todo("2") is False
    assert notes.add_todo("three").id == "3", "a number is never given out twice"


def test_todos_belong_to_a_session(notes: NoteStore) -> None:
    notes.get_todo_owner = lambda: "mine"
    number = notes.add_todo("mine").id
    notes.get_todo_owner = lambda: "other"

    assert notes.list_todos() == ()
    assert not notes.complete_todo(number)
    assert not notes.remove_todo(number)
    notes.get_todo_owner = lambda: "mine"
    assert [todo.text for todo in notes.list_todos()] == ["mine"]


def test_a_plan_is_restored_only_where_there_is_no_todo(notes: NoteStore) -> None:
    notes.get_todo_owner = lambda: "s"
    notes.restore_todos([("a", True), ("b", False)])
    notes.restore_todos([("c", False)])

    assert [(todo.text, todo.status) for todo in notes.list_todos()] == [("a", "done"), ("b", "open")]


def test_a_damaged_file_is_put_aside_and_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"nonsense" * 1000)
    told: list[str] = []
    database = Database(tmp_path / "memory.db", WORKSPACE_MIGRATIONS, report=told.append)
    notes = NoteStore(lambda: database)

    notes.set("k", "1")

    assert notes.get("k") == "1"
    assert len(told) == 1
    assert len(list(tmp_path.glob("memory.db*"))) >= 2


def session(session_id: str, updated_at: int = 2, **more: object) -> ChatSession:
    fields = {"title": "t", "model": "m", "status": "active", "created_at": 1, "updated_at": updated_at, **more}
    return ChatSession(session_id=session_id, **fields)  # type: ignore[arg-type]


@covers("W40", "W41", "W42", "W43", "W44", "W45", "W46", "W47", "W48", "W49", "W50", "W51", "W55", "W162")
def test_records_are_created_listed_read_and_updated(tmp_path: Path) -> None:
    store = WorkspaceDatabase(tmp_path)
    plan = PlanState(
        steps=(PlanStep(text="a", done=True), PlanStep(text="b")),
        current_step_index=1,
        awaiting_continuation=True,
        paused=True,
    )
    full = session("one", summary="s", recent_messages=({"role": "user", "content": "hi"},), plan=plan)

    store.put_session(full)
    store.put_session(session("two", updated_at=9))

    assert store.get_session("one") == full
    assert [found.session_id for found in store.list_sessions()] == ["two", "one"]
    assert store.set_status("one", "closed", 20)
    assert [(found.session_id, found.status) for found in store.list_sessions()] == [
        ("one", "closed"),
        ("two", "active"),
    ]
    assert not store.set_status("none", "closed", 20)


@covers("W39", "W40", "W43")
def test_the_table_has_exactly_the_fields_and_states_it_should(tmp_path: Path) -> None:
    store = WorkspaceDatabase(tmp_path)
    store.put_session(session("one"))

    with sqlite3.connect(tmp_path / "memory.db") as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(chat_sessions)")]
        sql = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'chat_sessions'").fetchone()[0]

    assert names == [
        "session_id", "title", "model", "status", "created_at", "updated_at", "summary", "recent_messages",
        "plan_steps", "current_step_index", "awaiting_continuation", "paused",
    ]  # fmt: skip
    assert "session_id TEXT PRIMARY KEY" in sql
    assert "CHECK (status IN ('active', 'closed', 'archived'))" in sql


@covers("W37")
def test_episodes_come_back_newest_last_and_bounded(tmp_path: Path) -> None:
    store = WorkspaceDatabase(tmp_path)
    for number in range(1, 8):
        done = (CommandOutcome(command="ls", outcome="ok"),)
        one = Episode(session_id="s", number=number, timestamp=number, request=str(number), commands=done)
        store.add_episodes([one])

    assert [episode.number for episode in store.list_episodes("s", newest=3)] == [5, 6, 7]
    assert store.list_episodes("s")[0].commands[0].command == "ls"


def test_erasing_leaves_no_byte_of_a_session(tmp_path: Path) -> None:
    store = WorkspaceDatabase(tmp_path)
    store.put_session(session("gone", summary="a-secret-marker"))
    store.add_episodes([Episode(session_id="gone", number=1, timestamp=1, request="a-secret-marker")])
    store.save_context("gone", b'"a-secret-marker"')

    store.erase("gone")
    store.close()

    assert store.list_sessions() == []
    assert b"a-secret-marker" not in (tmp_path / "memory.db").read_bytes()


def test_what_is_written_together_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    store = WorkspaceDatabase(tmp_path)
    with store.begin_transaction():
        store.put_session(session("one"))
        store.save_context("one", b"{}")

    with pytest.raises(KeyboardInterrupt), store.begin_transaction():
        store.put_session(session("two"))
        store.put_session(session("one", updated_at=99))
        raise KeyboardInterrupt

    assert [found.updated_at for found in WorkspaceDatabase(tmp_path).list_sessions()] == [2]
    store.put_session(session("three"))
    assert store.load_context("one") == b"{}"
    assert len(store.list_sessions()) == 2


def test_a_workspace_that_is_the_home_keeps_its_database_apart(tmp_path: Path) -> None:
    home = Home(root=tmp_path / ".ollm")

    place = ensure_workspace_directory(tmp_path, home)

    assert place.parent == home.workspaces
    assert ensure_workspace_directory(tmp_path, home) == place


@covers("W33")
def test_its_files_are_kept_out_of_git(tmp_path: Path) -> None:
    place = ensure_workspace_directory(tmp_path, Home(root=tmp_path / "home"))

    assert place == tmp_path / ".ollm"
    assert {"memory.db*", "*.lock"} <= set((place / ".gitignore").read_text().split())


def test_a_read_only_workspace_keeps_its_database_apart() -> None:
    def body(directory: Path) -> None:
        workspace = directory / "project"
        workspace.mkdir(mode=0o555)
        home = Home(root=directory / "home")

        assert ensure_workspace_directory(workspace, home).parent == home.workspaces

    as_ordinary_user(body)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path / "home")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_a_workspace_has_a_private_directory_of_its_own(workspace: Path, home: Home) -> None:
    place = ensure_workspace_directory(workspace, home)

    assert place == workspace / ".ollm"
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / ".gitignore").read_text() == "memory.db*\n*.lock\n.gitignore\n"
    assert (place / ".gitignore").stat().st_mode & 0o711 == 0o600
    mark = get_fallback_directory(workspace, home) / "made-here"
    assert mark.stat().st_mode & 0o777 == 0o600


def test_the_corner_of_the_home_is_named_by_where_the_workspace_really_is(
    tmp_path: Path, workspace: Path, home: Home
) -> None:
    (tmp_path / "link").symlink_to("work")
    corner = get_fallback_directory(workspace, home)

    assert corner.parent == home.workspaces
    assert len(corner.name) == 32
    assert get_fallback_directory(tmp_path / "link", home) == corner
    assert get_fallback_directory(tmp_path, home) != corner
    assert not corner.exists()
    assert ensure_fallback_directory(workspace, home) == corner
    assert corner.stat().st_mode & 0o777 == 0o700


def test_a_memory_that_came_with_the_workspace_is_used_only_where_it_is_trusted(workspace: Path, home: Home) -> None:
    (workspace / ".ollm").mkdir()
    (workspace / ".ollm" / "memory.db").write_bytes(b"theirs")

    assert ensure_workspace_directory(workspace, home) == get_fallback_directory(workspace, home)
    home.root.mkdir(exist_ok=True)
    for said in (b"not json", b"[]", b"{}", b'{"workspaces":null}', b'{"workspaces":{"/other":{}}}'):
        home.trust.write_bytes(said)
        assert ensure_workspace_directory(workspace, home) == get_fallback_directory(workspace, home)
    home.trust.write_text(json.dumps({"workspaces": {str(workspace.resolve()): {}}}))
    assert ensure_workspace_directory(workspace, home) == workspace / ".ollm"


def test_a_memory_that_came_with_an_untrusted_workspace_is_named(workspace: Path, home: Home) -> None:
    own = workspace / ".ollm" / "memory.db"
    assert find_untrusted_memory(workspace, home) is None
    own.parent.mkdir()
    assert find_untrusted_memory(workspace, home) is None
    own.write_bytes(b"theirs")
    assert find_untrusted_memory(workspace, home) == own
    home.root.mkdir(exist_ok=True)
    home.trust.write_text(json.dumps({"workspaces": {str(workspace.resolve()): {}}}))
    assert find_untrusted_memory(workspace, home) is None


def test_a_memory_that_was_made_here_is_used_again(workspace: Path, home: Home) -> None:
    place = ensure_workspace_directory(workspace, home)
    (place / "memory.db").write_bytes(b"ours")

    assert ensure_workspace_directory(workspace, home) == place


@pytest.mark.parametrize("linked", [".ollm", ".ollm/memory.db"])
def test_a_link_in_place_of_directory_or_database_is_never_followed(
    tmp_path: Path, workspace: Path, home: Home, linked: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "memory.db").write_bytes(b"x")
    if linked == ".ollm":
        (workspace / ".ollm").symlink_to(elsewhere)
    else:
        ensure_workspace_directory(workspace, home)
        (workspace / ".ollm" / "memory.db").symlink_to(elsewhere / "memory.db")

    assert ensure_workspace_directory(workspace, home) == get_fallback_directory(workspace, home)
    assert not (elsewhere / ".gitignore").exists()
    if linked == ".ollm":
        assert find_database(workspace, home) is None
        assert find_databases([workspace], home) == []


def test_what_is_no_directory_or_beneath_none_cannot_be_used(workspace: Path) -> None:
    (workspace / "file").write_text("")

    assert not ensure_usable(workspace / "file")
    assert not ensure_usable(workspace / "missing" / "deeper")


def test_a_database_is_found_where_it_is_and_nothing_is_made(workspace: Path, home: Home) -> None:
    corner = get_fallback_directory(workspace, home)
    assert find_database(workspace, home) is None
    assert not home.root.exists()
    corner.mkdir(parents=True)
    (corner / "memory.db").write_bytes(b"")
    assert find_database(workspace, home) == corner
    (workspace / ".ollm").mkdir()
    (workspace / ".ollm" / "memory.db").write_bytes(b"")
    assert find_database(workspace, home) == workspace / ".ollm"
    assert find_databases([workspace, workspace], home) == [workspace / ".ollm", corner]
    assert find_databases([], home) == [corner]
