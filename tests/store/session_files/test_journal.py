"""Journals, and marks of what is read."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ollm.domain.errors import DamagedError
from ollm.domain.messages import Message, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from ollm.runtime.session import load_history_page
from ollm.store.session_files import store, waypoints
from ollm.store.session_files.journal import JournalRecord, encode_json, encode_line, parse_record
from ollm.store.session_index import entries
from tests.covers import covers
from tests.sizes import size
from tests.store.sessions.support import AT, Home, call, run, said


async def open_session(home: Home) -> str:
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    for number in range(3):
        await service.record_message(session_id, said(f"message {number} ü\u2028"))
        await service.record_tool_call(session_id, call(f"c{number}"))
        await service.record_tool_call(session_id, call(f"c{number}", result="done"))
    await service.record_text(session_id, ThinkingPart, "so far")
    home.crash(session_id)
    return session_id


async def test_a_session_whose_journal_was_torn_goes_on(tmp_path):
    home = Home(tmp_path)
    session_id = await open_session(home)
    whole = home.journal(session_id).read_bytes()
    for cut in range(0, len(whole), 37):
        home.journal(session_id).write_bytes(whole[:cut])
        before = home.texts(session_id)
        service = home.service()
        loaded = await service.open_session(session_id)
        await service.record_message(session_id, said("afterwards"))
        home.crash(session_id)
        after = home.files.read(session_id).session
        spoken = [message.text for message in after.messages if message.role != "tool"]
        assert spoken == [*before, "afterwards"]
        assert [message.id for message in after.messages] == list(range(1, len(after.messages) + 1))
        assert all(found.status in ("ok", "interrupted") for found in loaded.session.tool_calls)


def test_a_document_cut_anywhere_gives_every_whole_message_before_the_cut(tmp_path):
    home = Home(tmp_path)
    session_id = home.recorded(*(f"message {number}" for number in range(5)))
    whole = home.document(session_id).read_bytes()
    starts = [whole.index(f'"message {number}"'.encode()) for number in range(5)]
    ends = [whole.index(b"\n", start) for start in starts]
    for cut in range(0, len(whole) - 1, 3):
        home.document(session_id).write_bytes(whole[:cut])
        loaded = home.files.read(session_id)
        complete = sum(end < cut + 2 for end in ends)
        assert len(loaded.session.messages) >= complete - 1
        assert [message.text for message in loaded.session.messages] == [
            f"message {number}" for number in range(len(loaded.session.messages))
        ]
        assert loaded.damage


@pytest.mark.parametrize("cut", [0.2, 0.6, 0.95])
async def test_a_damaged_document_is_kept_beside_and_the_session_goes_on(tmp_path, cut):
    home = Home(tmp_path)
    session_id = await asyncio.to_thread(home.recorded, *(f"message {number}" for number in range(5)))
    whole = home.document(session_id).read_bytes()
    damaged = whole[: int(len(whole) * cut)]
    home.document(session_id).write_bytes(damaged)
    readable = home.texts(session_id)
    service = home.service()
    if not readable:
        with pytest.raises(DamagedError):
            await service.open_session(session_id)
        assert [path.read_bytes() for path in home.sessions.iterdir()] == [damaged]
        return
    loaded = await service.open_session(session_id)
    assert loaded.damage
    await service.record_message(session_id, said("afterwards"))
    await service.close_session(session_id)
    assert home.texts(session_id) == [*readable, "afterwards"]
    after = home.files.read(session_id)
    assert (after.damage, after.session.messages[-1].id) == (None, 6), "numbers of missing messages are not used again"
    kept = list(home.sessions.glob(f"{session_id}.json.damaged-*"))
    assert [path.read_bytes() for path in kept] == [damaged]


async def test_a_crash_between_folding_and_clearing_the_journal_doubles_nothing(tmp_path):
    home = Home(tmp_path)
    session_id = await open_session(home)
    service = home.service()
    await service.open_session(session_id)
    for number in range(3):
        await service.update_metadata(session_id, {"modeHistory": [{"to": str(place)} for place in range(number + 1)]})
        await service.record_message(session_id, said(f"more {number}"))
    before = home.files.read(session_id).session
    journal = home.journal(session_id).read_bytes()
    await service.save_session(session_id)
    home.crash(session_id)
    home.journal(session_id).write_bytes(journal)

    assert home.files.read(session_id).session == before
    assert home.index().list_sessions()[0]["messageCount"] == len(before.messages)
    again = home.service()
    assert (await again.open_session(session_id)).session == before
    await again.close_session(session_id)
    assert home.files.read(session_id).session == before


def test_a_record_with_half_a_character_is_written_with_the_rest_of_it() -> None:
    message = Message(role="user", parts=(TextPart(text="a\ud800b"),), timestamp="t", id=3)

    line = encode_line(JournalRecord(at="now", message=msgspec.Raw(encode_json(message)), tokens=2))

    record = parse_record(line)
    assert line.endswith(b"\n")
    assert (record.at, record.tokens) == ("now", 2)
    assert isinstance(record.message, msgspec.Raw)
    assert msgspec.json.decode(record.message)["parts"] == [{"type": "text", "text": "a?b"}]


LONG = "a long line of output\n" * 4000


def count_bytes_read(work: Callable[[], object]) -> int:
    """How many bytes this process asks the system for while it works."""

    def read() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])

    before = read()
    work()
    return read() - before


async def record_turns(home: Home, count: int, *, folded: int = 0, text: str = LONG) -> str:
    """A session in which calls gave long results, left as a kill leaves it; the first `folded` turns in the document."""
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    for turn in range(1, count + 1):
        await service.record_message(session_id, said(f"question {turn}"))
        parts = (TextPart(f"looking {turn}"), ToolCallPart(f"c{turn}"))
        asked = await service.record_message(session_id, Message("assistant", parts, AT))
        await service.record_tool_call(session_id, call(f"c{turn}", message_id=asked.id))
        await service.record_tool_call(session_id, call(f"c{turn}", message_id=asked.id, result=text))
        await service.record_message(session_id, Message("tool", (ToolResultPart(id=f"c{turn}"),), AT))
        await service.update_metadata(session_id, {"note": turn})
        if turn == folded:
            await service.save_session(session_id)
    home.crash(session_id)
    home.index().list_sessions()
    return session_id


@covers("S9.3", "P7")
@pytest.mark.parametrize("folded", [0, 30])
def test_after_a_kill_a_resume_reads_only_the_end_of_the_journal(tmp_path: Path, folded: int):
    turns = size(300, 3_000)
    home = Home(tmp_path)
    session_id = run(lambda: record_turns(home, turns, folded=folded))
    whole = home.journal(session_id).stat().st_size
    assert whole > 20_000_000
    found = {}

    async def resume() -> None:
        service = home.service()
        found["loaded"] = await service.open_session(session_id, since=3 * turns - 4)
        await service.record_message(session_id, said("one more"))
        await service.close_session(session_id)

    read = count_bytes_read(lambda: run(resume))
    assert read < 10_000_000, f"{read} of {whole} bytes were read"
    loaded = found["loaded"]
    assert loaded.skipped > 0
    assert loaded.session.metadata.token_count > 0
    assert loaded.calls_so_far == turns
    assert home.journal(session_id).stat().st_size >= whole, "and closing does not write it anew"
    after = home.files.read(session_id).session
    assert [message.id for message in after.messages] == list(range(1, 3 * turns + 2))
    assert after.messages[-1].text == "one more"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index keeps the place of nearly every message of the user's, also of short sessions."""
    monkeypatch.setattr(waypoints, "EVERY_MESSAGES", 1)
    for module in (entries, store):
        monkeypatch.setattr(module, "MIN_KNOWN_BYTES", 0)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("limit", [1, 7, 50])
def test_pages_of_a_long_journal_are_together_all_of_it(tmp_path: Path, limit: int):
    home = Home(tmp_path)
    session_id = run(lambda: record_turns(home, 80, folded=20, text="short"))
    whole = home.files.read(session_id).session
    found, before = [], None
    while part := load_history_page(lambda asked: home.files.read(session_id, asked), before, limit):
        found, before = part + found, part[0]["id"]
    assert [message["id"] for message in found] == [message.id for message in whole.messages]
    assert sum(len(message["toolCalls"]) for message in found if message["role"] == "assistant") == 80


def test_the_newest_page_of_a_long_journal_is_read_without_the_rest(tmp_path: Path):
    home = Home(tmp_path)
    session_id = run(lambda: record_turns(home, 300))

    def look() -> None:
        for before in (None, 600):
            assert len(load_history_page(lambda asked: home.files.read(session_id, asked), before, 20)) == 20

    assert count_bytes_read(look) < 12_000_000
    assert count_bytes_read(lambda: home.files.describe_session(session_id)) < 1_000_000


@pytest.mark.usefixtures("often")
def test_places_in_another_document_are_not_believed(tmp_path: Path):
    home = Home(tmp_path)
    session_id = run(lambda: record_turns(home, 60, folded=20, text="short"))
    document = home.document(session_id)
    document.write_bytes(document.read_bytes().replace(b"question 3", b"QUESTION 3"))
    loaded = run(lambda: home.service().open_session(session_id, since=170))
    assert loaded.skipped == 0
    assert len(loaded.session.messages) == 180


@covers("S9.3")
def test_a_copied_session_is_read_whole_once_at_most(tmp_path: Path):
    home, other = Home(tmp_path / "one"), Home(tmp_path / "other")
    session_id = run(lambda: record_turns(home, 110))
    whole = home.journal(session_id).stat().st_size
    shutil.copytree(home.sessions, other.sessions)

    async def resume() -> None:
        service = other.service()
        await service.open_session(session_id, since=320)
        await service.record_message(session_id, said("one more"))
        await service.close_session(session_id)

    read = [count_bytes_read(lambda: run(resume)) for _ in range(3)]
    assert max(read[1:]) < whole // 2, f"{read} of {whole} bytes were read"
    texts = other.texts(session_id)
    assert texts[-3:] == ["one more"] * 3
    assert len(texts) == len(home.texts(session_id)) + 3


@pytest.mark.usefixtures("often")
def test_damage_behind_the_waypoint_is_found_and_kept(tmp_path: Path):
    home = Home(tmp_path)
    session_id = run(lambda: record_turns(home, 60, text="short"))
    journal = home.journal(session_id)
    damaged = journal.read_bytes().replace(b'"looking 59"', b'"looking\xff59')
    journal.write_bytes(damaged)
    loaded = run(lambda: home.service().open_session(session_id, since=176))
    assert "damaged" in loaded.damage
    assert any(path.read_bytes() == damaged for path in home.sessions.glob("*.journal.damaged-*"))


@pytest.mark.usefixtures("often")
def test_damage_before_the_waypoint_is_kept_when_the_journal_is_folded(tmp_path: Path):
    home = Home(tmp_path)
    session_id = run(lambda: record_turns(home, 60, text="short"))
    journal = home.journal(session_id)
    damaged = journal.read_bytes().replace(b'"looking 3"', b'"looking 3x')
    journal.write_bytes(damaged)

    async def go_on() -> None:
        service = home.service()
        assert (await service.open_session(session_id, since=176)).skipped
        await service.save_session(session_id)
        await service.close_session(session_id)

    run(go_on)
    kept = [path.read_bytes() for path in home.sessions.glob("*.journal.damaged-*")]
    assert any(content.startswith(damaged) for content in kept)
    assert len(home.files.read(session_id).session.messages) == 179
