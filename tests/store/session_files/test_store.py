"""The sessions on disk as a whole: create, open, read, move, remove."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ollm.domain.clock import now
from ollm.domain.errors import StorageError, UsageError
from ollm.domain.session import SessionSummary
from ollm.services.chat_recording.library import check_sessions, list_unindexed
from ollm.store.session_files.places import adopt_sessions
from tests.store.session_files.foreign_sessions import FOREIGN, ID, go_on, write_foreign
from tests.store.sessions.support import Home, said


def summarize(home: Home) -> SessionSummary:
    (found,) = list_unindexed(home.sessions)
    return found


def test_sessions_of_an_earlier_version_move_over_when_they_are_found(tmp_path):
    home = Home(tmp_path)
    write_foreign(tmp_path / "session-data")
    adopt_sessions(home.places, tmp_path / "session-data", now)
    assert [line["sessionId"] for line in home.index().list_sessions()] == [ID]
    assert home.texts(ID) == ["hello", "hi"]
    assert list((tmp_path / "session-data").iterdir()) == []
    go_on(home, ID)
    assert home.texts(ID) == ["hello", "hi", "afterwards"]
    assert [line["title"] for line in home.index().list_sessions()] == ["hello"]


def test_of_two_documents_for_one_id_our_own_stands_and_the_other_is_kept(tmp_path):
    home = Home(tmp_path)
    write_foreign(home.sessions)
    write_foreign(tmp_path / "session-data", json.dumps(FOREIGN | {"model": "other"}))
    adopt_sessions(home.places, tmp_path / "session-data", now)
    assert [line["model"] for line in home.index().list_sessions()] == ["llama3.2:3b"]
    kept = home.sessions.glob(f"{ID}.json.original-*")
    assert [json.loads(path.read_bytes())["model"] for path in kept] == ["other"]
    assert check_sessions(home.files, repair=False) == []


def test_a_fifo_or_directory_in_place_of_a_document_is_named(tmp_path):
    home = Home(tmp_path)
    home.sessions.mkdir()
    os.mkfifo(home.document(ID))
    assert "not a regular file" in home.index().list_sessions()[0]["damaged"]
    home.document(ID).unlink()
    home.document(ID).mkdir()
    assert home.index().list_sessions()[0]["damaged"]


UNKNOWN = "aaaa0000-0000-4000-8000-000000000001"
WHEN = datetime(2026, 1, 27, 10, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_what_is_not_written_yet_is_read_of_a_session_of_this_process(home: Home) -> None:
    session_id = home.recorded("one")
    writer, _ = home.files.open(session_id)
    writer.deferred = True
    import msgspec

    writer.record_message("2027-01-01T00:00:00.000Z", msgspec.structs.replace(said("two"), id=2), 9)

    found = home.files.read_open(writer).session
    assert [message.text for message in found.messages] == ["one", "two"]
    assert (found.metadata.token_count, found.last_activity) == (9, "2027-01-01T00:00:00.000Z")
    assert home.files.read_user_words(writer) == {1: "one", 2: "two"}
    assert len(home.files.read(session_id).session.messages) == 1
    writer.abandon()


def test_the_document_given_is_what_folding_would_write(home: Home) -> None:
    session_id = home.recorded("one")

    with home.files.open_reader(session_id) as stream:
        assert b"".join(stream.iter_document()) == home.document(session_id).read_bytes()


def test_every_file_of_a_session_is_removed_and_no_other(home: Home) -> None:
    session_id, other = home.recorded("one"), home.recorded("two")
    trash = home.root / "trash"
    trash.mkdir()
    for path in (
        home.sessions / f"{session_id}.json.damaged-1",
        home.sessions / f".{session_id}.x.tmp",
        trash / f"{session_id}.json",
    ):
        path.write_text("")

    home.files.remove(session_id)

    assert [path.name for path in home.sessions.iterdir()] == [f"{other}.json"]
    assert list(trash.iterdir()) == []


def test_a_session_goes_to_the_trash_and_comes_back(home: Home) -> None:
    session_id = home.recorded("one")
    home.journal(session_id).write_text("")
    trash = home.root / "trash"

    home.files.move(session_id, trash, at=WHEN)
    assert sorted(path.suffix for path in trash.iterdir()) == [".journal", ".json"]
    assert (trash / f"{session_id}.json").stat().st_mtime == WHEN.timestamp()
    assert home.files.list_trashed_before(datetime(2026, 1, 28, tzinfo=UTC)) == [session_id]
    assert home.files.list_trashed_before(WHEN) == []
    home.files.restore_from_trash(session_id, at=WHEN)
    assert home.texts(session_id) == ["one"]
    assert list(trash.iterdir()) == []
    assert home.files.list_trashed_before(datetime(2030, 1, 1, tzinfo=UTC)) == []


def test_a_session_that_exists_is_not_restored_over(home: Home) -> None:
    session_id = home.recorded("one")
    (home.root / "trash").mkdir()
    (home.root / "trash" / f"{session_id}.json").write_text("other")

    with pytest.raises(UsageError) as caught:
        home.files.restore_from_trash(session_id, at=WHEN)
    assert caught.value.message == f"Session {session_id} already exists."
    assert home.texts(session_id) == ["one"]


def test_a_directory_in_the_place_of_a_document_is_named_and_left(home: Home) -> None:
    path = home.document(UNKNOWN)
    path.mkdir(parents=True)
    (path / "mine.txt").write_text("precious")

    with pytest.raises(StorageError, match="is a directory, which ollm did not write"):
        home.files.remove(UNKNOWN)

    assert (path / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize("numbers", [(1, 2), (3, 4, 1)], ids=["of another", "mixed"])
def test_a_journal_with_messages_of_another_session_is_kept_when_the_session_goes_on(
    home: Home, numbers: tuple[int, ...]
) -> None:
    session_id = home.recorded("one", "two")
    line = '{"at":"2026-01-27T10:00:00.000Z","message":{"role":"user","parts":[{"type":"text","text":"%s"}],"id":%d}}\n'
    journal = "".join(line % (f"theirs {number}", number) for number in numbers).encode()
    home.journal(session_id).write_bytes(journal)
    assert "wrong number" in (summarize(home).damaged or "")

    home.files.open(session_id)[0].abandon()

    assert home.texts(session_id)[:2] == ["one", "two"]
    assert journal in [path.read_bytes() for path in home.sessions.glob("*.damaged-*")]


def test_a_journal_that_the_document_holds_already_is_no_damage(home: Home) -> None:
    session_id = home.recorded("one")
    line = (
        '{"at":"2026-01-27T10:00:00.000Z","message":{"role":"user","parts":[{"text":"one", "type":"text"}],"id":1}}\n'
    )
    home.journal(session_id).write_text(line * 2)

    assert summarize(home).damaged is None
