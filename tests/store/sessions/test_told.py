"""What recording tells as it goes, and what it keeps and deletes when asked."""

import asyncio
from pathlib import Path

import pytest

from ollm.domain.errors import StorageError
from ollm.domain.tools import RecordedResult, ToolCallRecord
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.store.sessions.support import AT, Home, said


@covers("H678", "H679", "H680", "H681")
async def test_every_step_of_a_session_is_an_event(tmp_path: Path) -> None:
    home = Home(tmp_path)
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    await service.record_message(session_id, said("hello"))
    done = RecordedResult(llm_content="x")
    call = ToolCallRecord(id="c1", name="ls", args={}, timestamp=AT, message_id=1, status="ok", result=done)
    await service.record_tool_call(session_id, call)
    await service.save_session(session_id)

    told = [type(event).__struct_config__.tag for event in home.events]

    assert told == ["session-created", "message-recorded", "tool-call-recorded", "session-saved"]
    assert {event.session_id for event in home.events} == {session_id}


@covers("D149")
@pytest.mark.parametrize("keep", [0, 2, 9])
async def test_all_but_the_last_active_are_deleted(tmp_path: Path, keep: int) -> None:
    home = Home(tmp_path)
    service = home.service()
    ids = []
    for number in range(4):
        session_id = await service.create_session("m", "ollama")
        await service.record_message(session_id, said(f"number {number}"))
        await service.close_session(session_id)
        ids.append(session_id)

    gone = await service.delete_oldest_sessions(keep)

    assert set(gone) == set(ids[: max(len(ids) - keep, 0)])
    assert {path.stem for path in home.sessions.glob("*.json")} == set(ids) - set(gone)


@covers("D160")
async def test_a_session_that_is_open_is_not_read_from_disk_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    await service.record_message(session_id, said("one"))
    home.document(session_id).rename(tmp_path / "away")

    await service.record_message(session_id, said("two"))
    await service.save_session(session_id)

    assert home.texts(session_id) == ["one", "two"]


@covers("H711")
def test_a_corrupted_session_can_be_deleted(tmp_path: Path) -> None:
    home = Home(tmp_path)
    hurt = home.recorded("one")
    home.document(hurt).write_bytes(b'{"sessionId": ')

    asyncio.run(home.service().delete_session(hurt))

    assert not list(home.sessions.glob(f"{hurt}*"))


@covers("H708")
def test_permissions_are_named_when_they_are_the_cause() -> None:
    def body(directory: Path) -> None:
        home = Home(directory)
        session_id = home.recorded("one")
        home.document(session_id).chmod(0)

        with pytest.raises(StorageError, match="ermission") as told:
            asyncio.run(home.service().get_session(session_id))
        assert session_id in str(told.value)

    as_ordinary_user(body)
