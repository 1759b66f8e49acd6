"""The sessions on disk as a whole: create, open, read, move, remove."""

import json
import os

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


def test_sessions_of_an_earlier_version_are_listed_and_move_over_when_written(tmp_path):
    home = Home(tmp_path)
    legacy = tmp_path / "session-data"
    write_foreign(legacy)
    assert [line["sessionId"] for line in home.index().list_sessions()] == [ID]
    assert home.texts(ID) == ["hello", "hi"]
    assert (legacy / f"{ID}.json").exists(), "reading moves nothing"
    go_on(home, ID)
    assert not (legacy / f"{ID}.json").exists()
    assert home.document(ID).exists()
    assert home.texts(ID) == ["hello", "hi", "afterwards"]
    assert [line["title"] for line in home.index().list_sessions()] == ["hello"]


def test_of_two_documents_for_one_id_our_own_stands_and_the_other_is_kept(tmp_path):
    home = Home(tmp_path)
    legacy = tmp_path / "session-data"
    write_foreign(home.sessions)
    write_foreign(legacy, json.dumps(FOREIGN | {"model": "other"}))
    assert [line["model"] for line in home.index().list_sessions()] == ["llama3.2:3b"]
    found = home.library().check(repair=False)
    assert [finding.problem for finding in found] == [f"there is a second document in {legacy}"]
    assert [finding.outcome for finding in home.library().check(repair=True)] == ["mended"]
    assert [json.loads(path.read_bytes())["model"] for path in legacy.glob(f"{ID}.json.damaged-*")] == ["other"]
    assert home.library().check(repair=False) == []


def test_a_fifo_or_directory_in_place_of_a_document_is_named(tmp_path):
    home = Home(tmp_path)
    home.sessions.mkdir()
    os.mkfifo(home.document(ID))
    assert "not a regular file" in home.index().list_sessions()[0]["damaged"]
    home.document(ID).unlink()
    home.document(ID).mkdir()
    assert home.index().list_sessions()[0]["damaged"]
