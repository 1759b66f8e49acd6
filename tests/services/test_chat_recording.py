"""ChatRecordingService as its callers use it (S1, S9)."""

from pathlib import Path

import pytest

from ollm.domain.events import Event
from ollm.domain.messages import Message, TextPart, ThinkingPart, ToolCallPart
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.services.chat_recording import ChatRecordingService
from ollm.store.session_files import Places, SessionFiles
from tests.covers import covers

AT = "2026-01-27T10:00:00.000Z"


def files(root: Path) -> SessionFiles:
    return SessionFiles(Places(directory=root / "sessions", legacy=root / "session-data", trash=root / "trash"))


def service(root: Path, events: list[Event] | None = None) -> ChatRecordingService:
    return ChatRecordingService(files(root), emit=(events if events is not None else []).append)


def said(text: str, role: str = "user") -> Message:
    return Message(role=role, parts=(TextPart(text=text),), timestamp=AT)


@covers("S1.1", "S1.2", "S1.3", "S1.5", "S9.1")
async def test_what_was_recorded_is_there_for_another_process(tmp_path):
    recording = service(tmp_path)
    session_id = await recording.create_session("m", "ollama", workspace="/w")
    await recording.record_message(session_id, said("hello\nworld"))
    await recording.record_message(session_id, said("hi", "assistant"))
    call = ToolCallRecord(id="c1", name="ls", args={"path": "."}, timestamp=AT, message_id=2)
    await recording.record_tool_call(session_id, call)
    done = ToolCallRecord(
        id="c1",
        name="ls",
        args={"path": "."},
        timestamp=AT,
        message_id=2,
        status="ok",
        result=RecordedResult(llm_content="x"),
    )
    await recording.record_tool_call(session_id, done)
    await recording.update_metadata(session_id, {"contextWindow": 8192, "model": "n"})

    for _ in range(2):
        found = await service(tmp_path).get_session(session_id)
        assert found is not None
        assert [message.text for message in found.messages] == ["hello\nworld", "hi"]
        assert [message.id for message in found.messages] == [1, 2]
        assert found.tool_calls == (done,)
        assert (found.model, found.metadata.title, found.metadata.context_window) == ("n", "hello", 8192)
        await recording.close_session(session_id)


async def test_an_answer_under_way_survives_as_interrupted_and_is_replaced_when_recorded(tmp_path):
    recording = service(tmp_path)
    session_id = await recording.create_session("m", "ollama")
    await recording.record_message(session_id, said("hello"))
    await recording.record_partial(session_id, [ThinkingPart(text="hm")])
    await recording.record_partial(session_id, [ThinkingPart(text="hmm"), TextPart(text="Su")])
    found = await service(tmp_path).get_session(session_id)
    assert found.messages[-1].interrupted
    assert (found.messages[-1].thinking, found.messages[-1].text) == ("hmm", "Su")

    whole = Message(
        role="assistant", parts=(ThinkingPart(text="hmm"), TextPart(text="Sure"), ToolCallPart(id="c")), timestamp=AT
    )
    await recording.record_message(session_id, whole)
    journal = (tmp_path / "sessions" / f"{session_id}.journal").read_text()
    assert journal.count("hmm") == 0
    assert journal.count("Su") == 1
    found = await service(tmp_path).get_session(session_id)
    assert found.messages[1].parts == whole.parts
    assert not found.messages[1].interrupted
    await recording.save_session(session_id)
    assert (await service(tmp_path).get_session(session_id)).messages[1].parts == whole.parts


async def test_a_call_left_without_result_is_interrupted_when_resumed(tmp_path):
    recording = service(tmp_path)
    session_id = await recording.create_session("m", "ollama")
    await recording.record_message(session_id, said("hello"))
    asked = Message(role="assistant", parts=(ToolCallPart(id="c1"), ToolCallPart(id="c2")), timestamp=AT)
    await recording.record_message(session_id, asked)
    await recording.record_tool_call(
        session_id, ToolCallRecord(id="c1", name="ls", args={}, timestamp=AT, message_id=2)
    )
    recording._writers[session_id].abandon()

    loaded = await service(tmp_path).open_session(session_id)

    assert [call.status for call in loaded.session.tool_calls] == ["interrupted", "interrupted"]
    assert [message.role for message in loaded.session.messages] == ["user", "assistant", "tool", "tool"]


@covers("S1.4")
async def test_sessions_are_listed_last_active_first(tmp_path):
    recording = service(tmp_path)
    first = await recording.create_session("m", "ollama")
    second = await recording.create_session("m", "ollama")
    await recording.record_message(first, said("later"))
    listed = await recording.list_sessions()
    assert {found.session_id for found in listed} == {first, second}


@covers("D143")
async def test_an_id_that_is_no_uuid_is_unknown(tmp_path):
    recording = service(tmp_path)
    assert await recording.get_session("../../etc/passwd") is None
    with pytest.raises(Exception, match="no session id"):
        await recording.delete_session("../../etc/passwd")
