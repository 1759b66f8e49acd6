"""A document in our own layout, line by line; a damaged line costs what cannot be read in it."""

import pytest

from ollm.domain.messages import Message, TextPart, ToolCallPart, ToolResultPart
from ollm.store.session_files import document, lines
from tests.covers import covers
from tests.store.sessions.support import AT, Home, call, run, said

TURNS = 60


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


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a few kilobytes counts as too long to be held."""
    monkeypatch.setattr(lines, "LONG_LINE_BYTES", 1024)
    monkeypatch.setattr(document, "MAX_LINE_BYTES", 2048)


@covers("S10.2", "D607")
@pytest.mark.parametrize("start", [0.1, 0.5, 0.9])
def test_lines_that_have_run_together_are_taken_apart_without_holding_them(tmp_path, short_lines, start):
    home = Home(tmp_path)
    session_id = recorded(home)
    whole = home.files.read(session_id)
    data = home.document(session_id).read_bytes()
    place = int(len(data) * start)
    home.document(session_id).write_bytes(data[:place] + data[place:].replace(b"\n", b" "))
    loaded = home.files.read(session_id)
    assert loaded.session.messages == whole.session.messages
    assert loaded.session.tool_calls == whole.session.tool_calls
    assert loaded.damage
    assert not loaded.read_only


def test_a_message_longer_than_any_line_that_is_held_is_read_and_nothing_is_wrong_with_it(tmp_path, short_lines):
    home = Home(tmp_path)
    long = 'so "many" words {"role":"user"} ' * 1000
    session_id = home.recorded("short", long, "short again")
    assert home.texts(session_id) == ["short", long, "short again"]
    assert home.files.read(session_id).damage is None
