"""Sessions too large to be held: what a resume gives of them, and mending them in one go."""

import json
import shutil
import time

import pytest

from ollm.domain.errors import BusyError
from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.services.chat_recording.library import check_sessions
from ollm.store.session_files import SessionFiles, recovery
from tests.covers import covers
from tests.store.sessions.support import AT, Home, call, run, said

TURNS = 60
LAST = 3 * TURNS


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session counts as large."""
    monkeypatch.setattr(recovery, "LARGE_BYTES", 0)


def asking(text: str, call_id: str) -> Message:
    return Message("assistant", (TextPart(text), ToolCallPart(call_id)), AT)


def recorded(home: Home) -> str:
    async def work() -> str:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        for turn in range(1, TURNS + 1):
            await service.record_message(session_id, said(f"question {turn}"))
            answer = await service.record_message(session_id, asking(f"looking {turn}", f"c{turn}"))
            await service.record_tool_call(session_id, call(f"c{turn}", result="found", message_id=answer.id))
            await service.record_message(session_id, Message("tool", (ToolResultPart(id=f"c{turn}"),), AT))
        await service.close_session(session_id)
        return session_id

    return run(work)


def hurt(home: Home, session_id: str, old: bytes, new: bytes) -> bytes:
    data = home.document(session_id).read_bytes()
    assert old in data
    home.document(session_id).write_bytes(data.replace(old, new, 1))
    return data.replace(old, new, 1)


@covers("S10.2", "D606", "D607")
@pytest.mark.parametrize("place", ["question 2", "question 59", "found"])
def test_a_large_damaged_session_is_mended_and_gone_on_with_from_its_end(tmp_path, large, place):
    home = Home(tmp_path)
    session_id = recorded(home)
    before = hurt(home, session_id, f'"{place}"'.encode(), b'"\xff\xff"')

    async def work():
        service = home.service()
        loaded = await service.open_session(session_id)
        last = await service.record_message(session_id, said("afterwards"))
        await service.close_session(session_id)
        return loaded, last

    loaded, last = run(work)
    assert loaded.damage
    assert loaded.skipped > 0
    assert [message.id for message in loaded.session.messages] == list(range(loaded.skipped + 1, LAST + 1))
    assert {found.id for found in loaded.session.tool_calls} >= {f"c{TURNS}", f"c{TURNS - 9}"}
    assert (last.id, loaded.calls_so_far) == (LAST + 1, TURNS)
    written = json.loads(home.document(session_id).read_bytes())
    assert [message["id"] for message in written["messages"]] == list(range(1, LAST + 2))
    assert len(written["toolCalls"]) == TURNS
    (kept,) = home.sessions.glob(f"{session_id}.json.damaged-*")
    assert kept.read_bytes() == before


@covers("S9.3")
@pytest.mark.parametrize("since", [0, 7, 119])
def test_of_a_large_whole_session_what_follows_the_number_asked_for_is_given(tmp_path, large, since):
    home = Home(tmp_path)
    session_id = recorded(home)
    writer, loaded = home.files.open(session_id, since=since)
    assert loaded.skipped <= (since or LAST)
    assert [message.id for message in loaded.session.messages] == list(range(loaded.skipped + 1, LAST + 1))
    assert (writer.message_count, writer.last_number) == (LAST, LAST)
    writer.close()


@covers("D607")
def test_the_answer_under_way_and_the_open_call_of_a_large_session_are_told_when_it_is_gone_on_with(tmp_path, large):
    home = Home(tmp_path)
    session_id = recorded(home)

    async def work():
        service = home.service()
        await service.open_session(session_id)
        answer = await service.record_message(session_id, asking("again", "c99"))
        await service.record_tool_call(session_id, call("c99", message_id=answer.id))

    run(work)  # and the process is gone
    shutil.copytree(home.root, tmp_path / "after")
    later = Home(tmp_path / "after")
    later.places.get_lock_path(session_id).unlink()
    writer, loaded = later.files.open(session_id)
    writer.close()
    assert loaded.session.messages[-1].role == "tool"
    assert loaded.session.messages[-1].id == loaded.session.messages[-2].id + 1
    assert {found.id: found.status for found in loaded.session.tool_calls}["c99"] == "interrupted"


@pytest.mark.parametrize("end", ["whole", "journal", "calls"])
def test_repairing_large_sessions_leaves_whole_ones_alone_and_mends_damaged_ones(tmp_path, large, end):
    home = Home(tmp_path)
    session_id = recorded(home)
    if end == "calls":
        hurt(home, session_id, b'"llmContent":"found"', b'"llmContent":"\xfe"')
    elif end == "journal":
        record = b'{"at":"2026-01-27T10:00:00.000Z","partial":[{"type":"text","text":"half an answ"}]}\n'
        home.journal(session_id).write_bytes(record)
    before = home.document(session_id).read_bytes()

    found = check_sessions(home.files, repair=True)

    kept = list(home.sessions.glob("*.damaged-*"))
    assert [finding.outcome for finding in found] == (["mended"] if end == "calls" else [])
    assert [path.read_bytes() for path in kept] == ([before] if end == "calls" else [])
    assert (home.document(session_id).read_bytes() == before) == (end != "calls")
    assert home.texts(session_id)[-1] == ("half an answ" if end == "journal" else "")
    assert check_sessions(home.files, repair=False) == []
    assert not list(home.sessions.glob(".*.tmp"))


@pytest.mark.parametrize("damaged", [True, False])
def test_a_large_session_that_is_open_is_reported_only_when_something_is_wrong_with_it(tmp_path, large, damaged):
    home = Home(tmp_path)
    session_id = recorded(home)
    if damaged:
        hurt(home, session_id, b'"found"', b'"\xfe"')
    holder = SessionFiles(home.places).create({"sessionId": session_id})
    holder.lock()
    try:
        with pytest.raises(BusyError):
            home.files.open(session_id)
        found = check_sessions(home.files, repair=True)
    finally:
        holder.abandon()
    assert [("not repaired" in finding.problem, finding.outcome) for finding in found] == (
        [(True, "damaged")] if damaged else []
    )


def test_a_large_session_of_a_newer_version_is_left_alone(tmp_path, large):
    home = Home(tmp_path)
    session_id = recorded(home)
    before = hurt(home, session_id, b'"schemaVersion":1', b'"schemaVersion":99')
    assert check_sessions(home.files, repair=True) == []
    assert home.document(session_id).read_bytes() == before


def test_going_on_with_a_session_takes_time_that_grows_with_its_calls_and_not_with_their_square(tmp_path):
    home = Home(tmp_path)
    session_id = home.recorded("a question")
    lines = [json.dumps(call_of(number), separators=(",", ":")) for number in range(30_000)]
    hurt(home, session_id, b'"toolCalls":[\n]', b'"toolCalls":[\n' + ",\n".join(lines).encode() + b"\n]")
    begun = time.process_time()
    writer, loaded = home.files.open(session_id)
    writer.close()
    assert len(loaded.session.tool_calls) == 30_000
    assert time.process_time() - begun < 6


def call_of(number: int) -> dict:
    known = {"id": f"c{number}", "name": "ls", "args": {}, "result": {"llmContent": "x"}, "messageId": 1}
    return {**known, "timestamp": "2026-01-27T10:00:00.000Z", "status": "ok", "error": None}


@pytest.mark.parametrize("is_large", [False, True])
def test_a_whole_session_is_opened_without_being_written(tmp_path, monkeypatch, is_large):
    if is_large:
        monkeypatch.setattr(recovery, "LARGE_BYTES", 1)
    home = Home(tmp_path)
    session_id = recorded(home)
    before = home.files.read_document_stamp(session_id)

    writer, loaded = home.files.open(session_id)

    assert home.files.read_document_stamp(session_id) == before
    whole = home.files.read(session_id).session
    assert (writer.message_count, writer.last_number) == (len(whole.messages), whole.messages[-1].id)
    assert loaded.session.messages == whole.messages[loaded.skipped :]
    assert (loaded.skipped > 0) is is_large
    writer.close()
    assert home.files.read_document_stamp(session_id) == before
