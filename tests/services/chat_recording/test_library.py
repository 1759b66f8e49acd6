"""All sessions as a whole: listed, deleted everywhere, kept within a limit, put into the trash and back."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ollm.config.settings import SessionSettings
from ollm.domain.errors import BusyError, NotFoundError, StorageError, UsageError
from ollm.domain.session import ParentCall
from ollm.services.chat_recording.library import SessionLibrary
from ollm.services.chat_recording.service import ChatRecordingService
from ollm.store.session_index.index import SessionIndex
from tests.covers import covers
from tests.services.chat_recording.test_service import files
from tests.store.sessions.support import Home, said


@covers("H507")
async def test_one_shot_sessions_go_first_and_an_open_one_never(tmp_path):
    library = SessionLibrary(files(tmp_path), settings=SessionSettings(max_sessions=2))
    recording = ChatRecordingService(files(tmp_path), SessionSettings(max_sessions=0))
    ids = []
    for origin in (None, None, "one-shot", None):
        session_id = await recording.create_session("m", "ollama", origin=origin)
        await recording.record_message(session_id, said("x"))
        ids.append(session_id)
        await asyncio.sleep(0.002)  # times are kept in milliseconds
    for session_id in ids[1:]:
        await recording.close_session(session_id)
    assert library.enforce_limit() == [ids[2], ids[1]]
    assert await recording.get_session(ids[0])


@covers("H530")
async def test_deleting_reaches_every_store_that_may_know_the_session(tmp_path):
    erased = []

    class Store:
        def erase(self, session_id: str) -> None:
            erased.append(session_id)

    library = SessionLibrary(files(tmp_path), traces=lambda workspace: [Store()] if workspace == "/w" else [])
    recording = ChatRecordingService(files(tmp_path), library=library)
    session_id = await recording.create_session("m", "ollama", workspace="/w")
    await recording.record_message(session_id, said("x"))
    await recording.delete_session(session_id)
    assert erased == [session_id]


@pytest.mark.parametrize("indexed", [True, False])
def test_sessions_are_listed_last_active_first_with_and_without_an_index(tmp_path: Path, indexed: bool) -> None:
    home = Home(tmp_path)
    ids = [home.recorded(f"number {number}") for number in range(3)]
    library = home.library() if indexed else SessionLibrary(home.files)

    listed = library.list_summaries()

    assert {summary.session_id for summary in listed} == set(ids)
    assert [summary.last_activity for summary in listed] == sorted((s.last_activity for s in listed), reverse=True)
    assert {summary.title for summary in listed} == {"number 0", "number 1", "number 2"}


def test_what_could_not_be_erased_elsewhere_is_told_and_the_session_is_gone(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session_id = home.recorded("x", workspace="/w")
    seen: list[tuple[int, int]] = []

    failed = home.library(traces=lambda _workspace: [Stubborn()]).delete_many(
        [session_id], progress=lambda done, total: seen.append((done, total))
    )

    assert [str(error) for error in failed] == [
        f"Session {session_id} was deleted, but some data remains: The disk is full."
    ]
    assert seen[0] == (1, 1)
    assert home.library().list_summaries() == []


def test_deleting_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        Home(tmp_path).library().delete("550e8400-e29b-41d4-a716-446655440000")


async def test_all_but_the_newest_are_deleted_and_an_open_one_stays(tmp_path: Path) -> None:
    library = SessionLibrary(files(tmp_path))
    recording = ChatRecordingService(files(tmp_path), SessionSettings(max_sessions=0))
    ids = []
    for number in range(3):
        ids.append(await recording.create_session("m", "ollama"))
        await recording.record_message(ids[-1], said(f"number {number}"))
    for session_id in ids[1:]:
        await recording.close_session(session_id)

    gone = library.delete_all_but(0)

    assert set(gone) == set(ids[1:])
    assert [summary.session_id for summary in library.list_summaries()] == [ids[0]]
    assert library.delete_all_but(5) == []
    with pytest.raises(UsageError, match="Cannot keep -1 sessions"):
        library.delete_all_but(-1)


def test_the_trash_gives_back_until_its_days_are_over(tmp_path: Path) -> None:
    home = Home(tmp_path, trash_days=30)
    first, second = home.recorded("one"), home.recorded("two")
    start = datetime.now(UTC)
    library = home.library(clock=lambda: start)
    library.move_to_trash(first)
    library.move_to_trash(second)
    assert {found.session_id for found in library.list_trashed()} == {first, second}
    assert library.list_summaries() == []

    library.restore(first)
    home.library(clock=lambda: start + timedelta(days=29)).purge_trash()
    assert [found.session_id for found in library.list_trashed()] == [second]
    home.library(clock=lambda: start + timedelta(days=31)).purge_trash()

    assert library.list_trashed() == []
    assert [found.session_id for found in library.list_summaries()] == [first]


@pytest.mark.parametrize(("days", "trashed"), [(30, 1), (0, 0)])
def test_over_the_limit_the_trash_or_nothing_is_left(tmp_path: Path, days: int, trashed: int) -> None:
    home = Home(tmp_path, max_sessions=0, trash_days=days)
    for number in range(3):
        home.recorded(f"number {number}")
    assert home.library().enforce_limit() == []

    library = SessionLibrary(home.files, home.index(), SessionSettings(max_sessions=2, trash_days=days))

    assert len(library.enforce_limit()) == 1
    assert len(library.list_summaries()) == 2
    assert len(library.list_trashed()) == trashed
    assert library.enforce_limit() == []


def test_a_session_is_renamed_and_archived_without_being_active_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session_id = home.recorded("x")
    library = home.library()
    before = library.list_summaries()[0].last_activity

    library.rename(session_id, "another title")
    library.archive(session_id, archived=True)

    (summary,) = library.list_summaries()
    assert (summary.title, summary.status, summary.last_activity) == ("another title", "archived", before)
    library.archive(session_id, archived=False)
    assert library.list_summaries()[0].status == "closed"


async def test_an_open_session_is_neither_deleted_nor_renamed_by_another(tmp_path: Path) -> None:
    recording = ChatRecordingService(files(tmp_path))
    session_id = await recording.create_session("m", "ollama")
    await recording.record_message(session_id, said("x"))
    library = SessionLibrary(files(tmp_path))

    with pytest.raises(BusyError):
        library.rename(session_id, "mine")
    with pytest.raises(BusyError):
        library.delete(session_id)
    await recording.close_session(session_id)


class NotedDeletions:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def add_deletion(self, session_id: str) -> None:
        self.told.append(("add", session_id))

    def withdraw_deletion(self, session_id: str) -> None:
        self.told.append(("withdraw", session_id))


class Stubborn:
    """A store that cannot forget."""

    def erase(self, session_id: str) -> None:
        raise StorageError("The disk is full.")


def test_a_deletion_is_noted_for_the_copies_and_taken_back_when_the_session_stays(tmp_path: Path) -> None:
    home = Home(tmp_path)
    kept, gone = home.recorded("kept"), home.recorded("gone", workspace="/w")
    noted = NotedDeletions()
    library = home.library(deletions=noted, traces=lambda workspace: [Stubborn()] if workspace == "/w" else [])

    writer, _ = home.files.open(kept)
    try:
        with pytest.raises(BusyError):
            library.delete(kept, with_tasks=False)
    finally:
        writer.abandon()
    assert noted.told == [("add", kept), ("withdraw", kept)]

    with pytest.raises(StorageError, match="was deleted, but some data remains"):
        library.delete(gone)
    assert noted.told[2:] == [("add", gone)]
    library.delete(kept, with_tasks=False)
    assert noted.told[3:] == [("add", kept)]
    assert library.list_summaries() == []


def test_what_the_limit_deletes_here_stays_in_the_copies(tmp_path: Path) -> None:
    home = Home(tmp_path)
    old, new = home.recorded("old"), home.recorded("new")
    noted = NotedDeletions()
    limited = SessionSettings(max_sessions=1, trash_days=0)

    assert SessionLibrary(home.files, home.index(), limited, deletions=noted).enforce_limit() == [old]

    assert noted.told == []
    assert [found.session_id for found in home.library().list_summaries()] == [new]


class BrokenIndex(SessionIndex):
    """An index on a disk that fails."""

    error: Exception = StorageError("The disk is full.", action="Free some space.")

    def erase_all(self, *_: object) -> None:
        raise self.error

    def list_sessions(self, *_: object, **__: object) -> list[object]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StorageError("The disk is full.", action="Free some space."), "The disk is full. Free some space."),
        (OSError("no device"), "no device"),
    ],
)
def test_sessions_go_with_their_tasks_though_the_index_cannot_be_used(
    tmp_path: Path, error: Exception, told: str
) -> None:
    home = Home(tmp_path)
    parent = home.recorded("parent")
    task = home.recorded("task", origin="task", parent=ParentCall(session_id=parent, call_id="c1"))
    other = home.recorded("other")
    index = BrokenIndex(home.root / "index.db", home.sessions)
    index.error = error
    library = SessionLibrary(home.files, index)

    assert library.find_tasks([parent]) == [task]
    failed = library.delete_many([parent])
    assert [str(found) for found in failed] == [f"2 sessions are deleted, but some data remains: {told}"]
    with pytest.raises(StorageError) as single:
        library.delete(other)
    assert str(single.value) == f"Session {other} is deleted, but some data remains: {told}"
    assert home.places.list_ids() == []


def test_a_fault_of_the_index_is_not_hidden_where_many_are_deleted(tmp_path: Path) -> None:
    class Failing(SessionIndex):
        def erase_all(self, *_: object) -> None:
            raise StorageError("The disk is full.")

    home = Home(tmp_path, trash_days=30)
    for number in range(3):
        home.recorded(f"number {number}")
    late = datetime.now(UTC) + timedelta(days=31)
    settings = SessionSettings(max_sessions=1, trash_days=0)
    library = SessionLibrary(home.files, Failing(home.root / "index.db", home.sessions), settings)
    home.library().move_to_trash(library.list_summaries()[0].session_id)

    with pytest.raises(StorageError):
        SessionLibrary(home.files, library.index, home.settings, clock=lambda: late).purge_trash()
    with pytest.raises(StorageError):
        library.enforce_limit()
    with pytest.raises(StorageError):
        library.delete_all_but(0)
    assert home.places.list_ids() == []
