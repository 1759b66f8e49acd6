"""The sessions of a workspace as the picker shows them."""

from pathlib import Path

import pytest

from ollm.app import ProcessScope, WorkspaceScope
from ollm.cli.sessions.session_list import LocalSessionList
from ollm.domain.messages import Message, TextPart


@pytest.fixture
def scope(tmp_path: Path) -> WorkspaceScope:
    workspace = tmp_path / "project"
    workspace.mkdir()
    return WorkspaceScope(ProcessScope({"OLLM_HOME": str(tmp_path / "home")}, workspace=workspace), workspace)


async def record(scope: WorkspaceScope, text: str, origin: str | None = None) -> str:
    recording = scope.process.create_recording_service(lambda _: None)
    session = await recording.create_session("m", "ollama", workspace=str(scope.path), origin=origin)
    await recording.record_message(session, Message(role="user", parts=(TextPart(text),), timestamp=""))
    await recording.close_session(session)
    return session


async def test_a_workspace_without_sessions_is_left_untouched(scope: WorkspaceScope) -> None:
    assert await LocalSessionList(scope).load_items() == []
    assert not (scope.path / ".ollm" / "memory.db").exists()


async def test_sessions_are_listed_archived_and_deleted(scope: WorkspaceScope) -> None:
    first, second = await record(scope, "one"), await record(scope, "two", "one-shot")
    sessions = LocalSessionList(scope)
    items = {item.session_id: item for item in await sessions.load_items()}

    assert set(items) == {first, second}
    assert items[first].messages == 1
    assert (items[first].one_shot, items[second].one_shot) == (False, True)
    assert not items[first].archived
    await sessions.archive(first, True)
    assert {item.session_id for item in await sessions.load_items() if item.archived} == {first}
    await sessions.archive(first, False)
    assert not any(item.archived for item in await sessions.load_items())
    await sessions.delete(first)
    assert [item.session_id for item in await sessions.load_items()] == [second]
    assert scope.process.session_files.places.find_home(first) is None
    scope.close()
