"""What the index takes from session files: the row of a list, and the texts to search."""

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from ollm.domain.messages import Message, TextPart, ThinkingPart
from ollm.domain.tools import RecordedResult, ToolCallRecord
from ollm.store.session_files import layout
from ollm.store.session_files.journal import JournalMessage, JournalRecord, encode_json, encode_line
from ollm.store.session_index.database import connect_in_memory
from ollm.store.session_index.entries import (
    UNREAD_TITLE,
    SessionRow,
    make_call_entry,
    make_message_entry,
    make_unread_row,
    make_unreadable_row,
    make_writer_row,
    read_changes,
    read_further,
    read_journal_tail,
    read_session,
)
from ollm.store.session_index.stamps import read_stamp
from ollm.store.session_index.texts import UNDER_WAY, EntryIndexer, IndexEntry
from tests.store.sessions.support import AT, Home, call, run, said

LATER = "2026-02-01T00:00:00.000Z"


class Taken(EntryIndexer):
    """An indexer that remembers what it was handed."""

    def __init__(self, number: int = 0) -> None:
        super().__init__(connect_in_memory(), {"id": 1, "text_number": number})
        self.entries: list[IndexEntry] = []

    def __call__(self, entry: IndexEntry) -> None:
        self.entries.append(entry)
        super().__call__(entry)

    @property
    def texts(self) -> list[tuple[int, str | None, str]]:
        return [(entry.number, entry.call, entry.text) for entry in self.entries]


def row(**more: object) -> SessionRow:
    usual = dict.fromkeys(SessionRow._fields, 0) | {"last_activity": AT, "model": "m", "title": "t", "workspace": None}
    return SessionRow(**(usual | more))  # type: ignore[arg-type]


def numbered(number: int, text: str, role: str = "user") -> Message:
    return msgspec.structs.replace(said(text, role), id=number)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_row_says_what_a_list_shows(home: Home) -> None:
    session_id = home.recorded("first words", "two", workspace="/w")

    found = read_session(home.sessions, session_id)

    assert (found.message_count, found.last_number, found.partial, found.archived) == (2, 2, 0, 0)
    assert (found.model, found.title, found.workspace, found.damaged) == ("m", "first words", "/w", None)
    assert found.token_count > 0
    assert found.journal_read == 0


def test_every_message_and_finished_call_is_handed_over(home: Home) -> None:
    async def record() -> str:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        await service.record_message(session_id, said("one"))
        await service.record_tool_call(session_id, call("c1", result="done"))
        await service.record_tool_call(session_id, call("c2"))
        await service.record_partial(session_id, [TextPart(text="half")])
        service._writers[session_id].abandon()
        return session_id

    session_id = run(record)
    take = Taken()

    found = read_session(home.sessions, session_id, take)

    assert take.texts == [(1, None, "one"), (2, UNDER_WAY, "half"), (1, "c1", "ls .\ndone")]
    assert (found.partial, found.message_count) == (1, 1)
    size = home.journal(session_id).stat().st_size
    assert 0 < found.journal_read < size


def test_what_follows_is_read_without_the_rest(home: Home) -> None:
    session_id = home.recorded(*(f"message {number}" for number in range(1, 6)))
    take = Taken()

    assert read_further(home.sessions, session_id, (3, 0), take) is True
    assert [number for number, _, _ in take.texts] == [4, 5]
    home.document(session_id).write_text(json.dumps(json.loads(home.document(session_id).read_bytes()), indent=1))
    assert read_further(home.sessions, session_id, (3, 0), take) is False


def test_one_who_is_late_is_handed_nothing_more(home: Home) -> None:
    session_id = home.recorded("one", "two", "three")
    take = Taken()
    take.late = True

    assert read_further(home.sessions, session_id, (0, 0), take) is True
    assert len(take.entries) == 1


def journal(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def test_the_tail_of_a_journal_brings_the_row_up_to_date(tmp_path: Path) -> None:
    before = encode_line(JournalMessage(at=AT, message=numbered(1, "old")))
    new = encode_line(JournalMessage(at=LATER, message=numbered(2, "new"), tokens=9))
    changed = encode_line(
        JournalRecord(at=AT, top={"model": "other"}, set={"title": "u", "workspaceState": {"status": "archived"}})
    )
    path = journal(tmp_path / "j", before, new, changed, b'{"at":"torn')
    take = Taken()

    found = read_journal_tail(path, row(journal_read=len(before), message_count=1, last_number=1), take)

    assert found is not None
    assert (found.message_count, found.last_number, found.token_count) == (2, 2, 9)
    assert (found.model, found.title, found.archived, found.last_activity) == ("other", "u", 1, LATER)
    assert found.journal_read == len(before + new + changed)
    assert take.texts == [(2, None, "new")]


def test_a_message_known_already_counts_once(tmp_path: Path) -> None:
    path = journal(tmp_path / "j", encode_line(JournalMessage(at=AT, message=numbered(1, "old"))))
    take = Taken()

    found = read_journal_tail(path, row(message_count=1, last_number=1), take)

    assert found is not None
    assert (found.message_count, found.last_number, take.entries) == (1, 1, [])


def test_an_answer_under_way_is_shown_and_read_again_the_next_time(tmp_path: Path) -> None:
    first = encode_line(JournalRecord(at=AT, partial=[{"type": "text", "text": "half "}]))
    second = encode_line(JournalRecord(at=AT, partial=[{"type": "text", "text": "an"}]))
    path = journal(tmp_path / "j", first, second)
    take = Taken()

    found = read_journal_tail(path, row(last_number=4, message_count=4), take)

    assert found is not None
    assert (found.partial, found.journal_read) == (1, 0)
    assert take.entries == [IndexEntry(5, "assistant", AT, UNDER_WAY, "half an")]
    done = encode_line(
        JournalRecord(
            at=AT,
            message=msgspec.Raw(encode_json(numbered(5, " answer", "assistant"))),
            continues=True,
        )
    )
    take = Taken(4)
    found = read_journal_tail(journal(path, first, second, done), row(last_number=4, message_count=4), take)
    assert found is not None
    assert (found.partial, found.message_count) == (0, 5)
    assert take.texts == [(5, None, "half an answer")]
    assert found.journal_read == path.stat().st_size


def test_a_call_is_shown_when_it_is_finished(tmp_path: Path) -> None:
    def record(**fields: object) -> bytes:
        return encode_line(JournalRecord(at=AT, call=msgspec.Raw(encode_json(fields))))

    started = record(id="c1", name="ls", args={"path": "."}, timestamp=AT, messageId=1, status="running")
    ended = record(id="c1", status="ok", result={"llmContent": "done"})
    take = Taken()
    found = read_journal_tail(journal(tmp_path / "j", started), row(), take)
    assert found is not None
    assert (found.journal_read, take.entries) == (0, [])
    found = read_journal_tail(journal(tmp_path / "j", started, ended), row(), take)
    assert found is not None
    assert take.texts == [(1, "c1", "ls .\ndone")]
    assert found.journal_read == len(started + ended)
    assert read_journal_tail(journal(tmp_path / "j", ended), row(), take) is None
    assert read_journal_tail(journal(tmp_path / "j", ended), row()) is not None


@pytest.mark.parametrize("line", [b"nonsense\n", b"\xff\n", b'{"at":"t","message":5}\n'])
def test_a_tail_that_cannot_be_told_is_read_with_all_the_rest(tmp_path: Path, line: bytes) -> None:
    assert read_journal_tail(journal(tmp_path / "j", line), row()) is None


def test_a_row_of_what_cannot_or_was_not_read(home: Home) -> None:
    session_id = home.recorded("one")
    stamp = read_stamp([home.sessions], session_id)
    assert stamp is not None

    refused = make_unreadable_row(home.document(session_id), session_id, "Permission denied")
    assert (refused.damaged, refused.message_count, refused.title) == ("Permission denied", 0, "")
    assert (refused.last_number, refused.partial, refused.token_count, refused.archived) == (0, 0, 0, 0)
    unread = make_unread_row(stamp, session_id)
    assert (unread["title"], unread["damaged"], unread["stamp"]) == (UNREAD_TITLE, None, "")
    assert unread["session_id"] == session_id
    written = datetime.fromtimestamp(home.document(session_id).stat().st_mtime, UTC)
    assert unread["last_activity"][:19] == written.isoformat()[:19]


def test_a_writer_knows_its_row(home: Home) -> None:
    writer = home.files.create({"sessionId": "aaaa0000-0000-4000-8000-000000000001", "startTime": AT, "model": "m"})
    writer.record_message(AT, numbered(1, "one"), 3)

    found = make_writer_row(writer)

    assert (found.message_count, found.last_number, found.token_count, found.model) == (1, 1, 3, "m")
    assert found.journal_read == writer.journal_size > 0
    assert found.start_time == AT
    writer.abandon()


def test_only_the_changed_part_is_read(home: Home) -> None:
    session_id = home.recorded("one")
    stamp = read_stamp([home.sessions], session_id)
    assert stamp is not None
    whole = read_changes(stamp, session_id, None, None)
    assert whole == read_session(home.sessions, session_id)
    lie = row(message_count=41, last_number=1)._asdict()
    held = lie | {"stamp": stamp.text, "text_stamp": "", "text_number": 1, "text_read": 0, "damaged": None}

    take = Taken(1)
    assert read_changes(stamp, session_id, held, take).message_count == 41, "listed already: only what follows is read"
    assert take.entries == []
    take = Taken()
    assert read_changes(stamp, session_id, held | {"damaged": "x"}, take).message_count == 1
    home.journal(session_id).write_bytes(encode_line(JournalMessage(at=AT, message=numbered(2, "two"))))
    grown = read_stamp([home.sessions], session_id)
    assert grown is not None
    known = f"{grown.document_text}|{grown.journal_inode},0,0"
    assert read_changes(grown, session_id, held | {"stamp": known}, None).message_count == 42
    both = held | {"stamp": known, "text_stamp": known}
    take = Taken(1)
    assert read_changes(grown, session_id, both, take).message_count == 42
    assert take.texts == [(2, None, "two")]
    take = Taken()
    assert read_changes(grown, session_id, both | {"stamp": "other"}, take).message_count == 2
    assert [number for number, _, _ in take.texts] == [1, 2]


def test_a_message_is_found_by_what_was_said_and_thought() -> None:
    message = Message(role="assistant", parts=(ThinkingPart(text="hm"), TextPart(text="yes")), timestamp=AT, id=4)

    assert make_message_entry(message) == IndexEntry(4, "assistant", AT, None, "yes\nhm")
    assert make_message_entry(numbered(1, "x" * 200_005)).text == "x" * 200_000


def test_a_call_is_found_by_its_name_arguments_and_result() -> None:
    record = ToolCallRecord(
        id="c1",
        name="edit",
        args={"path": "a.py", "line": 3, "text": "new"},
        timestamp=AT,
        result=RecordedResult(llm_content="done"),
        message_id=2,
        status="ok",
    )

    assert make_call_entry(record) == IndexEntry(2, "tool", AT, "c1", "edit a.py\nnew\ndone")
    without = make_call_entry(msgspec.structs.replace(record, result=None, args={}))
    assert without is not None
    assert without.text == "edit \n"
    assert make_call_entry(msgspec.structs.replace(record, status="running")) is None
    assert make_call_entry(None) is None


def test_how_far_a_long_session_was_read_is_told_now_and_then(tmp_path: Path) -> None:
    messages = [encode_json(numbered(number, "x")) for number in range(1, 2_051)]
    calls = [encode_json(call(f"c{number}", result="y", message_id=number)) for number in (1, 2)]
    (tmp_path / "s.json").write_bytes(b"".join(layout.iter_document({"sessionId": "s"}, messages, calls)))
    told: list[int] = []
    take = EntryIndexer(connect_in_memory(), {"id": 1, "text_number": 0}, None, told.append)

    line = read_session(tmp_path, "s", take)

    size = (tmp_path / "s.json").stat().st_size
    assert len(told) == 2
    assert 0.4 * size < told[0] < 0.6 * size < told[1] <= size
    assert (line.message_count, line.last_number, take.last_numbers, take.late) == (2_050, 2_050, (0, 2), False)
    assert read_session(tmp_path, "s") == line
