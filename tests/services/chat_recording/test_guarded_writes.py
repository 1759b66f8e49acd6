"""A write that fails is told once, kept, tried again, and told when it works again."""

from pathlib import Path

import pytest

from ollm.domain.errors import StorageError, UnsavedError
from ollm.domain.events import Event, Notice
from ollm.services.chat_recording.guarded_writes import GuardedWrites
from tests.store.sessions.support import Home, said

SESSION = "550e8400-e29b-41d4-a716-446655440000"


def fail(*_arguments: object) -> None:
    raise StorageError("The disk is full.", action="Free some space.")


def notices(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.level, event.text) for event in events if isinstance(event, Notice)]


def test_what_a_write_gives_is_given_on() -> None:
    events: list[Event] = []

    assert GuardedWrites({}, events.append).attempt_write(SESSION, lambda a, b: a + b, 1, 2) == 3
    assert events == []


def test_a_failure_is_told_once_until_saving_works_again() -> None:
    events: list[Event] = []
    writes = GuardedWrites({}, events.append)

    assert writes.attempt_write(SESSION, fail) is None
    assert writes.attempt_write(SESSION, fail) is None
    assert notices(events) == [("error", "The disk is full. Free some space.")]
    writes.attempt_write(SESSION, lambda: 1)
    writes.attempt_write(SESSION, lambda: 1)
    assert notices(events)[1:] == [("info", "Saving works again.")]
    writes.attempt_write(SESSION, fail)
    assert len(events) == 3
    assert {event.session_id for event in events} == {SESSION}


def test_sessions_are_told_apart() -> None:
    events: list[Event] = []
    writes = GuardedWrites({}, events.append)

    writes.attempt_write(SESSION, fail)
    writes.attempt_write("other", lambda: 1)

    assert notices(events) == [("error", "The disk is full. Free some space.")]


def test_any_other_fault_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        GuardedWrites({}, lambda _event: None).attempt_write(SESSION, lambda: 1 / 0)


async def test_while_something_waits_saving_does_not_work_again(tmp_path: Path) -> None:
    """A real session whose directory cannot be written for a while."""
    home = Home(tmp_path)
    service = home.service()
    session_id = await service.create_session("m", "p")
    await service.record_message(session_id, said("one"))
    writer = service._writers[session_id]
    events: list[Event] = []
    writes = GuardedWrites(service._writers, events.append)
    assert writer.is_saved
    writes.attempt_write(session_id, fail)
    writes.attempt_write(session_id, lambda: 1)
    assert [level for level, _ in notices(events)] == ["error", "info"]
    writes.ensure_saved(writer)
    assert writes.close(writer, lambda: None) is True
    assert home.texts(session_id) == ["one"]


async def test_what_is_in_memory_only_is_told_and_a_copy_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "rescue"))
    (tmp_path / "rescue").mkdir()
    home = Home(tmp_path / "home")
    service = home.service()
    session_id = await service.create_session("m", "p")
    writer = service._writers[session_id]
    monkeypatch.setattr(writer, "flush", fail)
    monkeypatch.setattr(writer, "close", fail)
    writes = GuardedWrites(service._writers, lambda _event: None)

    with pytest.raises(UnsavedError):
        writes.ensure_saved(writer)
    assert writes.close(writer, lambda: None) is False  # all of it is in the journal
    monkeypatch.setattr(type(writer), "is_saved", False)
    with pytest.raises(UnsavedError):
        writes.close(writer, lambda: None)
