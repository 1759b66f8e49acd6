"""A session as another program wrote it."""

import json

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
