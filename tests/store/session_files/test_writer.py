"""Writing session files, and writing them anew."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.domain.session import SCHEMA_VERSION
from ollm.store.session_files import writer as writing
from ollm.store.session_files.loading import LoadedSession
from ollm.store.session_files.store import SessionFiles
from ollm.store.session_files.writer import SessionWriter
from ollm.system import atomic
from tests.store.sessions.support import AT, Home, said

SESSION_ID = "aaaa0000-0000-4000-8000-000000000001"


def create(home: Home) -> SessionWriter:
    return home.files.create({"sessionId": SESSION_ID, "startTime": AT, "lastActivity": AT, "metadata": {}})


def record(writer: SessionWriter, number: int, text: str = "x") -> None:
    writer.record_message(AT, msgspec.structs.replace(said(text), id=number), number)


def records(home: Home) -> list[dict]:
    return [json.loads(line) for line in home.journal(SESSION_ID).read_bytes().splitlines()]


def document(home: Home) -> dict:
    found: dict = json.loads(home.document(SESSION_ID).read_bytes())
    return found


def test_small_documents_are_folded_at_every_turn_and_larger_ones_when_the_journal_outgrew_them(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    assert writer.fold_when_due() is True
    assert not home.journal(SESSION_ID).read_bytes()
    assert writer.fold_when_due() is False, "there is nothing to fold"
    record(writer, 2, "y" * 70_000)
    assert writer.fold_when_due() is True
    record(writer, 3)
    assert writer.fold_when_due() is False
    record(writer, 4, "z" * 80_000)
    assert writer.fold_when_due() is True
    assert [entry["id"] for entry in document(home)["messages"]] == [1, 2, 3, 4]
    writer.abandon()


def test_closing_folds_and_removes_the_journal_and_the_lock(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    writer.record_text(lambda: AT, "text", "half")

    assert writer.close() is True

    assert not writer.open
    last = document(home)["messages"][-1]
    assert (last["id"], last["interrupted"], last["parts"]) == (2, True, [{"type": "text", "text": "half"}])
    assert [path.suffix for path in home.sessions.iterdir()] == [".json"]


def test_a_large_document_is_not_written_anew_for_a_little_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1, "x" * 10_000)
    writer.fold()
    monkeypatch.setattr(writing, "KEEP_JOURNAL_FROM_BYTES", 10_000)
    record(writer, 2)

    assert writer.close() is False
    assert home.journal(SESSION_ID).stat().st_size > 0
    assert home.texts(SESSION_ID) == ["x" * 10_000, "x"]


def test_an_answer_under_way_is_carried_over_a_fold(tmp_path: Path) -> None:
    home, writer = Home(tmp_path), create(Home(tmp_path))
    writer.record_text(lambda: AT, "text", "half")
    assert writer.fold() is True

    assert [(line["partial"], line["piece"]) for line in records(home)] == [
        ([{"type": "text", "text": "half"}], [1, 1])
    ]
    writer.abandon()


@pytest.mark.parametrize("at_the_end", [False, True], ids=["with the next record", "at the end of a burst's turn"])
def test_what_another_program_did_is_told_once_and_put_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_the_end: bool
) -> None:
    monkeypatch.setattr(writing, "LOOK_EVERY_SECONDS", 3600 if at_the_end else 0)
    monkeypatch.setattr(writing, "FOLD_ALWAYS_BELOW_BYTES", 0)
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    home.journal(SESSION_ID).unlink()
    home.document(SESSION_ID).unlink()
    assert not writer.has_own_files
    record(writer, 2)
    if at_the_end:
        assert writer.take_reports() == []
        writer.fold_when_due()

    assert sorted(writer.take_reports()) == sorted(
        [
            f"Another program has removed {home.journal(SESSION_ID)}: it was rewritten.",
            f"Another program has removed {home.document(SESSION_ID)}: it was rewritten.",
        ]
    )
    assert writer.take_reports() == []
    assert home.texts(SESSION_ID) == ["x", "x"]
    writer.abandon()


def test_what_is_read_while_a_removed_journal_was_not_noticed_yet_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LOOK_EVERY_SECONDS", 3600)
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    home.journal(SESSION_ID).unlink()
    record(writer, 2)

    assert len(list(writer.open_reader().iter_messages())) == 2
    writer.close()
    assert home.texts(SESSION_ID) == ["x", "x"]


@pytest.mark.parametrize("foreign", [b'{"foreign":1}\n', b"xx"])
def test_what_another_program_adds_to_the_journal_takes_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foreign: bytes
) -> None:
    monkeypatch.setattr(writing, "LOOK_EVERY_SECONDS", 0)
    home, writer = Home(tmp_path), create(Home(tmp_path))
    record(writer, 1)
    with home.journal(SESSION_ID).open("ab") as file:
        file.write(foreign)
    record(writer, 2)
    record(writer, 3)

    [told] = writer.take_reports()
    assert told.startswith(f"Another program has changed {home.journal(SESSION_ID)}")
    assert "gone" not in told
    assert home.texts(SESSION_ID) == ["x", "x", "x"]
    assert foreign in next(tmp_path.rglob("*.journal.replaced-*")).read_bytes()
    writer.abandon()


@pytest.mark.parametrize("later", [1, 3], ids=["one record later", "three records later"])
def test_of_a_journal_that_was_cut_what_memory_holds_is_put_back_and_the_rest_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    monkeypatch.setattr(writing, "LOOK_EVERY_SECONDS", 3600)
    home, writer = Home(tmp_path), create(Home(tmp_path))
    monkeypatch.setattr(atomic, "MAX_HELD_BYTES", 1000)
    for number in range(1, 10):
        record(writer, number)
    os.truncate(home.journal(SESSION_ID), 0)
    for number in range(10, 10 + later):
        record(writer, number)
    writer.check_files()

    [told] = writer.take_reports()
    assert told.endswith("bytes are gone.")
    numbers = [message.id for message in home.files.read(SESSION_ID).session.messages]
    assert len(numbers) > later
    assert numbers == list(range(numbers[0], 10 + later))
    assert [record["message"]["id"] for record in records(home)] == numbers, "each line once"
    writer.abandon()


STAMP = "2026-01-27T100000-000Z"


def message(number: int, **more: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "text": f"m{number}"}], "timestamp": AT, "id": number, **more}


def tool_call(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "name": "ls", "args": {}, "timestamp": AT, "messageId": 1, "status": "ok", **more}


def rewrite(home: Home, session_id: str = SESSION_ID) -> tuple[int, LoadedSession]:
    writer, loaded = SessionFiles(home.places, lambda: datetime(2026, 1, 27, 10, tzinfo=UTC)).open(session_id)
    writer.abandon()
    return writer.last_number, loaded


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

    last_number, loaded = rewrite(home)

    assert last_number == 2
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
