"""A copy of a session elsewhere, when the place it belongs to cannot be written."""

import errno
import json
import resource
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from ollm.domain.errors import StorageError, suggest_storage_fix
from ollm.store.session_files.writer import (
    LOOK_EVERY_SECONDS,
    SessionWriter,
    make_unsaved_error,
    write_rescue_copy,
)
from tests.store.sessions.support import AT, Home, said

SESSION_ID = "aaaa0000-0000-4000-8000-000000000001"


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionWriter:
    """One message on disk, one only in memory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    writer = Home(tmp_path).files.create({"sessionId": SESSION_ID, "startTime": AT, "lastActivity": AT})
    record(writer, 1)
    writer.deferred = True
    record(writer, 2)
    return writer


def record(writer: SessionWriter, number: int) -> None:
    import msgspec

    writer.record_message(AT, msgspec.structs.replace(said(f"message {number}"), id=number), 1)


def refusal(writer: SessionWriter) -> StorageError:
    error = StorageError("words of the error.")
    error.__cause__ = OSError(28, "No space left on device")
    return error


def test_the_copy_holds_what_is_on_disk_and_what_is_only_in_memory(writer: SessionWriter) -> None:
    path = write_rescue_copy(writer)

    assert path is not None
    assert path.parent.name.startswith("ollm-unsaved-")
    found = json.loads(path.read_bytes())
    assert [message["id"] for message in found["messages"]] == [1, 2]
    assert SESSION_ID != found["sessionId"] == path.stem, "moved to the sessions it replaces none"
    assert path.stat().st_mode & 0o777 == 0o600


def test_where_nothing_can_be_written_there_is_no_copy(writer: SessionWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/none")

    assert write_rescue_copy(writer) is None
    error = make_unsaved_error(writer, refusal(writer), rescue=True)
    assert error.action == "No copy could be written elsewhere either: what is not saved ends with this process."


def test_a_copy_that_cannot_be_written_leaves_no_folder(
    writer: SessionWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        copy = write_rescue_copy(writer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert copy is None
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_too_many_open_files_are_not_answered_with_free_disk_space() -> None:
    assert "open files" in suggest_storage_fix(OSError(errno.EMFILE, "Too many open files"))
    assert "disk" not in suggest_storage_fix(OSError(errno.EMFILE, "Too many open files"))


@pytest.mark.parametrize(("more", "what"), [(0, "1 message"), (1, "2 messages")])
def test_the_error_says_how_much_is_not_saved_and_why(writer: SessionWriter, more: int, what: str) -> None:
    for number in range(more):
        record(writer, 3 + number)

    error = make_unsaved_error(writer, refusal(writer), rescue=False)

    assert error.message == (
        f"Not saved: {what} of session {SESSION_ID}. {writer.directory} refuses it: No space left on device."
    )
    assert error.action == "Free disk space, then try again; it is kept in memory."


def test_without_a_message_it_is_the_last_change(writer: SessionWriter) -> None:
    writer.flush()
    writer.change_fields(AT, {}, {"title": "t"})

    error = make_unsaved_error(writer, StorageError("words."), rescue=False)

    assert error.message == (
        f"Not saved: The last change of session {SESSION_ID}. {writer.directory} refuses it: words."
    )


def test_for_a_session_that_ends_the_copy_is_named(writer: SessionWriter) -> None:
    error = make_unsaved_error(writer, refusal(writer), rescue=True)

    [copy] = Path(tempfile.gettempdir()).glob("ollm-unsaved-*/*.json")
    assert error.action == (
        f"The whole session is in {copy}; move that file to {writer.directory}: it becomes another session."
    )


def test_the_copy_is_whole_when_the_place_of_the_session_is_gone(writer: SessionWriter, tmp_path: Path) -> None:
    writer.deferred = False
    writer.fold()
    shutil.rmtree(writer.directory)
    writer.directory.write_text("a file where the directory was")
    time.sleep(2 * LOOK_EVERY_SECONDS)

    with pytest.raises(StorageError):
        record(writer, 3)
    assert not writer.is_saved
    path = write_rescue_copy(writer)

    assert path is not None
    assert [message["id"] for message in json.loads(path.read_bytes())["messages"]] == [1, 2, 3]


def test_a_session_whose_place_is_gone_while_nothing_waits_is_not_saved(writer: SessionWriter) -> None:
    writer.fold()
    shutil.rmtree(writer.directory)
    writer.directory.write_text("a file where the directory was")

    with pytest.raises(StorageError):
        writer.close()
    assert not writer.is_saved
