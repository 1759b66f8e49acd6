"""What can go wrong around a session being recorded: the disk, permissions, the clock, other processes, odd text."""

import asyncio
import errno
import json
import os
import resource
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from ollm.domain.errors import BusyError, StorageError
from ollm.domain.events import Notice
from ollm.domain.messages import Message, TextPart, ToolCallPart
from ollm.store.session_files import MessagePage, marks
from ollm.store.session_files import writer as writing
from ollm.store.session_files.writer import SessionWriter
from ollm.system import atomic
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.sizes import SOAK, size
from tests.store.sessions.support import AT, Home, call, said


def in_child(body) -> None:
    """Run `body` in a process of its own; fail with what it says when it fails."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        sys.dont_write_bytecode = True  # a full disk would leave half a module behind for the tests that follow
        try:
            body()
            code = 0
        except BaseException as error:
            os.write(writing, repr(error).encode()[:4000])
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said_last = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, said_last


def notices(home: Home) -> list[str]:
    return [event.text for event in home.events if isinstance(event, Notice)]


@covers("S10.1", "D605")
def test_a_full_disk_stops_nothing_and_what_was_said_is_written_when_there_is_room(tmp_path):
    def body() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        asyncio.run(talk())

    async def talk() -> None:
        home = Home(tmp_path)
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        await service.record_message(session_id, said("before"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
        for number in range(5):
            await service.record_message(session_id, said(f"during {number} " + "x" * 900))
            await service.end_turn(session_id)
        kept = await service.get_session(session_id)
        assert len(kept.messages) == 6
        assert len(notices(home)) == 1, "told once"
        assert "cannot be written" in notices(home)[0]
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await service.record_message(session_id, said("after"))
        assert [text.split()[0] for text in home.texts(session_id)] == ["before", *["during"] * 5, "after"]
        assert notices(home)[-1] == "Saving works again."
        await service.close_session(session_id)
        assert len(home.texts(session_id)) == 7
        assert not list(home.sessions.glob(".*"))

    in_child(body)


@covers("S10.1")
async def test_a_session_that_could_not_be_created_is_kept_in_memory_and_written_later(tmp_path):
    home = Home(tmp_path)
    home.sessions.write_text("a file where the directory should be")
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    await service.record_message(session_id, said("hello"))
    assert [message.text for message in (await service.get_session(session_id)).messages] == ["hello"]
    home.sessions.unlink()
    await service.end_turn(session_id)
    assert home.texts(session_id) == ["hello"]


@pytest.mark.parametrize("failing", ["fdatasync", "fsync"])
async def test_after_a_failed_sync_everything_is_written_anew_to_another_file(tmp_path, monkeypatch, failing):
    home = Home(tmp_path)
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    await service.record_message(session_id, said("one"))
    before = home.journal(session_id).stat().st_ino
    with monkeypatch.context() as patched:

        def fail(descriptor: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        patched.setattr(os, failing, fail)
        await service.record_message(session_id, said("two"))
        await service.save_session(session_id)
        assert not list(home.sessions.glob(".*.tmp")), "the temporary file is thrown away"
    await service.record_message(session_id, said("three"))
    assert home.texts(session_id) == ["one", "two", "three"]
    if failing == "fdatasync":
        assert home.journal(session_id).stat().st_ino != before
    await service.close_session(session_id)
    assert home.texts(session_id) == ["one", "two", "three"]


async def test_a_short_write_goes_on_where_it_stopped(tmp_path, monkeypatch):
    home = Home(tmp_path)
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:7]))
    await service.record_message(session_id, said("a sentence that takes many writes"))
    await service.close_session(session_id)
    assert home.texts(session_id) == ["a sentence that takes many writes"]


@covers("S10.1")
def test_permission_taken_away_in_mid_session_is_survived():
    def body(directory: Path) -> None:
        async def talk() -> None:
            home = Home(directory)
            service = home.service()
            session_id = await service.create_session("m", "ollama")
            await service.record_message(session_id, said("one"))
            home.sessions.chmod(0o500)
            await service.record_message(session_id, said("two"))
            await service.end_turn(session_id)
            assert any("Permission denied" in text for text in notices(home))
            home.sessions.chmod(0o700)
            await service.record_message(session_id, said("three"))
            await service.close_session(session_id)
            assert home.texts(session_id) == ["one", "two", "three"]

        asyncio.run(talk())

    as_ordinary_user(body)


def test_a_read_only_directory_keeps_the_conversation_going_and_says_so():
    def body(directory: Path) -> None:
        async def talk() -> None:
            home = Home(directory)
            home.sessions.mkdir()
            home.sessions.chmod(0o500)
            service = home.service()
            session_id = await service.create_session("m", "ollama")
            await service.record_message(session_id, said("hello"))
            assert len((await service.get_session(session_id)).messages) == 1
            assert len(notices(home)) == 1
            assert home.index().list_sessions() == []
            home.sessions.chmod(0o700)

        asyncio.run(talk())

    as_ordinary_user(body)


@covers("S9.5", "P9")
async def test_a_clock_set_back_never_moves_the_last_activity_back(tmp_path):
    home = Home(tmp_path)
    moments = iter([datetime(2026, 1, 1, 12, tzinfo=UTC) - timedelta(hours=hour) for hour in range(50)])
    service = home.service(clock=lambda: next(moments))
    session_id = await service.create_session("m", "ollama")
    seen = []
    for number in range(5):
        await service.record_message(session_id, said(str(number)))
        seen.append((await service.get_session(session_id)).last_activity)
    assert seen == sorted(seen)
    assert home.texts(session_id) == list("01234")


@covers("D162")
async def test_two_processes_on_one_session_the_second_is_told_who_has_it(tmp_path):
    home = Home(tmp_path)
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    await service.record_message(session_id, said("mine"))
    for attempt in (home.service().open_session, home.service().delete_session):
        with pytest.raises(BusyError, match=f"process {os.getpid()} on .* started just now"):
            await attempt(session_id)
    await service.record_message(session_id, said("still mine"))
    assert home.texts(session_id) == ["mine", "still mine"]
    await service.close_session(session_id)
    await home.service().open_session(session_id)


@pytest.mark.slow
def test_eight_processes_write_eight_sessions_and_list_at_once(tmp_path):
    home = Home(tmp_path)
    counts = size(12, 200)

    async def talk(name: str) -> None:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        for number in range(counts):
            await service.record_message(session_id, said(f"{name} {number}"))
            if number % 4 == 0:
                await service.end_turn(session_id)
                found = {summary.session_id: summary for summary in await service.list_sessions()}
                assert found[session_id].message_count == number + 1
        await service.close_session(session_id)

    children = []
    for number in range(8):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                asyncio.run(talk(str(number)))
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 8
    lines = home.index().list_sessions()
    assert [line["messageCount"] for line in lines] == [counts] * 8
    assert not any(line["damaged"] for line in lines)


@pytest.mark.parametrize(
    "text", ["lone \ud800 surrogate", "line\u2028and\u2029paragraph", "\x00\x01\x7f", "é" * 10, "🏳️‍🌈"]
)
async def test_odd_text_is_kept(tmp_path, text):
    home = Home(tmp_path)
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    await service.record_message(session_id, said(text))
    await service.record_tool_call(session_id, call(result=text, args={"odd": text, "big": 2**80, "deep": [[[1.5]]]}))
    kept = text.replace("\ud800", "?")
    for _ in range(2):
        session = home.files.read(session_id).session
        assert session.messages[0].text == kept
        assert session.tool_calls[0].result.llm_content == kept
        assert session.tool_calls[0].args["big"] == 2**80
        await service.close_session(session_id)


async def test_arguments_nested_without_end_are_cut_and_the_session_stays_readable(tmp_path):
    home = Home(tmp_path)
    nested: dict = {}
    for _ in range(5000):
        nested = {"n": nested}
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    await service.record_message(session_id, said("hello"))
    await service.record_tool_call(session_id, call(args=nested, result="x"))
    await service.close_session(session_id)
    loaded = home.files.read(session_id)
    assert loaded.damage is None
    assert len(loaded.session.tool_calls) == 1


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
@pytest.mark.slow
async def test_fifty_megabytes_in_one_message_are_recorded_and_read(tmp_path):
    home = Home(tmp_path)
    text = "0123456789" * 5_000_000
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    await service.record_message(session_id, said(text))
    await service.close_session(session_id)
    loaded = home.files.read(session_id)
    assert loaded.session.messages[0].text == text
    assert loaded.damage is None


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
@pytest.mark.slow
async def test_a_session_of_a_million_messages_is_listed_read_and_gone_on_with(tmp_path):
    home = Home(tmp_path)
    session_id = await asyncio.to_thread(home.recorded, "first")
    count = size(250_000, 1_000_000)
    path = home.document(session_id)
    head, rest = path.read_bytes().split(b"\n", 1)
    line = b'{"role":"user","parts":[{"type":"text","text":"m"}],"timestamp":"2026-01-27T10:00:00.000Z","id":%d}'
    with path.open("wb") as file:
        file.write(head + b"\n" + b",\n".join(line % number for number in range(1, count + 1)) + b"\n")
        file.write(rest[rest.index(b"]," + b'"toolCalls"') :])
    assert home.index().list_sessions()[0]["messageCount"] == count
    service = home.service()
    loaded = await service.open_session(session_id)
    assert len(loaded.session.messages) + loaded.skipped == count, "of a large one the end alone is held"
    sent = await service.record_message(session_id, Message(role="user", parts=(TextPart(text="last"),), timestamp=AT))
    assert sent.id == count + 1
    await service.close_session(session_id)
    assert home.index().list_sessions()[0]["messageCount"] == count + 1


async def test_with_auto_save_off_records_wait_for_the_end_of_the_turn(tmp_path):
    home = Home(tmp_path, auto_save=False)
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    await service.record_message(session_id, said("hello"))
    assert home.texts(session_id) == []
    assert len((await service.get_session(session_id)).messages) == 1
    await service.end_turn(session_id)
    assert home.texts(session_id) == ["hello"]


SESSION_ID = "aaaa0000-0000-4000-8000-000000000001"


def create(home: Home) -> SessionWriter:
    return home.files.create({"sessionId": SESSION_ID, "startTime": AT, "lastActivity": AT, "metadata": {}})


def record(writer: SessionWriter, number: int, text: str = "x") -> None:
    writer.record_message(AT, msgspec.structs.replace(said(text), id=number), number)


def records(home: Home) -> list[dict]:
    return [json.loads(line) for line in home.journal(SESSION_ID).read_bytes().splitlines()]


def document(home: Home) -> dict:
    found: dict = json.loads(home.document(SESSION_ID).read_bytes())
    return found


def test_a_message_is_on_disk_when_it_was_recorded(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    assert (writer.is_empty, writer.is_saved, writer.open) == (True, False, False)
    record(writer, 1)

    assert (writer.is_empty, writer.is_saved, writer.open) == (False, True, True)
    assert (writer.message_count, writer.last_number, writer.has_partial) == (1, 1, False)
    assert [line["message"]["id"] for line in records(home)] == [1]
    assert writer.journal_size == home.journal(SESSION_ID).stat().st_size
    assert writer.document_size == home.document(SESSION_ID).stat().st_size
    assert writer.has_own_files
    assert writer.directory == home.sessions
    writer.abandon()
    assert not writer.open


def test_deferred_records_wait_for_the_flush(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    writer.flush()
    with writer.batch_writes():
        record(writer, 1)
        assert len(writer.pending) == 1
        assert not writer.is_saved
        with writer.batch_writes():
            record(writer, 2)
        assert len(writer.pending) == 2
    assert writer.pending == []
    assert len(records(home)) == 2
    assert writer.deferred is False
    writer.abandon()


def test_a_partial_answer_is_written_as_what_it_has_grown_by(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    text = {"type": "text", "text": "half"}
    writer.record_partial(AT, [text])
    writer.record_partial(AT, [text])
    writer.record_partial(AT, [{**text, "text": "half an"}])
    writer.record_partial(AT, [{**text, "text": "other"}])
    assert writer.has_partial
    assert not writer.is_empty

    assert [(line["partial"][0]["text"], line.get("anew", False)) for line in records(home)] == [
        ("half", False),
        (" an", False),
        ("other", True),
    ]
    writer.record_message(AT, msgspec.structs.replace(said("other end", "assistant"), id=1), 5)
    assert records(home)[-1]["message"]["parts"] == [{"type": "text", "text": " end"}]
    assert records(home)[-1]["continues"] is True
    assert not writer.has_partial
    assert writer.fold()
    assert document(home)["messages"][0]["parts"] == [{"type": "text", "text": "other end"}]
    writer.abandon()


def test_of_a_call_that_ends_only_what_has_changed_is_written(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    started = {"id": "c1", "name": "ls", "args": {"path": "."}, "status": "running"}
    writer.record_call(AT, started, 1)
    writer.record_call(AT, {**started, "status": "ok", "result": {"llmContent": "x"}}, 2)
    writer.record_call(AT, {**started, "status": "ok"}, 3)

    assert records(home)[1]["call"] == {"id": "c1", "status": "ok", "result": {"llmContent": "x"}}
    assert records(home)[2]["call"] == {**started, "status": "ok"}
    assert writer.head["metadata"]["tokenCount"] == 3
    writer.abandon()


def test_a_list_that_only_grew_is_written_as_its_new_items(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    writer.change_fields(AT, {"model": "m"}, {"files": ["a"], "title": "t"})
    writer.change_fields(AT, {}, {"files": ["a", "b"]})
    writer.change_fields(AT, {}, {"files": ["c"]})

    assert [{key: line[key] for key in line if key != "at"} for line in records(home)] == [
        {"top": {"model": "m"}, "set": {"files": ["a"], "title": "t"}},
        {"append": {"files": [1, ["b"]]}},
        {"set": {"files": ["c"]}},
    ]
    assert writer.head["metadata"] == {"files": ["c"], "title": "t"}
    assert writer.head["model"] == "m"
    writer.abandon()


def test_small_documents_are_folded_at_every_turn_and_larger_ones_when_the_journal_outgrew_them(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    assert writer.fold_when_due() is True
    assert not home.journal(SESSION_ID).read_bytes()
    assert writer.fold_when_due() is False, "there is nothing to fold"
    record(writer, 2, "y" * 70_000)
    assert writer.fold_when_due() is True
    record(writer, 3)
    assert writer.fold_when_due() is False
    record(writer, 4, "z" * 80_000)
    assert writer.fold_when_due() is True
    assert [entry["id"] for entry in document(home)["messages"]] == [1, 2, 3, 4]
    writer.abandon()


def test_closing_folds_and_removes_the_journal_and_the_lock(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    writer.record_partial(AT, [{"type": "text", "text": "half"}])
    seen: list[bool] = []

    assert writer.close(lambda: seen.append(home.journal(SESSION_ID).exists())) is True

    assert seen == [False]
    assert not writer.open
    last = document(home)["messages"][-1]
    assert (last["id"], last["interrupted"], last["parts"]) == (2, True, [{"type": "text", "text": "half"}])
    assert [path.suffix for path in home.sessions.iterdir()] == [".json"]


def test_a_large_document_is_not_written_anew_for_a_little_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1, "x" * 10_000)
    writer.fold()
    monkeypatch.setattr(writing, "KEEP_JOURNAL_FROM_BYTES", 10_000)
    record(writer, 2)

    assert writer.close() is False
    assert home.journal(SESSION_ID).stat().st_size > 0
    assert home.texts(SESSION_ID) == ["x" * 10_000, "x"]


def test_an_answer_under_way_is_carried_over_a_fold(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    writer.record_partial(AT, [{"type": "text", "text": "half"}])
    assert writer.fold() is True

    assert [(line["partial"], line["anew"]) for line in records(home)] == [([{"type": "text", "text": "half"}], True)]
    writer.abandon()


@pytest.mark.parametrize("at_the_end", [False, True], ids=["with the next record", "at the end of a burst's turn"])
def test_what_another_program_did_is_told_once_and_put_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_the_end: bool
) -> None:
    monkeypatch.setattr(writing, "LOOK_EVERY_SECONDS", 3600 if at_the_end else 0)
    monkeypatch.setattr(writing, "FOLD_ALWAYS_BELOW_BYTES", 0)
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    home.journal(SESSION_ID).unlink()
    home.document(SESSION_ID).unlink()
    assert not writer.has_own_files
    record(writer, 2)
    if at_the_end:
        assert writer.take_reports() == []
        writer.fold_when_due()

    assert sorted(writer.take_reports()) == sorted(
        [
            f"Another program has removed {home.journal(SESSION_ID)}: it was rewritten.",
            f"Another program has removed {home.document(SESSION_ID)}: it was rewritten.",
        ]
    )
    assert writer.take_reports() == []
    assert home.texts(SESSION_ID) == ["x", "x"]
    writer.abandon()


def test_what_is_read_while_a_removed_journal_was_not_noticed_yet_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LOOK_EVERY_SECONDS", 3600)
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    home.journal(SESSION_ID).unlink()
    record(writer, 2)

    assert len(list(writer.open_reader().iter_messages())) == 2
    writer.close()
    assert home.texts(SESSION_ID) == ["x", "x"]


@pytest.mark.parametrize("foreign", [b'{"foreign":1}\n', b"xx"])
def test_what_another_program_adds_to_the_journal_takes_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foreign: bytes
) -> None:
    monkeypatch.setattr(writing, "LOOK_EVERY_SECONDS", 0)
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    with home.journal(SESSION_ID).open("ab") as file:
        file.write(foreign)
    record(writer, 2)
    record(writer, 3)

    [told] = writer.take_reports()
    assert told.startswith(f"Another program has changed {home.journal(SESSION_ID)}")
    assert "gone" not in told
    assert home.texts(SESSION_ID) == ["x", "x", "x"]
    assert foreign in next(tmp_path.rglob("*.journal.replaced-*")).read_bytes()
    writer.abandon()


@pytest.mark.parametrize("later", [1, 3], ids=["one record later", "three records later"])
def test_of_a_journal_that_was_cut_what_memory_holds_is_put_back_and_the_rest_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    monkeypatch.setattr(writing, "LOOK_EVERY_SECONDS", 3600)
    home, writer = Home(tmp_path), create(Home(tmp_path))
    monkeypatch.setattr(atomic, "MAX_HELD_BYTES", 1000)
    for number in range(1, 10):
        record(writer, number)
    os.truncate(home.journal(SESSION_ID), 0)
    for number in range(10, 10 + later):
        record(writer, number)
    writer.check_files()

    [told] = writer.take_reports()
    assert told.endswith("bytes are gone.")
    numbers = [message.id for message in home.files.read(SESSION_ID).session.messages]
    assert len(numbers) > later
    assert numbers == list(range(numbers[0], 10 + later))
    assert [record["message"]["id"] for record in records(home)] == numbers, "each line once"
    writer.abandon()


def test_what_cannot_be_written_is_kept_and_the_reason_told(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    home.sessions.parent.mkdir(exist_ok=True)
    home.sessions.write_text("in the way")

    with pytest.raises(StorageError) as caught:
        record(writer, 1)
    assert (
        caught.value.message
        == f"Session {SESSION_ID} cannot be written to {home.sessions}: {os.strerror(errno.EEXIST)}."
    )
    assert len(writer.pending) == 1
    home.sessions.unlink()
    writer.flush()
    assert home.texts(SESSION_ID) == ["x"]
    writer.abandon()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark every few hundred bytes."""
    monkeypatch.setattr(marks, "MARK_EVERY_BYTES", 400)
    monkeypatch.setattr(marks, "MARK_EVERY_MARKS", 0)


def list_marks(home: Home) -> list[tuple[int, int, int, int]]:
    """Newest first: where each stands, and what it says of messages, their last number and calls."""
    with home.journal(SESSION_ID).open("rb") as file:
        return [(place, mark.count, mark.last, mark.calls) for place, mark in marks.iter_marks(file)]


def find_marks(home: Home) -> list[int]:
    """Where lines with a mark begin, newest first."""
    content = home.journal(SESSION_ID).read_bytes()
    lines = content.splitlines(keepends=True)
    places = [sum(map(len, lines[:number])) for number in range(len(lines))]
    return [place for place, line in zip(places, lines, strict=True) if b'"mark":' in line][::-1]


@pytest.mark.usefixtures("often")
def test_marks_stand_before_messages_of_the_users_and_lead_back_to_the_first(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    writer.record_call(AT, {"id": "c7", "name": "ls"}, 0)
    for number in range(1, 11):
        record(writer, number, "x" * 100)
    found = list_marks(home)
    assert len(found) > 2
    assert [place for place, *_ in found] == find_marks(home)
    assert all(count == last and calls == 7 for _, count, last, calls in found)
    with writer.batch_writes():
        for number in range(11, 21):
            record(writer, number, "x" * 100)
    assert [place for place, *_ in list_marks(home)] == find_marks(home)
    assert len(list_marks(home)) > len(found) + 2
    writer.fold()
    for number in range(21, 31):
        record(writer, number, "x" * 100)
    anew = list_marks(home)
    assert [place for place, *_ in anew] == find_marks(home)
    assert 400 <= anew[-1][0] < 1000
    assert anew[-1][1] == anew[-1][2] > 20
    writer.abandon()


@pytest.mark.usefixtures("often")
def test_who_goes_on_with_a_journal_goes_on_with_its_marks_and_cuts_a_torn_line_off(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    for number in range(1, 11):
        record(writer, number, "x" * 100)
    writer.abandon()
    before = list_marks(home)
    with home.journal(SESSION_ID).open("ab") as file:
        file.write(b'{"at":"2026-')

    other, loaded = Home(tmp_path).files.open(SESSION_ID)
    assert (other.message_count, other.last_number, loaded.session.metadata.token_count) == (10, 10, 10)
    for number in range(11, 21):
        record(other, number, "x" * 100)

    assert list_marks(home)[-len(before) :] == before
    assert [place for place, *_ in list_marks(home)] == find_marks(home)
    assert [line["message"]["id"] for line in records(home) if "message" in line] == list(range(1, 21))
    page = home.files.read_open(other, MessagePage(before=None, limit=2))
    assert (page.skipped > 10, page.session.messages[-1].id) == (True, 20)
    assert home.files.read_open(other).skipped == 0
    other.abandon()


def test_finishing_what_a_crash_left_open_counts_no_tokens(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    answer = Message("assistant", (TextPart("looking"), ToolCallPart("c1"), ToolCallPart("c2")), AT, id=2)
    writer.record_message(AT, answer, 5)
    writer.record_call(AT, msgspec.to_builtins(call("c1", message_id=2, status="running")), 3)
    writer.record_partial(AT, [{"type": "text", "text": "half an ans"}])
    writer.abandon()

    other, loaded = Home(tmp_path).files.open(SESSION_ID)

    assert home.files.read_open(other).session.metadata.token_count == 3
    assert [found.status for found in loaded.session.tool_calls] == ["interrupted"]
    assert [message.role for message in loaded.session.messages] == ["user", "assistant", "assistant"]
    other.close()
    assert document(home)["metadata"]["tokenCount"] == 3


def test_only_who_began_a_session_has_written_every_byte_of_it(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    assert writer.has_own_files
    writer.close()
    other, _ = home.files.open(SESSION_ID)
    assert not other.has_own_files
    other.abandon()
