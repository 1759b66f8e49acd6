"""A journal or a document that ends anywhere: all whole records before the end are read, and the session goes on."""

import asyncio
import math
from datetime import date

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import DamagedError
from ollm.domain.messages import Message, TextPart, ThinkingPart
from ollm.store.session_files.journal import (
    JournalMessage,
    compute_growth,
    encode_json,
    encode_line,
    extend_parts,
    parse_record,
)
from tests.store.sessions.support import Home, call, said


async def open_session(home: Home) -> str:
    service = home.service()
    session_id = await service.create_session("m", "ollama")
    for number in range(3):
        await service.record_message(session_id, said(f"message {number} ü\u2028"))
        await service.record_tool_call(session_id, call(f"c{number}"))
        await service.record_tool_call(session_id, call(f"c{number}", result="done"))
    await service.record_partial(session_id, [ThinkingPart(text="so far")])
    service._writers[session_id].abandon()
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
        service._writers[session_id].abandon()
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
    assert home.files.read(session_id).damage is None
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
    service._writers[session_id].abandon()
    home.journal(session_id).write_bytes(journal)

    assert home.files.read(session_id).session == before
    assert home.index().list_sessions()[0]["messageCount"] == len(before.messages)
    again = home.service()
    assert (await again.open_session(session_id)).session == before
    await again.close_session(session_id)
    assert home.files.read(session_id).session == before


TEXTS = st.text(max_size=4)
PARTS = st.lists(
    st.builds(lambda kind, text: {"type": kind, "text": text}, st.sampled_from(["text", "thinking"]), TEXTS)
    | st.builds(lambda name: {"type": "tool_call", "id": name}, TEXTS),
    max_size=4,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": [1, 2.5, None, True, "ä"]}, '{"a":[1,2.5,null,true,"ä"]}'),
        ("lone \ud800 half", '"lone ? half"'),
        ({"\udfff": "\ud800"}, '{"?":"?"}'),
        ({"when": date(2026, 1, 27)}, '{"when":"2026-01-27"}'),
        ({"odd": object}, '{"odd":"<class \'object\'>"}'),
        (("a", "b"), '["a","b"]'),
        ({1: "\ud800"}, '{"1":"?"}'),
        (math.inf, "null"),
    ],
)
def test_any_value_becomes_json(value: object, expected: str) -> None:
    assert encode_json(value).decode() == expected


def test_a_record_with_half_a_character_is_written_with_the_rest_of_it() -> None:
    message = Message(role="user", parts=(TextPart(text="a\ud800b"),), timestamp="t", id=3)

    line = encode_line(JournalMessage(at="now", message=message, tokens=2))

    record = parse_record(line)
    assert line.endswith(b"\n")
    assert (record.at, record.tokens) == ("now", 2)
    assert isinstance(record.message, msgspec.Raw)
    assert msgspec.json.decode(record.message)["parts"] == [{"type": "text", "text": "a?b"}]


def text(said: str, kind: str = "text") -> dict[str, str]:
    return {"type": kind, "text": said}


@given(PARTS, PARTS)
def test_growth_laid_over_what_was_written_is_the_whole(written: list, whole: list) -> None:
    growth = compute_growth(written, whole)

    assert growth is None or extend_parts(written, growth) == whole


@given(PARTS, PARTS)
def test_what_was_extended_is_found_again_as_growth(before: list, more: list) -> None:
    written = extend_parts([], before)

    whole = extend_parts(written, more)

    assert extend_parts(written, compute_growth(written, whole) or []) == whole
