"""Large sessions are read and folded in threads: others go on meanwhile, and who is cancelled leaves nothing half done."""

import asyncio
import threading
from pathlib import Path

import pytest

from ollm.domain.errors import StorageError
from ollm.services.chat_recording.long_work import LONG_WORK_BYTES, LongWork, run_to_end
from tests.store.sessions.support import Home, said


async def test_others_go_on_while_work_runs_in_a_thread_and_its_error_is_raised_where_it_is_asked_for() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        go_on.wait(30)
        return "done"

    running = asyncio.ensure_future(run_to_end(work))
    while not begun.is_set():  # the loop is free
        await asyncio.sleep(0.001)
    go_on.set()
    assert (await running)() == "done"

    def fail() -> None:
        raise StorageError("The disk is full.")

    outcome = await run_to_end(fail)
    with pytest.raises(StorageError, match="The disk is full"):
        outcome()


async def test_who_is_cancelled_waits_for_the_end_of_the_work() -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(30)
        ended.set()

    running = asyncio.ensure_future(run_to_end(work))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.sleep(0.01)
    assert not running.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()


def make_large(home: Home) -> str:
    session = home.recorded("Begin")
    path = home.document(session)
    long = b',\n{"role":"user","id":2,"parts":[{"type":"text","text":"%s"}],"timestamp":""}' % (b"x" * LONG_WORK_BYTES)
    path.write_bytes(path.read_bytes().replace(b'\n],"toolCalls"', long + b'\n],"toolCalls"'))
    return session


@pytest.mark.parametrize("large", [True, False])
def test_a_session_is_opened_once_and_let_go(tmp_path: Path, large: bool) -> None:
    home = Home(tmp_path)
    session = make_large(home) if large else home.recorded("Begin")
    work = LongWork(home.files)

    async def open_twice() -> int:
        writer, loaded = await work.open_session(session, 0)
        try:
            with pytest.raises(Exception, match=r"in use|open"):
                await work.open_session(session, 0)
        finally:
            writer.abandon()
        return len(loaded.session.messages)

    assert asyncio.run(open_twice()) == 1 + large
    assert not home.files.is_open(session)


async def test_what_is_recorded_waits_while_a_large_session_is_folded_and_a_small_one_is_folded_at_once(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    session, other = await asyncio.to_thread(lambda: (make_large(home), home.recorded("x")))
    work = LongWork(home.files)
    writer, _ = await work.open_session(session, 0)
    begun, go_on = threading.Event(), threading.Event()

    def fold() -> bool:
        begun.set()
        return go_on.wait(30)

    folding = asyncio.ensure_future(work.run(writer, fold))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    waiting = asyncio.ensure_future(work.wait_until_free(session))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    assert list(work.folding) == [session]
    go_on.set()
    assert (await folding)() is True
    await waiting
    assert work.folding == {}
    writer.abandon()

    small, _ = await work.open_session(other, 0)
    assert await work.run(small, fold) is fold
    small.abandon()


async def test_what_is_said_in_a_large_session_is_there_when_it_was_folded_meanwhile(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session = await asyncio.to_thread(make_large, home)
    service = home.service()
    await service.open_session(session)
    await service.record_message(session, said("More"))
    await service.close_session(session)

    assert [text[:5] for text in home.texts(session)] == ["Begin", "xxxxx", "More"]
