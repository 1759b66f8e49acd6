"""A workspace and its sessions, rebuilt from the archive."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ollm.config.settings import ResumeSettings
from ollm.domain.errors import BusyError
from ollm.domain.messages import Message, Role, TextPart, ToolCallPart, ToolResultPart
from ollm.domain.session import ChatSession, Session, SessionMetadata, SessionSummary
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.runtime.resume.workspace_sessions import WorkspaceContext, build_episodes, find_newest_number, take_lease
from ollm.store.lease import Lease
from ollm.store.workspace_db import WorkspaceDatabase

WRITING = frozenset({"write_file"})
FIRST = "550e8400-e29b-41d4-a716-446655440000"
SECOND = "660e8400-e29b-41d4-a716-446655440001"


def at(second: int) -> str:
    return f"2026-01-27T10:00:{second:02}.000Z"


def message(number: int, role: Role, text: str = "", *calls: str, interrupted: bool = False) -> Message:
    kind = ToolResultPart if role == "tool" else ToolCallPart
    parts = (*((TextPart(text),) if text else ()), *(kind(name) for name in calls))
    return Message(id=number, role=role, parts=parts, timestamp=at(number), interrupted=interrupted)


TALK = (
    message(1, "user", "write a.py"),
    message(2, "assistant", "", "c1"),
    message(3, "tool", "", "c1"),
    message(4, "assistant", "done"),
    message(5, "user", "again"),
    message(6, "assistant", "half", interrupted=True),
    message(7, "user", "and?"),
)
CALL = ToolCallRecord(
    id="c1",
    name="write_file",
    args={"path": "a.py"},
    timestamp=at(2),
    message_id=2,
    status="ok",
    result=RecordedResult(llm_content="ok"),
)


def session(session_id: str = FIRST, messages: tuple[Message, ...] = TALK, workspace: str | None = None) -> Session:
    return Session(
        session_id=session_id,
        start_time=at(0),
        last_activity=at(7),
        model="m",
        provider="p",
        messages=messages,
        tool_calls=(CALL,),
        metadata=SessionMetadata(title="a title", workspace=workspace),
    )


def summary(session_id: str, workspace: str | None, second: int = 5, **more: object) -> SessionSummary:
    return SessionSummary(
        **{  # type: ignore[arg-type]
            "session_id": session_id,
            "title": "t",
            "start_time": at(0),
            "last_activity": at(second),
            "model": "m",
            "message_count": 3,
            "token_count": 9,
            "workspace": workspace,
            "status": "closed",
        }
        | more
    )


class Place:
    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.database = WorkspaceDatabase(path / ".ollm")
        self.archived: list[SessionSummary] = []
        self.context = WorkspaceContext(path, self.database, lambda: self.archived, ResumeSettings())


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "w")
    yield made
    made.database.close()


def test_each_request_is_an_episode_with_what_was_changed() -> None:
    first, second, third = build_episodes(session(), WRITING)

    assert (first.number, first.request, first.answer, first.reason) == (1, "write a.py", "done", "answered")
    assert first.files == ("a.py",)
    assert (second.answer, second.reason) == ("half", "cancelled")
    assert (third.request, third.answer, third.reason) == ("and?", "", "cancelled")
    assert build_episodes(session(), frozenset())[0].files == ()
    assert build_episodes(session(messages=()), WRITING) == []
    (begun,) = build_episodes(session(messages=TALK[:2]), WRITING)
    assert begun.files == ("a.py",), "a crash came before its result was written down"


def test_the_archive_knows_title_and_status_better(place: Place) -> None:
    place.context.rebuild_record(session(), None)
    place.archived = [summary(FIRST, "/elsewhere", title="renamed", status="archived")]

    (record,) = place.context.list_sessions()

    assert (record.title, record.status) == ("renamed", "archived")
    place.archived = [summary(FIRST, "/elsewhere", title="")]
    assert place.context.list_sessions()[0].title == "a title"


def test_a_record_is_rebuilt_from_the_archive_and_then_known(place: Place) -> None:
    loads: list[int] = []

    def load() -> Session:
        loads.append(1)
        return session()

    record = place.context.get_record(session(), load)
    assert (record.title, record.model, record.status) == ("a title", "m", "closed")
    assert "write a.py" in record.summary
    assert find_newest_number(record) == 7
    assert loads == [1]
    assert place.context.get_record(session(), load) == record
    assert loads == [1]


def test_what_was_said_after_the_record_is_added(place: Place) -> None:
    place.context.rebuild_record(session(), None)
    longer = session(messages=(*TALK, message(8, "assistant", "yes"), message(9, "user", "more")))

    record = place.context.get_record(longer, lambda: longer)

    assert find_newest_number(record) == 9
    assert "more" in record.summary
    assert {episode.number for episode in place.database.list_episodes(FIRST)} == {1, 5, 7, 9}


def test_a_plan_that_was_known_stays_when_the_record_is_rebuilt(place: Place) -> None:
    known = place.context.rebuild_record(session(), None)
    planned = msgspec.structs.replace(known, plan=msgspec.structs.replace(known.plan, paused=True))

    assert place.context.rebuild_record(session(), planned).plan.paused


def list_texts(record: ChatSession) -> list[str]:
    return [entry["content"] for entry in record.recent_messages]


def test_only_what_is_newer_is_added(place: Place) -> None:
    place.context.rebuild_record(session(), None)
    newest = (TALK[-1], message(8, "assistant", "yes"), message(9, "user", "more"))
    seen = msgspec.structs.replace(place.database.list_episodes(FIRST)[-1], reason="loop", decisions=("stay",))
    place.database.add_episodes([seen])

    whole = session(messages=(*TALK, *newest[1:]))
    record = place.context.get_record(session(messages=newest), lambda: whole)

    assert list_texts(record)[-4:] == ["half\n[interrupted here]", "and?", "yes", "more"]
    assert list_texts(record).count("and?") == 1
    assert {episode.number for episode in place.database.list_episodes(FIRST)} == {1, 5, 7, 9}
    assert place.database.list_episodes(FIRST)[-2] == seen  # as the engine saw it, which no message tells
    assert place.database.get_session(FIRST) == record


def test_sessions_that_were_adopted_belong_here_with_where_they_come_from(place: Place) -> None:
    place.context.adopt(SECOND, "/far")
    place.context.adopt(FIRST, "/far")
    place.context.adopt(FIRST, "/far")
    place.archived = [summary(FIRST, "/far", 3), summary("770e8400-e29b-41d4-a716-446655440002", "/far")]

    assert [record.session_id for record in place.context.list_sessions()] == [FIRST]
    assert place.context.load_origins() == {FIRST: "/far", SECOND: "/far"}
    assert place.database.get_fact("copied") == f'{{"/far": ["{FIRST}", "{SECOND}"]}}'
    assert place.context.owns(session(workspace="/far"))
    assert not place.context.owns(session("880e8400-e29b-41d4-a716-446655440003", workspace="/far"))


@pytest.mark.parametrize("there", ["nothing", "another", "damaged", "link"])
def test_a_folder_that_was_moved_and_replaced_is_still_the_moved_one(tmp_path: Path, there: str) -> None:
    before = Place(tmp_path / "old")
    before.context.detect_move()
    identity = before.database.get_fact("id")
    before.database.close()
    (tmp_path / "old").rename(tmp_path / "new")
    if there == "another":
        other = Place(tmp_path / "old")
        other.context.detect_move()
        other.database.close()
    elif there == "damaged":
        (tmp_path / "old" / ".ollm").mkdir(parents=True)
        (tmp_path / "old" / ".ollm" / "memory.db").write_bytes(b"no database" * 999)
    elif there == "link":
        (tmp_path / "old").symlink_to(tmp_path / "new")
    after = Place(tmp_path / "new")

    after.context.detect_move()

    assert after.database.get_fact("id") == identity
    assert after.database.get_fact("path") == str(tmp_path / "new")
    assert after.context.load_aliases() == {str(tmp_path / "old"), str(tmp_path / "new")}
    after.database.close()
    (tmp_path / "new").rename(tmp_path / "third")
    third = Place(tmp_path / "third")
    third.context.detect_move()
    assert third.database.get_fact("aliases") == f'["{tmp_path / "new"}", "{tmp_path / "old"}"]'
    third.database.close()


@pytest.fixture(autouse=True)
def ignore_the_signal() -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


async def test_one_that_is_held_is_refused_with_who_has_it(tmp_path: Path) -> None:
    owner = Lease(tmp_path)
    owner.acquire()

    with pytest.raises(BusyError, match=f"process {os.getpid()}"):
        await take_lease(Lease(tmp_path), force=False)
    owner.release()
