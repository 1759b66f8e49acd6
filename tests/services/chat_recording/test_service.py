"""Recording sessions, and checking them."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from ollm.domain.events import Event
from ollm.domain.messages import Message, TextPart, ThinkingPart, ToolCallPart
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.services.chat_recording.library import Finding, check_sessions
from ollm.services.chat_recording.service import ChatRecordingService, make_title
from ollm.services.token_counting import TokenCounter
from ollm.store.session_files.store import SessionFiles
from tests.covers import covers
from tests.store.sessions.support import AT, Home, said


def files(root: Path) -> SessionFiles:
    return Home(root).files


def service(root: Path, events: list[Event] | None = None) -> ChatRecordingService:
    return ChatRecordingService(files(root), emit=(events if events is not None else []).append)


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
    await recording.record_text(session_id, ThinkingPart, "hm")
    await recording.record_text(session_id, ThinkingPart, "m")
    await recording.record_text(session_id, TextPart, "Su")
    assert (await recording.get_session(session_id)).messages[-1].text == "Su"
    async with asyncio.timeout(30):  # the text is on disk a second later, even if no more of it comes
        while (found := await service(tmp_path).get_session(session_id)).messages[-1].text != "Su":
            await asyncio.sleep(0.1)
    assert found.messages[-1].interrupted
    assert (found.messages[-1].thinking, found.messages[-1].text) == ("hmm", "Su")

    whole = Message(
        role="assistant", parts=(ThinkingPart(text="hmm"), TextPart(text="Sure"), ToolCallPart(id="c")), timestamp=AT
    )
    await recording.record_message(session_id, whole)
    found = await service(tmp_path).get_session(session_id)
    assert found.messages[1].parts == whole.parts
    assert not found.messages[1].interrupted
    await recording.save_session(session_id)
    assert (await service(tmp_path).get_session(session_id)).messages[1].parts == whole.parts


async def test_a_call_left_without_result_is_interrupted_when_resumed(tmp_path):
    home = Home(tmp_path)
    recording = home.service()
    session_id = await recording.create_session("m", "ollama")
    await recording.record_message(session_id, said("hello"))
    asked = Message(role="assistant", parts=(ToolCallPart(id="c1"), ToolCallPart(id="c2")), timestamp=AT)
    await recording.record_message(session_id, asked)
    await recording.record_tool_call(
        session_id, ToolCallRecord(id="c1", name="ls", args={}, timestamp=AT, message_id=2)
    )
    home.crash(session_id)

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
async def test_a_session_is_given_by_its_id_and_nothing_for_an_unknown_one(tmp_path):
    recording = service(tmp_path)
    session_id = await recording.create_session("m", "ollama")
    await recording.record_message(session_id, said("hello"))
    found = await recording.get_session(session_id)
    assert (found.session_id, found.model, len(found.messages)) == (session_id, "m", 1)
    assert await recording.get_session("550e8400-e29b-41d4-a716-446655440000") is None
    assert await recording.get_session("../../etc/passwd") is None
    with pytest.raises(Exception, match="not a session id"):
        await recording.delete_session("../../etc/passwd")


@covers("H678", "H679", "H680", "H681", "S9.2", "S9.6")
async def test_what_happens_to_a_session_is_told_in_events(tmp_path):
    events: list[Event] = []
    recording = service(tmp_path, events)
    session_id = await recording.create_session("m", "ollama")
    await recording.record_message(session_id, said("hello"))
    await recording.record_tool_call(
        session_id, ToolCallRecord(id="c1", name="ls", args={}, timestamp=AT, message_id=1)
    )
    await recording.end_turn(session_id)
    await recording.record_message(session_id, said("bye"))
    await recording.close_session(session_id)
    assert [msgspec.to_builtins(event)["type"] for event in events] == [
        "session-created",
        "message-recorded",
        "tool-call-recorded",
        "session-saved",
        "message-recorded",
        "session-saved",
    ]
    assert {event.session_id for event in events} == {session_id}
    document = json.loads((tmp_path / "sessions" / f"{session_id}.json").read_bytes())
    assert [message["id"] for message in document["messages"]] == [1, 2]
    assert sorted(path.name for path in (tmp_path / "sessions").iterdir()) == [f"{session_id}.json"]


async def test_a_history_that_grows_costs_only_its_new_items(tmp_path):
    recording = service(tmp_path)
    session_id = await recording.create_session("m", "ollama")
    await recording.record_message(session_id, said("hello"))
    history = []
    for number in range(3):
        history.append({"trigger": f"step-{number}"})
        await recording.update_metadata(session_id, {"mode_history": tuple(history)})
    journal = (tmp_path / "sessions" / f"{session_id}.journal").read_text()
    assert journal.count("step-0") == 1
    for _ in range(2):
        found = await service(tmp_path).get_session(session_id)
        assert list(found.metadata.mode_history) == history
        await recording.close_session(session_id)


@covers("S1.8")
def test_a_title_is_the_first_line_cut():
    assert make_title(said("\n  first line  \nsecond")) == "first line"
    assert make_title(said("x" * 100)) == "x" * 79 + "…"
    assert make_title(said("")) == ""
    assert make_title(said("~~~\nall\ncode")) == "~~~"


@covers("S1.8")
async def test_a_session_in_which_nobody_spoke_yet_is_named_by_the_first_words_after_it_was_opened(tmp_path: Path):
    recording = ChatRecordingService(files(tmp_path))
    session_id = await recording.create_session("m", "ollama")
    await recording.record_message(session_id, Message(role="system", parts=(TextPart(text="note"),), timestamp=AT))
    await recording.close_session(session_id)
    again = ChatRecordingService(files(tmp_path))

    await again.open_session(session_id)
    await again.record_message(session_id, said("mend the door"))

    assert (await again.get_session(session_id)).metadata.title == "mend the door"


@covers("S1.8", "D113", "D204")
async def test_the_token_count_is_what_the_session_s_model_would_count(tmp_path: Path) -> None:
    counter = TokenCounter(1.7)
    recording = ChatRecordingService(files(tmp_path), count_tokens=counter.count_text)
    session_id = await recording.create_session("m", "ollama")
    text, thought, output = "def main() -> None:\n    print(1_000)", "Hm, 漢字?", "exit code 0\n" * 30
    await recording.record_message(session_id, said(text))
    answer = Message(role="assistant", parts=(ThinkingPart(text=thought), TextPart(text="ok")), timestamp=AT)
    await recording.record_message(session_id, answer)
    await recording.record_tool_call(
        session_id, ToolCallRecord(id="c1", name="ls", args={}, timestamp=AT, message_id=2)
    )
    done = RecordedResult(llm_content=output)
    await recording.record_tool_call(
        session_id, ToolCallRecord(id="c1", name="ls", args={}, timestamp=AT, message_id=2, result=done, status="ok")
    )

    expected = sum(counter.count_text(part) for part in (text, thought, "ok", output))

    found = await recording.get_session(session_id)
    assert found.metadata.token_count == expected
    await recording.close_session(session_id)
    assert json.loads((tmp_path / "sessions" / f"{session_id}.json").read_bytes())["metadata"]["tokenCount"] == expected


async def test_a_session_from_elsewhere_is_named_by_its_first_words(tmp_path: Path) -> None:
    recording = service(tmp_path)
    session_id = await recording.create_session("m", "ollama")
    await recording.record_message(session_id, said("the first"))
    await recording.update_metadata(session_id, {"title": ""})
    await recording.close_session(session_id)

    again = service(tmp_path)
    await again.open_session(session_id)
    await again.record_message(session_id, said("the second"))

    assert (await again.get_session(session_id)).metadata.title == "the first"


async def test_arguments_nested_deeper_than_can_be_written_leave_the_rest_of_their_call(tmp_path: Path) -> None:
    deep: dict[str, object] = {}
    for _ in range(3000):
        deep = {"a": deep}
    call = ToolCallRecord(id="c1", name="ls", args={"path": "x", "deep": deep}, timestamp=AT, status="ok")

    recording = service(tmp_path)
    session_id = await recording.create_session("m", "ollama")
    await recording.record_tool_call(session_id, call)

    (told,) = (await service(tmp_path).get_session(session_id)).tool_calls
    assert (told.id, told.name, told.status) == ("c1", "ls", "ok")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_cut_document_is_told_and_mended_with_the_damaged_file_kept(home: Home) -> None:
    kept, broken = home.recorded("whole"), home.recorded("one", "two", "three")
    document = home.document(broken)
    document.write_bytes(document.read_bytes()[:-200])

    (found,) = check_sessions(home.files, repair=False)
    assert (found.session_id, found.outcome) == (broken, "damaged")
    assert found.problem
    (mended,) = check_sessions(home.files, repair=True)

    assert mended == Finding(session_id=broken, problem=mended.problem, outcome="mended")
    assert check_sessions(home.files, repair=False) == []
    assert home.texts(broken)[:1] == ["one"]
    assert home.texts(kept) == ["whole"]
    assert any("damaged" in path.name or path.suffix not in (".json", ".lock") for path in home.sessions.iterdir())


def test_what_is_no_session_at_all_is_told_and_not_mended(home: Home) -> None:
    session_id = home.recorded("x")
    home.document(session_id).write_bytes(b"\x00" * 50)

    (found,) = check_sessions(home.files, repair=False)
    (tried,) = check_sessions(home.files, repair=True)

    assert found.outcome == "damaged"
    assert tried.outcome == "damaged" or home.texts(session_id) is not None


def test_damage_in_the_middle_is_found_by_reading_all_and_waits_while_the_session_is_open(home: Home) -> None:
    session_id = home.recorded("One", "Two", "Three")
    document = home.document(session_id)
    document.write_bytes(document.read_bytes().replace(b'"Two"', b'"Tw\x00\xff'))
    problem = "message 2 is missing from this session's files (1 entry could not be read)"

    assert check_sessions(home.files, repair=False) == [Finding(session_id=session_id, problem=problem)]
    assert check_sessions(home.files, repair=True) == [
        Finding(session_id=session_id, problem=problem, outcome="mended")
    ]
    assert check_sessions(home.files, repair=True) == []


def test_a_session_of_a_newer_version_is_read_and_never_written(home: Home) -> None:
    session_id = home.recorded("x")
    document = home.document(session_id)
    newer = document.read_bytes().replace(b'"schemaVersion":1', b'"schemaVersion":99')
    document.write_bytes(newer)
    assert check_sessions(home.files, repair=True) == []
    assert document.read_bytes() == newer

    document.write_bytes(newer[:-30])
    found = check_sessions(home.files, repair=True)
    (told,) = check_sessions(home.files, repair=False)
    assert "the file is truncated; message 1 is missing from this session's files" in told.problem
    assert [one.problem.startswith(f"{told.problem}; not repaired: ") for one in found] == [True]
    assert document.read_bytes() == newer[:-30]


def test_what_cannot_be_mended_says_why(home: Home) -> None:
    lost, busy = home.recorded("lost"), home.recorded("One", "Two")
    home.document(lost).write_bytes(b"\0" * 50)
    home.document(busy).write_bytes(home.document(busy).read_bytes().replace(b'"Two"', b'"Tw\x00\xff'))
    writer, _ = home.files.open(home.recorded("open"))

    try:
        found = {one.session_id: one for one in check_sessions(home.files, repair=True)}
    finally:
        writer.abandon()

    assert found[lost].outcome == "damaged"
    assert f"not repaired: {home.document(lost)} cannot be resumed: no message in it" in found[lost].problem
    assert found[busy].outcome == "mended"
    assert len(found) == 2
