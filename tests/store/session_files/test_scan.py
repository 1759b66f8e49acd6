"""A document in any other layout, or a broken one, object by object."""

import json
import time

import pytest

from tests.store.sessions.support import Home, run, said

ID = "550e8400-e29b-41d4-a716-446655440000"


FOREIGN = {
    "messages": [
        {"role": "user", "parts": [{"type": "text", "text": "hello"}], "timestamp": "2026-01-27T10:00:00Z", "x": 1},
        {"role": "assistant", "parts": [{"type": "text", "text": "hi"}], "timestamp": "2026-01-27T10:00:15Z"},
    ],
    "toolCalls": [
        {
            "id": "call_123",
            "name": "read_file",
            "args": {"path": "a"},
            "result": {"llmContent": "text"},
            "timestamp": "2026-01-27T10:00:20Z",
        },
        {"id": "call_124", "name": "ls", "args": {}, "result": None, "timestamp": "2026-01-27T10:00:21Z"},
    ],
    "metadata": {"tokenCount": 8500, "compressionCount": 2, "own": {"kept": True}},
    "sessionId": ID,
    "startTime": "2026-01-27T10:00:00Z",
    "lastActivity": "2026-01-27T11:30:00Z",
    "model": "llama3.2:3b",
    "provider": "ollama",
    "future": [1, 2],
}


def write_foreign(directory, text: str | None = None) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{ID}.json").write_text(text or json.dumps(FOREIGN, indent=2))


def go_on(home: Home, session_id: str):
    async def work():
        service = home.service()
        loaded = await service.open_session(session_id)
        await service.record_message(session_id, said("afterwards"))
        await service.close_session(session_id)
        return loaded

    return run(work)


def test_a_file_in_another_layout_is_read_and_its_unknown_fields_survive(tmp_path):
    home = Home(tmp_path)
    write_foreign(home.sessions)
    loaded = home.files.read(ID)
    assert loaded.damage is None
    assert [message.id for message in loaded.session.messages] == [1, 2]
    assert [call.status for call in loaded.session.tool_calls] == ["ok", "interrupted"]
    assert loaded.session.metadata.token_count == 8500
    go_on(home, ID)
    document = json.loads(home.document(ID).read_bytes())
    assert document["future"] == [1, 2]
    assert document["metadata"]["own"] == {"kept": True}
    assert document["messages"][0]["x"] == 1
    assert home.texts(ID) == ["hello", "hi", "afterwards"]


@pytest.mark.slow
@pytest.mark.parametrize("filler", [b"[" * 1000, b"{}", b'"",', b'{"a":"', b"\\", b"9"])
def test_hostile_files_end_in_time(tmp_path, filler):
    home = Home(tmp_path)
    home.sessions.mkdir()
    home.document(ID).write_bytes(b'{"messages":[' + filler * (8_000_000 // len(filler)))
    started = time.process_time()
    assert home.index().list_sessions()[0]["damaged"]
    assert time.process_time() - started < 10


def numbered(count: int) -> dict:
    parts = ([{"type": "text", "text": f"message {number}"}] for number in range(count))
    messages = [{"id": n, "role": "user", "parts": part, "timestamp": ""} for n, part in enumerate(parts, 1)]
    return {**FOREIGN, "messages": messages}


@pytest.mark.parametrize("indent", [None, 2])
def test_what_stands_behind_a_hole_in_a_foreign_document_is_read(tmp_path, indent):
    home = Home(tmp_path)
    text = json.dumps(numbered(6), indent=indent)
    start = text.index("message 2") + 3
    write_foreign(home.sessions, text[:start] + text[start + 9 :])

    loaded = home.files.read(ID)

    assert [message.text for message in loaded.session.messages] == [f"message {number}" for number in (0, 1, 3, 4, 5)]
    assert loaded.damage


def test_a_byte_order_mark_is_no_damage_and_neither_is_hidden_what_is(tmp_path):
    home = Home(tmp_path)
    text = json.dumps(numbered(3), indent=2)
    for given, damaged in (
        ("\ufeff" + text, None),
        (text + "more", "extra data after the end of the document"),
        (text.replace('"messages": [', '"messages": "none", "others": ['), "messages is not a list"),
    ):
        write_foreign(home.sessions, given)
        loaded = home.files.read(ID)
        assert (len(loaded.session.messages), loaded.damage) == (3, damaged)
