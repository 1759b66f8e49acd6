"""Writing a session again from all that can be read of it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.errors import DamagedError
from ollm.domain.session import SCHEMA_VERSION
from ollm.store.session_files import LoadedSession, SessionFiles
from tests.store.sessions.support import AT, Home

SESSION_ID = "aaaa0000-0000-4000-8000-000000000001"
STAMP = "2026-01-27T100000-000Z"


def message(number: int, **more: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "text": f"m{number}"}], "timestamp": AT, "id": number, **more}


def tool_call(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "name": "ls", "args": {}, "timestamp": AT, "messageId": 1, "status": "ok", **more}


def rewrite(home: Home, session_id: str = SESSION_ID) -> tuple[tuple[int, int], LoadedSession]:
    writer, loaded = SessionFiles(home.places, lambda: datetime(2026, 1, 27, 10, tzinfo=UTC)).open(session_id)
    writer.abandon()
    return (writer.message_count, writer.last_number), loaded


def write_foreign(home: Home, **fields: Any) -> str:
    document = {
        "sessionId": SESSION_ID,
        "startTime": AT,
        "messages": [message(1)],
        "toolCalls": [tool_call("c1")],
        **fields,
    }
    text = json.dumps(document, indent=2)
    home.sessions.mkdir(parents=True, exist_ok=True)
    home.document(SESSION_ID).write_text(text)
    return text


def test_another_layout_becomes_ours_and_the_original_is_kept(tmp_path: Path) -> None:
    home = Home(tmp_path)
    text = write_foreign(home, mine="kept", messages=[message(1), message(2, odd=[1, 2])])

    numbers, loaded = rewrite(home)

    assert numbers == (2, 2)
    assert len(loaded.session.tool_calls) == 1
    written = home.document(SESSION_ID).read_bytes()
    document = json.loads(written)
    assert written.count(b"\n") == 6  # the head, two messages, the middle, a call, the end
    assert document["mine"] == "kept"
    assert document["messages"][1] == message(2, odd=[1, 2])
    assert document["metadata"]["schemaVersion"] == SCHEMA_VERSION
    assert document["lastActivity"]
    assert home.document(SESSION_ID).with_name(f"{SESSION_ID}.json.original-{STAMP}").read_text() == text


def test_entries_of_an_earlier_form_are_written_in_ours(tmp_path: Path) -> None:
    home = Home(tmp_path)
    old = {"role": "user", "content": "old", "extra": True}
    write_foreign(home, messages=[old], toolCalls=[{"id": "c1", "name": "ls", "result": "done", "extra": 1}])

    rewrite(home)

    document = json.loads(home.document(SESSION_ID).read_bytes())
    [entry] = document["messages"]
    assert (entry["parts"], entry["id"], entry["extra"]) == ([{"type": "text", "text": "old"}], 1, True)
    [known] = document["toolCalls"]
    assert (known["status"], known["result"]["llmContent"], known["extra"]) == ("ok", "done", 1)


def test_an_earlier_versions_files_move_over(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session_id = home.recorded("one")
    old = tmp_path / "session-data"
    old.mkdir()
    home.document(session_id).rename(old / f"{session_id}.json")
    (old / f"{session_id}.journal").write_bytes(b"")

    numbers, _ = rewrite(home, session_id)

    assert numbers == (1, 1)
    assert home.document(session_id).exists()
    assert list(old.iterdir()) == []


def test_files_without_one_readable_message_stay_as_they_are(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.sessions.mkdir()
    home.document(SESSION_ID).write_text("nonsense")

    with pytest.raises(DamagedError) as caught:
        rewrite(home)
    assert caught.value.message == (
        f"{home.document(SESSION_ID)} cannot be resumed: no message in it can be read "
        "(the file is not a JSON document). The file was left as it is."
    )
    assert caught.value.action == "Restore it from a backup, or start a new session with `ollm chat --new`."
    assert [path.read_text() for path in home.sessions.glob("*.json*")] == ["nonsense"]


def test_a_session_of_a_newer_version_is_never_written(tmp_path: Path) -> None:
    home = Home(tmp_path)
    text = write_foreign(home, metadata={"schemaVersion": SCHEMA_VERSION + 1})

    with pytest.raises(DamagedError) as caught:
        rewrite(home)
    assert caught.value.message == (
        f"{home.document(SESSION_ID)} can be viewed but not continued: "
        f"it was written by a newer version (schema {SCHEMA_VERSION + 1}). The file was left as it is."
    )
    assert home.document(SESSION_ID).read_text() == text
