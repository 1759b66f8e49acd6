"""What is as large as may be is read and written as a whole, and what is one larger is not: each bound at itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ollm.domain.errors import DamagedError
from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.store.session_files import document, files, journal, reader, scan, writer
from ollm.store.session_files.files import SessionFile
from ollm.store.session_files.journal import MARK_EVERY_BYTES, iter_marks
from tests.store.sessions.support import AT, Home, call, run, said

READERS = (document, files, reader, scan)


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


def test_a_journal_of_exactly_the_limit_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)

    async def record() -> str:
        service = home.service()
        name = await service.create_session("m", "ollama")
        for number in range(9):
            await service.record_message(name, said(f"message {number}"))
        service._writers.pop(name).abandon()
        return name

    name = run(record)
    size = home.journal(name).stat().st_size
    assert size > home.document(name).stat().st_size
    limit_bytes(monkeypatch, size)
    assert (home.files.read(name).damage, len(home.files.read(name).session.messages)) == (None, 9)
    limit_bytes(monkeypatch, size - 1)
    assert home.files.read(name).damage == "the journal is too large to read (0 MB)"
    assert len(home.files.read(name).session.messages) == 8


def test_a_damaged_session_with_one_readable_message_goes_on(tmp_path: Path) -> None:
    home = Home(tmp_path)
    name = home.recorded("kept", "lost")
    whole = home.document(name).read_bytes()
    home.document(name).write_bytes(whole.replace(b'"lost"', b'"lo'))

    writer, loaded = home.files.open(name)
    writer.close()

    assert [message.text for message in loaded.session.messages] == ["kept"]
    assert "could not be read" in str(loaded.damage)


def open_writer(home: Home) -> writer.SessionWriter:
    head = {"sessionId": "550e8400-e29b-41d4-a716-446655440000", "startTime": AT, "lastActivity": AT, "metadata": {}}
    made = home.files.create({**head, "model": "m", "provider": "p"})
    made.flush()
    return made


def test_a_mark_comes_when_it_is_due_and_no_more_records_wait_than_that(tmp_path: Path) -> None:
    made = open_writer(Home(tmp_path))
    filler = "x" * (MARK_EVERY_BYTES - 300)
    made.record_message(AT, Message("user", (TextPart(filler),), AT, id=1), 0)
    made.record_message(AT, Message("user", (TextPart("short of it"),), AT, id=2), 0)
    assert b'"mark"' not in made._journal.path.read_bytes()
    made.record_message(AT, Message("user", (TextPart("y" * 300),), AT, id=3), 0)
    made.deferred = True
    for number in range(4, 4 + 64):
        made.record_message(AT, Message("assistant", (TextPart("z"),), AT, id=number), 0)
    made.record_message(AT, Message("user", (TextPart("too many wait"),), AT, id=99), 0)
    assert b'"mark"' not in b"".join(made.pending)
    made.flush()
    made.record_call(AT, {"id": "c9", "status": "running"}, 0)
    made.record_message(AT, Message("user", (TextPart("while a call runs"),), AT, id=100), 0)
    assert b'"mark"' not in b"".join(made.pending)
    made.record_call(AT, {"id": "c9", "status": "ok"}, 0)
    made.record_message(AT, Message("user", (TextPart("due"),), AT, id=101), 0)
    marked = [line for line in made.pending if b'"mark"' in line]
    assert len(marked) == 1
    mark = journal.parse_record(marked[0]).mark
    assert mark is not None
    assert (mark.count, mark.last, mark.calls, mark.previous) == (69, 100, 9, -1)
    made.flush()
    with made._journal.path.open("rb") as file:
        assert [one.place for one in iter_marks(SessionFile(file.fileno()))] == [
            made._journal.good - len(made_tail(made, marked[0]))
        ]
    made.abandon()


def made_tail(made: writer.SessionWriter, mark: bytes) -> bytes:
    whole = made._journal.path.read_bytes()
    return whole[whole.index(mark) :]


@pytest.mark.parametrize(
    ("document_bytes", "journal_bytes", "due"),
    [
        (100, 0, False), (100, 1, True), (65_535, 1, True), (65_536, 1, False), (65_536, 65_536, False),
        (65_536, 65_537, True), (100, 64 << 20, True), (100, (64 << 20) + 1, False),
    ],
)  # fmt: skip
def test_a_journal_is_folded_at_the_end_of_a_turn(
    tmp_path: Path, document_bytes: int, journal_bytes: int, due: bool
) -> None:
    made = open_writer(Home(tmp_path))
    made.document_size, made._journal.good = document_bytes, journal_bytes
    assert made.is_fold_due is due
    made.abandon()


@pytest.mark.parametrize(("spare", "stays"), [(0, True), (1, False)])
def test_a_large_session_keeps_its_journal_when_it_is_closed(tmp_path: Path, spare: int, stays: bool) -> None:
    made = open_writer(Home(tmp_path))
    made.record_message(AT, Message("user", (TextPart("said"),), AT, id=1), 0)
    made.document_size = (8 << 20) - made.journal_size - spare
    folded = made.close()

    assert (folded, made._journal.path.exists()) == (not stays, stays)


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
        service._writers.pop(name).abandon()
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
    assert loaded.unfinished is False
