"""A long session is opened from its end: what is not needed is not read, and any doubt is."""

import asyncio
import os
import random
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.domain.session import Session
from ollm.services.message_search.session_archive import SessionArchive
from ollm.services.message_search.session_archive import render_archived_message as recalled
from ollm.store.session_files import store, waypoints
from ollm.store.session_files.reader import INTERRUPTED_TEXT
from ollm.store.session_files.store import MessagePage, SessionFiles
from ollm.store.session_index import entries
from tests.covers import covers
from tests.sizes import size
from tests.store.sessions.support import AT, Home, call, run, said

LONG = "a sentence that makes the session long " * 60
TURNS = 100


async def record_turns(service, session_id: str, turns: range) -> None:
    """Each: a question, an answer that calls, the result, an answer in words."""
    for turn in turns:
        await service.record_message(session_id, said(f"question {turn} {LONG}"))
        asked = await service.record_message(session_id, answer(f"looking {turn}", ToolCallPart(id=f"c{turn}")))
        await service.record_tool_call(session_id, call(f"c{turn}", message_id=asked.id))
        await service.record_tool_call(session_id, call(f"c{turn}", result=f"seen {turn}", message_id=asked.id))
        await service.record_message(
            session_id, Message(role="tool", parts=(ToolResultPart(f"c{turn}"),), timestamp=AT)
        )
        await service.record_message(session_id, said(f"answer {turn}", "assistant"))
        await service.end_turn(session_id)


def answer(text: str, *parts: ToolCallPart) -> Message:
    return Message(role="assistant", parts=(TextPart(text), *parts), timestamp=AT)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, auto_save=False)


def long_session(home: Home, *, close: bool = True) -> str:
    async def record() -> str:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        await record_turns(service, session_id, range(1, TURNS + 1))
        if close:
            await service.close_session(session_id)
        return session_id

    return run(record)


def opened(home: Home, session_id: str, since: int):
    async def resume():
        service = home.service()
        loaded = await service.open_session(session_id, since)
        await record_turns(service, session_id, range(loaded.calls_so_far + 1, loaded.calls_so_far + 2))
        await service.close_session(session_id)
        return loaded

    return run(resume)


@covers("W92", "W119")
def test_of_a_long_session_the_end_is_read_and_it_goes_on_with_the_right_numbers(home: Home):
    session_id = long_session(home)

    loaded = opened(home, session_id, since=4 * TURNS)

    whole = home.files.read(session_id).session
    assert 0 < len(loaded.session.messages) < 200
    assert loaded.session.messages == whole.messages[loaded.skipped : 4 * TURNS]
    assert loaded.session.messages[0].role == "user"
    assert [message.id for message in whole.messages] == list(range(1, 4 * TURNS + 5))
    assert [record.id for record in whole.tool_calls] == [f"c{n}" for n in range(1, TURNS + 2)]
    assert home.library().list_summaries()[0].message_count == 4 * TURNS + 4


def test_a_document_that_somebody_changed_is_read_whole_and_its_damage_told(home: Home):
    session_id = long_session(home)
    content = home.document(session_id).read_bytes()
    place = content.index(b"question 20 ")
    home.document(session_id).write_bytes(content[:place] + b'"' + content[place + 1 :])

    loaded = opened(home, session_id, since=4 * TURNS)

    assert loaded.skipped == 0
    assert "could not be read" in str(loaded.damage)
    assert len(loaded.session.messages) == 4 * TURNS - 1
    assert list(home.sessions.glob(f"{session_id}.json.damaged-*"))


@pytest.mark.parametrize("how", ["missing", "broken"])
def test_without_an_index_all_is_read(home: Home, how: str):
    session_id = long_session(home)
    index = home.root / "index.db"
    index.unlink() if how == "missing" else index.write_bytes(b"not a database" * 100)

    loaded = opened(home, session_id, since=4 * TURNS)

    assert loaded.skipped == 0
    assert len(loaded.session.messages) == 4 * TURNS


@covers("S9.3")
def test_what_a_crash_left_in_the_journal_is_read_with_the_end_and_finished(home: Home, tmp_path: Path):
    session_id = long_session(home)

    async def crash() -> None:
        service = Home(home.root).service()
        await service.open_session(session_id, 4 * TURNS)
        await service.record_message(session_id, said("and now"))
        asked = await service.record_message(session_id, answer("looking", ToolCallPart(id="c101")))
        await service.record_tool_call(session_id, call("c101", message_id=asked.id))
        shutil.copytree(home.root, tmp_path / "crashed")  # as a kill leaves it

    run(crash)
    after = Home(tmp_path / "crashed")
    os.utime(after.document(session_id), ns=(0, home.document(session_id).stat().st_mtime_ns))
    after.library().list_summaries()

    loaded = opened(after, session_id, since=4 * TURNS)

    whole = after.files.read(session_id).session
    assert loaded.skipped > 0
    assert [message.text for message in loaded.session.messages][-3:] == ["and now", "looking", ""]
    assert loaded.session.tool_calls[-1].status == "interrupted"
    assert loaded.session.tool_calls[-1].result.llm_content == INTERRUPTED_TEXT
    assert [message.id for message in whole.messages] == list(range(1, len(whole.messages) + 1))
    assert after.library().list_summaries()[0].message_count == len(whole.messages)


def test_a_journal_that_is_in_the_document_already_doubles_nothing(home: Home, tmp_path: Path):
    session_id = long_session(home)

    async def fold() -> bytes:
        service = home.service()
        await service.open_session(session_id)
        await record_turns(service, session_id, range(TURNS + 1, TURNS + 3))
        kept = home.journal(session_id).read_bytes()
        await service.close_session(session_id)
        return kept

    home.journal(session_id).write_bytes(run(fold))

    loaded = opened(home, session_id, since=4 * TURNS)

    whole = home.files.read(session_id).session
    assert loaded.skipped > 0
    assert [message.id for message in whole.messages] == list(range(1, 4 * TURNS + 13))
    assert [record.id for record in whole.tool_calls] == [f"c{n}" for n in range(1, TURNS + 4)]


async def test_any_message_is_recalled_from_where_it_stands(home: Home):
    async with asyncio.timeout(60):
        session_id = await asyncio.to_thread(long_session, home)
    whole = home.files.read(session_id).session
    read: list[int] = []

    async def load(asked: MessagePage | None) -> Session:
        session = home.files.read(session_id, asked).session
        read.append(len(session.messages))
        return session

    for message in whole.messages[::7]:
        assert await SessionArchive(load).read_message(message.id) == recalled(message, whole.tool_calls)
    assert max(read) < 300 < len(whole.messages)


async def chatter(home: Home, chance: random.Random) -> str:
    """A session that was closed once, gone on with, and left as a kill leaves it."""
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    await record_turns(service, session_id, range(1, chance.randint(9, 16)))
    await service.close_session(session_id)
    first = (await service.open_session(session_id)).calls_so_far + 1
    await record_turns(service, session_id, range(first, first + chance.randint(0, 4)))
    asked = await service.record_message(session_id, answer("looking", ToolCallPart("c90"), ToolCallPart("c91")))
    for name in chance.sample(["c90", "c91"], chance.randint(0, 2)):
        await service.record_tool_call(session_id, call(name, message_id=asked.id))
    if chance.random() < 0.5:
        await service.record_text(session_id, TextPart, "half an answer")
    if chance.random() < 0.5:
        await service.save_session(session_id)
    return session_id


@covers("S9.3", "P7")
@pytest.mark.parametrize("seed", range(size(12, 300)))
def test_opened_from_its_end_a_session_becomes_what_it_becomes_when_all_of_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
):
    monkeypatch.setattr(waypoints, "EVERY_MESSAGES", 1)
    for module in (entries, store):
        monkeypatch.setattr(module, "MIN_KNOWN_BYTES", 0)
    chance = random.Random(seed)
    session_id = run(lambda: chatter(Home(tmp_path / "left"), chance))
    if chance.random() < 0.5:
        journal = Home(tmp_path / "left").journal(session_id)
        journal.write_bytes(journal.read_bytes()[: chance.randint(0, journal.stat().st_size)])
    ends = []
    for name, since in (("end", chance.randint(1, 60)), ("whole", 0)):
        shutil.copytree(tmp_path / "left", tmp_path / name)
        index = Home(tmp_path / name).index()
        index.list_sessions()
        known = index.find_known if since else lambda _: None
        files = SessionFiles(Home(tmp_path / name).places, lambda: datetime(2026, 2, 1, tzinfo=UTC), known)
        writer, loaded = files.open(session_id, since=since)
        numbers = writer.last_number, loaded.calls_so_far
        writer.close()
        ends.append((loaded, numbers, files.places.get_document_path(session_id).read_bytes()))

    (end, numbers, document), (whole, all_numbers, whole_document) = ends
    assert end.session.messages == whole.session.messages[end.skipped :]
    assert all(found in end.session.tool_calls for found in whole.session.tool_calls if found.message_id > end.skipped)
    assert numbers == all_numbers
    assert document == whole_document


@pytest.mark.parametrize("part", ['{"type":"text","vext":"wer"}', '{"type":"text","text":1}', "5", '"wer"'])
def test_an_answer_of_an_earlier_version_goes_on_with_whatever_is_left_of_its_rest(home: Home, part: str) -> None:
    session_id = home.recorded("question")
    begun = '{"at":"","partial":[{"type":"text","text":"ans"}]}'
    start, end = '{"at":"","message":{"role":"assistant","parts":', ',"timestamp":"","id":2},"continues":true}'
    home.journal(session_id).write_text(f"{begun}\n{start}[{part}]{end}\n{start}{part}{end}\n")

    loaded = home.files.read(session_id)
    assert any("ans" in message.text for message in loaded.session.messages)
    assert loaded.damage
