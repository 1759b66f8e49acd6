"""The session under way: what is said is on disk, and the turn is remembered."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from ollm.domain.messages import TextPart, ToolCall, ToolCallPart
from ollm.domain.tools import RecordedResult
from ollm.runtime.recorder import Recorder
from ollm.services.chat_recording import ChatRecordingService
from ollm.store.session_files import SessionFiles, SessionPlaces

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
async def recorder(tmp_path: Path) -> Recorder:
    service = ChatRecordingService(SessionFiles(SessionPlaces(directory=tmp_path / "sessions")))
    return Recorder(service, await service.create_session("m", "p"), 3, lambda: NOW)


async def test_messages_are_numbered_stamped_and_remembered_for_the_turn(recorder: Recorder) -> None:
    first = await recorder.record_message("user", (TextPart("one\ntwo"),))
    second = await recorder.record_message("assistant", (TextPart("half"),), interrupted=True)

    assert (first.id, first.timestamp, second.interrupted) == (1, "2026-01-02T00:00:00.000Z", True)
    assert recorder.messages == [first, second]
    assert recorder.title == "one"
    recorder.begin_turn()
    assert (recorder.messages, recorder.calls) == ([], {})
    await recorder.record_message("user", (TextPart("another"),))
    assert recorder.title == "one"


async def test_an_answer_is_written_with_the_calls_that_start(recorder: Recorder) -> None:
    calls = [ToolCall(id="c4", name="ls", arguments={"path": "."})]

    answer = await recorder.record_answer((TextPart("Looking"),), calls)

    assert answer.parts == (TextPart("Looking"), ToolCallPart("c4"))
    assert recorder.calls["c4"].message_id == answer.id
    found = recorder._service.load(recorder.session_id).session
    assert [(call.id, call.status, call.message_id) for call in found.tool_calls] == [("c4", "running", answer.id)]
    assert (await recorder.record_answer((TextPart("done"),), [])).call_ids == ()


async def test_a_call_is_written_again_only_when_something_is_new(recorder: Recorder) -> None:
    await recorder.record_answer((), [ToolCall(id="c4", name="ls", arguments={})])
    started = recorder.calls["c4"]
    written: list[str] = []
    record = recorder._service.record_tool_call

    async def count(session_id: str, call: object) -> None:
        written.append(session_id)
        await record(session_id, call)  # type: ignore[arg-type]

    recorder._service.record_tool_call = count  # type: ignore[method-assign, assignment]
    await recorder.record_tool_call(started)
    assert written == []
    done = msgspec.structs.replace(started, status="ok", result=RecordedResult(llm_content="x"))
    await recorder.record_tool_call(done)
    await recorder.record_tool_call(msgspec.structs.replace(started, args={"path": "b"}))
    await recorder.record_tool_call(msgspec.structs.replace(started, id="c9"))

    assert len(written) == 3
    assert recorder.calls["c9"].id == "c9"


async def test_call_ids_go_on_from_those_of_the_session(recorder: Recorder) -> None:
    assert [recorder.make_call_id(), recorder.make_call_id()] == ["c4", "c5"]


async def test_an_answer_under_way_is_kept_and_saving_folds(recorder: Recorder) -> None:
    await recorder.record_message("user", (TextPart("go"),))
    await recorder.record_partial((TextPart("half an ans"),))
    found = recorder._service.load(recorder.session_id).session
    assert [(m.text, m.interrupted) for m in found.messages] == [("go", False), ("half an ans", True)]
    await recorder.save()
