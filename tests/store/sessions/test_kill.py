"""Killed writers, bounds of sessions, and what is told."""

import asyncio
import json
import os
import random
import select
import signal
import time
from pathlib import Path

import pytest

from ollm.domain.errors import DamagedError, StorageError
from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.store.session_files import files, reader, writer
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.sizes import size
from tests.store.sessions.support import AT, Home, call, run, said

KILLS = size(100, 5000)

ROUNDS_PER_SESSION = 20

PATIENCE = 60.0  # a busy machine may take its time


async def talk(home: Home, session_id: str, acknowledge, prefix: str) -> None:
    """Record without end: questions, answers that stream, calls, ends of turns."""
    service = home.service()
    await service.open_session(session_id)
    turn = 0
    while True:
        turn += 1
        text = f"{prefix}.{turn}"
        sent = await service.record_message(
            session_id, Message(role="user", parts=(TextPart(text=text),), timestamp=AT)
        )
        acknowledge(f"m {sent.id} {text}")
        answer = f"{text}a " + "word " * (turn % 60)
        await service.record_text(session_id, TextPart, answer[: len(answer) // 2])
        parts = (TextPart(text=answer), ToolCallPart(id=text))
        sent = await service.record_message(session_id, Message(role="assistant", parts=parts, timestamp=AT))
        acknowledge(f"m {sent.id} {answer}")
        await service.record_tool_call(session_id, call(text, message_id=sent.id))
        await service.record_tool_call(session_id, call(text, message_id=sent.id, result=answer))
        acknowledge(f"c 0 {text}")
        if turn % 3 == 0:
            await service.end_turn(session_id)
        if turn % 7 == 0:
            await service.save_session(session_id)


def killed_talk(home: Home, session_id: str, prefix: str, seconds: float, *, begun: bool) -> list[str]:
    """What the child was told is recorded before it was killed, so long after it started, or had `begun` to record."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            asyncio.run(talk(home, session_id, lambda text: os.write(writing, (text + "\n").encode()), prefix))
        finally:
            os._exit(1)
    os.close(writing)
    if begun:
        select.select([reading], [], [], PATIENCE)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read().decode().split("\n")[:-1]


@pytest.mark.slow
@covers("S9.3", "P7", "H229", "H230", "H231", "D159")
def test_after_kill_9_at_random_moments_every_acknowledged_record_is_there_once_and_in_order(tmp_path):
    home = Home(tmp_path)
    chance = random.Random(7)
    messages: dict[int, str] = {}
    calls: set[str] = set()
    total, session_id = 0, ""
    for kill in range(KILLS):
        if kill % ROUNDS_PER_SESSION == 0:
            session_id, messages, calls = home.recorded("start"), {}, set()
        for line in killed_talk(home, session_id, str(kill), chance.uniform(0.0, 0.04), begun=kill % 5 > 0):
            kind, number, text = line.split(" ", 2)
            if kind == "m":
                messages[int(number)] = text
            else:
                calls.add(text)
        session = home.files.read(session_id).session
        found = {message.id: message.text for message in session.messages}
        assert [message.id for message in session.messages] == list(range(1, len(found) + 1))
        assert {number: found.get(number) for number in messages} == messages
        finished = [record.id for record in session.tool_calls if record.status == "ok"]
        assert calls <= set(finished)
        assert len(session.tool_calls) == len({record.id for record in session.tool_calls})
        total += len(messages)
    assert total > KILLS // 2  # the loop did record, it was not killed before it began


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


READERS = (files, reader)


def limit_bytes(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for module in READERS:
        monkeypatch.setattr(module, "MAX_BYTES", size)


@pytest.mark.parametrize("indent", [None, 1])
def test_a_document_of_exactly_the_limit_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int | None
) -> None:
    home = Home(tmp_path)
    name = home.recorded("one", "two", "three")
    path = home.document(name)
    if indent:
        path.write_text(json.dumps(json.loads(path.read_bytes()), indent=indent))
    size = path.stat().st_size

    limit_bytes(monkeypatch, size)
    whole = home.files.read(name)
    limit_bytes(monkeypatch, size - 1)
    beyond = home.files.read(name)

    assert (whole.damage, whole.read_only, len(whole.session.messages)) == (None, None, 3)
    assert "too large to read (0 MB)" in str(beyond.read_only)
    with pytest.raises(DamagedError, match="can be viewed but not continued"):
        home.files.open(name)


def open_writer(home: Home) -> writer.SessionWriter:
    head = {"sessionId": "550e8400-e29b-41d4-a716-446655440000", "startTime": AT, "lastActivity": AT, "metadata": {}}
    made = home.files.create({**head, "model": "m", "provider": "p"})
    made.flush()
    return made


@pytest.mark.parametrize(("size", "held"), [(256 * 1024, True), (256 * 1024 + 1, False)])
def test_a_document_that_another_program_writes_into_is_put_back_up_to_a_size(
    tmp_path: Path, size: int, held: bool
) -> None:
    made = open_writer(Home(tmp_path))
    path = made.document.path
    path.write_bytes(b"x" * size)
    made.document.watch()
    with path.open("r+b") as file:
        file.write(b"changed by another")
    told = made.document.restore()

    assert (path.read_bytes() == b"x" * size) is held
    assert ("it was rewritten" if held else "what it wrote is also in") in told
    made.abandon()


def test_a_call_without_a_result_is_found_open_in_the_last_answer_alone(tmp_path: Path) -> None:
    home = Home(tmp_path)

    async def record() -> str:
        service = home.service()
        name = await service.create_session("m", "ollama")
        await service.record_message(name, said("go"))
        answer = Message("assistant", (ToolCallPart("c1"), ToolCallPart("c2"), ToolCallPart("c3")), AT)
        await service.record_message(name, answer, [call("c1"), call("c2")])
        await service.record_tool_call(name, call("c1", result="done"))
        await service.record_message(name, Message("tool", (ToolResultPart("c1"),), AT))
        home.crash(name)
        return name

    name = run(record)
    made, loaded = home.files.open(name)
    made.close()
    again = home.files.read(name).session

    assert (again.messages, again.tool_calls) == (loaded.session.messages, loaded.session.tool_calls)
    assert [(one.role, one.id, one.call_ids) for one in again.messages[2:]] == [
        ("tool", 3, ("c1",)), ("tool", 4, ("c2",)), ("tool", 5, ("c3",)),
    ]  # fmt: skip
    assert [(one.id, one.name, one.status, one.message_id) for one in again.tool_calls] == [
        ("c1", "ls", "ok", 1), ("c2", "ls", "interrupted", 2), ("c3", "unknown", "interrupted", 2),
    ]  # fmt: skip
    assert not loaded.partial
