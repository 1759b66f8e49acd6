"""`memory.db`: records of a workspace's sessions, episodes, and where the file stands."""

import sqlite3
from pathlib import Path

import pytest

from ollm.domain.session import ChatSession, CommandOutcome, Episode, PlanState, PlanStep
from ollm.store.workspace_db import WorkspaceDatabase
from tests.covers import covers


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
