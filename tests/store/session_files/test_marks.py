"""A long journal is read from its end on: after a crash, for a page of it, and never more than is asked for."""

import os
import random
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.runtime.session import load_history_page
from ollm.store.session_files import MessagePage, SessionFiles, journal
from ollm.store.session_files.files import SessionFile
from tests.covers import covers
from tests.sizes import size
from tests.store.sessions.support import AT, Home, call, run, said

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
    service._writers.pop(session_id).abandon()
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
    """A mark before nearly every message of the user's."""
    monkeypatch.setattr(journal, "MARK_EVERY_BYTES", 1)
    monkeypatch.setattr(journal, "MARK_EVERY_MARKS", 0)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("seed", range(size(12, 300)))
def test_read_from_a_mark_a_session_becomes_what_it_becomes_when_all_of_it_is_read(tmp_path: Path, seed: int):
    chance = random.Random(seed)
    home = Home(tmp_path / "left")
    session_id = run(lambda: record_turns(home, chance.randint(30, 60), folded=chance.randint(0, 20), text="short"))
    journal = home.journal(session_id)
    journal.write_bytes(journal.read_bytes()[: journal.stat().st_size - chance.randint(0, 400)])
    last = home.files.read(session_id).session.messages[-1].id
    ends = []
    for name, since in (("end", chance.randint(1, last)), ("whole", 0)):
        shutil.copytree(tmp_path / "left", tmp_path / name, copy_function=os.link)
        copied = Home(tmp_path / name).journal(session_id)
        content = copied.read_bytes()
        copied.unlink()
        copied.write_bytes(content)
        files = SessionFiles(Home(tmp_path / name).places, lambda: datetime(2026, 2, 1, tzinfo=UTC))
        writer, loaded = files.open(session_id, since=since)
        numbers = writer.message_count, writer.last_number, loaded.calls_so_far
        writer.fold()
        writer.close()
        ends.append((loaded, numbers, files.places.get_document_path(session_id).read_bytes()))
    (end, numbers, document), (whole, all_numbers, whole_document) = ends
    assert end.session.messages == whole.session.messages[end.skipped :]
    assert all(found in end.session.tool_calls for found in whole.session.tool_calls if found.message_id > end.skipped)
    assert end.session.metadata == whole.session.metadata
    assert numbers == all_numbers
    assert document == whole_document


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
def test_a_mark_that_speaks_of_another_document_is_not_believed(tmp_path: Path):
    home = Home(tmp_path)
    session_id = run(lambda: record_turns(home, 60, folded=20, text="short"))
    document = home.document(session_id)
    document.write_bytes(document.read_bytes().replace(b"question 3", b"QUESTION 3"))
    loaded = run(lambda: home.service().open_session(session_id, since=170))
    assert loaded.skipped == 0
    assert len(loaded.session.messages) == 180


@covers("S9.3")
@pytest.mark.parametrize("keeps_times", [True, False])
def test_a_copied_session_is_read_whole_once_at_most(tmp_path: Path, keeps_times: bool):
    home, other = Home(tmp_path / "one"), Home(tmp_path / "other")
    session_id = run(lambda: record_turns(home, 110))
    whole = home.journal(session_id).stat().st_size
    shutil.copytree(home.sessions, other.sessions, copy_function=shutil.copy2 if keeps_times else shutil.copyfile)

    async def resume() -> None:
        service = other.service()
        await service.open_session(session_id, since=320)
        await service.record_message(session_id, said("one more"))
        await service.close_session(session_id)

    read = [count_bytes_read(lambda: run(resume)) for _ in range(3)]
    assert max(read[0 if keeps_times else 1 :]) < whole // 2, f"{read} of {whole} bytes were read"
    texts = other.texts(session_id)
    assert texts[-3:] == ["one more"] * 3
    assert len(texts) == len(home.texts(session_id)) + 3


@pytest.mark.usefixtures("often")
def test_damage_behind_the_mark_is_found_and_kept(tmp_path: Path):
    home = Home(tmp_path)
    session_id = run(lambda: record_turns(home, 60, text="short"))
    journal = home.journal(session_id)
    damaged = journal.read_bytes().replace(b'"looking 59"', b'"looking\xff59')
    journal.write_bytes(damaged)
    loaded = run(lambda: home.service().open_session(session_id, since=176))
    assert "damaged" in loaded.damage
    assert any(path.read_bytes() == damaged for path in home.sessions.glob("*.journal.damaged-*"))


@pytest.mark.usefixtures("often")
def test_damage_before_the_mark_is_kept_when_the_journal_is_folded(tmp_path: Path):
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


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(("turns", "folded"), [(30, 0), (30, 10)])
def test_a_page_is_read_from_the_last_mark_that_leaves_enough_to_the_first_behind_it(
    tmp_path: Path, turns: int, folded: int
):
    home = Home(tmp_path)
    session_id = run(lambda: record_turns(home, turns, folded=folded, text="short"))
    whole = home.files.read(session_id).session
    with home.journal(session_id).open("rb") as file:
        marked = [placed.mark.last for placed in journal.iter_marks(SessionFile(file.fileno()))]
    assert len(marked) > 5
    last = whole.messages[-1].id
    for limit in (1, 10):
        for before in (None, last, last - 1, last - 30, marked[2] + 1, marked[2], marked[2] + 2):
            wanted = min((before or last + 1000) - 1 - limit, marked[0] - limit)
            begin = max((number for number in marked if number <= wanted), default=None)
            stop = min((number for number in marked if before and number >= before - 1), default=last)
            if begin is None:
                continue
            loaded = home.files.read(session_id, MessagePage(limit=limit, before=before))
            assert loaded.skipped == begin
            assert loaded.session.messages == tuple(m for m in whole.messages if begin < m.id <= stop)
            assert loaded.session.tool_calls == tuple(c for c in whole.tool_calls if begin < c.message_id <= stop)
            assert loaded.calls_so_far >= turns if stop == last else loaded.calls_so_far > 0
