"""Sending: batches that fit into memory, and an interrupted one that leaves no half."""

import contextlib
from datetime import UTC, datetime

import pytest

from ollm.domain.errors import DeniedError
from ollm.store.session_index.texts import IndexEntry
from ollm.store.team_archive.connection import ArchiveTarget, open_connection
from ollm.store.team_archive.reading import open_records
from ollm.store.team_archive.records import ArchivedHead, ArchiveRecord
from ollm.store.team_archive.sending import (
    Machine,
    SessionMovedOnError,
    SessionSender,
    make_batches,
    parse_time,
)

SESSION = "00000000-0000-4000-8000-000000000001"
AT = "2026-01-27T10:00:00.000Z"
HEAD = ArchivedHead(
    title="T\0", model="m", workspace=None, origin=None, start_time=AT, last_activity=AT, message_count=1, token_count=1,
    redacted=True, damaged=None,
)  # fmt: skip


def record(number: int, body: bytes | None = b"{}") -> ArchiveRecord:
    entry = IndexEntry(number, "user", "no time", None, f"word{number} \0") if body else None
    return ArchiveRecord("message", str(number), body, number, entry)


def test_a_batch_is_bounded_by_bytes_and_by_number() -> None:
    small = list(make_batches(record(number) for number in range(501)))
    large = list(make_batches(record(number, b"x" * (1 << 19)) for number in range(5)))

    assert [len(batch) for batch in small] == [500, 1]
    assert [len(batch) for batch in large] == [2, 2, 1]


def test_a_record_is_replaced_by_its_newest_body_and_gone_when_it_has_none(archive_url: str) -> None:
    with contextlib.closing(open_connection(ArchiveTarget(url=archive_url))) as connection:
        sender = SessionSender(connection, SESSION, Machine(id="1", host="h"), 0)
        sender.begin()
        sender.send([record(1), record(2), record(3)], HEAD)
        sender.send([record(2, b'{"new": 1}')], HEAD)
        sender.send([record(3, None)], HEAD)

        assert sender.filter_new([record(1), record(2)]) == [record(2)]
        assert (sender.seq, sender.count_keys(), sorted(sender.list_keys("message"))) == (5, 2, ["1", "2"])
        with open_records(connection, SESSION) as found:
            assert [(kind, key, body) for kind, key, body, *_ in found] == [
                ("message", "1", b"{}"), ("message", "2", b'{"new": 1}'), ("message", "3", None),
            ]  # fmt: skip
        texts = connection.execute("SELECT number, text FROM ollm.messages ORDER BY 1").fetchall()
        assert texts == [(1, "word1 "), (2, "word2 ")]


def test_another_persons_session_cannot_be_written(archive_url: str) -> None:
    with contextlib.closing(open_connection(ArchiveTarget(url=archive_url))) as connection:
        connection.execute(
            "INSERT INTO ollm.sessions (session_id, owner, writer, host) VALUES (%s, 'somebody', '1', 'h')", (SESSION,)
        )

        with pytest.raises(DeniedError, match="another person"):
            SessionSender(connection, SESSION, Machine(id="1", host="h"), 0).begin()


def test_a_time_that_makes_no_sense_is_the_sessions() -> None:
    assert parse_time("no time", AT) == datetime(2026, 1, 27, 10, tzinfo=UTC)
    assert parse_time("no", "none").timestamp() == 0
    assert parse_time(AT, "no") == datetime(2026, 1, 27, 10, tzinfo=UTC)


def test_who_was_overtaken_by_another_machine_sends_nothing_more(archive_url: str) -> None:
    with contextlib.closing(open_connection(ArchiveTarget(url=archive_url))) as connection:
        first = SessionSender(connection, SESSION, Machine(id="1", host="here"), 0)
        first.begin()
        first.send([record(1)], HEAD)
        second = SessionSender(connection, SESSION, Machine(id="2", host="there"), first.seq)
        second.begin()
        second.send([record(2)], HEAD)

        with pytest.raises(SessionMovedOnError, match="there"):
            first.send([record(3)], HEAD)
        assert sorted(second.list_keys("message")) == ["1", "2"]
