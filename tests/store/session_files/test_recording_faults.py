"""What can go wrong around a session being recorded: the disk, permissions, the clock, other processes, odd text."""

import asyncio
import errno
import os
import resource
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ollm.domain.errors import BusyError
from ollm.domain.events import Notice
from ollm.domain.messages import Message, TextPart
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
