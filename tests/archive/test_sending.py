"""Sending sessions: each record once, in order, over two connections, in little memory."""

import contextlib
import json
import os
import subprocess
import sys

import psycopg
import pytest

from ollm.archive.connection import ArchiveTarget, open_connection
from ollm.archive.reading import open_records
from ollm.archive.sending import (
    ArchivedHead,
    ArchiveRecord,
    Machine,
    SessionMovedOnError,
    SessionSender,
    make_batches,
)
from ollm.archive.team_archive import MIN_SHARED_SESSIONS
from ollm.domain.errors import DeniedError
from ollm.store.session_index.texts import IndexEntry
from tests.servers.archive_machine import MakeMachine, make_call
from tests.sizes import size

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
        assert (sender.seq, sender.count_keys(), [key for _, key in sorted(sender.list_digests())]) == (
            5,
            2,
            ["1", "2"],
        )
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
        assert [key for _, key in sorted(second.list_digests())] == ["1", "2"]


def test_a_message_that_is_gone_here_is_gone_there(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("One", "Two", "Three", calls=(make_call("c1", "x"),))
    laptop.run("push")
    path = laptop.home / "sessions" / f"{session}.json"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(
        b"\n".join(line for line in lines if b'"Three"' not in line).replace(b'},\n],"tool', b'}\n],"tool')
    )

    laptop.run("push")
    desktop.run("pull", session)

    assert desktop.document(session) == laptop.document(session)
    assert b"Three" not in desktop.document(session)
    assert desktop.json("search", "three") == []


def test_a_lost_state_file_sends_nothing_twice(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    laptop.record("One", "Two")
    laptop.run("push")
    state = laptop.process.home.archive_state
    machine_id = state.read_bytes()
    laptop.record("Three")
    laptop.run("push")
    state.write_bytes(machine_id)  # as a back-up had it

    assert laptop.json("push") == {"sessions": 0, "records": 0, "unchanged": 1, "deleted": 0, "skipped": {}}


def test_a_machine_that_forgot_what_it_sent_goes_on_with_its_own_and_never_over_others(machine: MakeMachine) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    mine, both = laptop.record("One", "Two"), laptop.record("Shared")
    laptop.run("push")
    desktop.run("pull", both)
    desktop.go_on(both, "From the desktop")
    desktop.run("push")
    for path in laptop.home.glob("archive.db*"):
        path.unlink()
    laptop.go_on(mine, "Three")

    report = json.loads(laptop.run("push", "--json", code=1))

    assert (report["sessions"], list(report["skipped"])) == (1, [both])
    assert "Three" in desktop.json("search", "three")[0]["snippet"]
    assert "desktop" in desktop.json("search", "desktop")[0]["snippet"]


def test_turning_redaction_off_sends_the_session_as_it_is(machine: MakeMachine, archive_url: str) -> None:
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("password=hunter2hunter2")
    laptop.run("push")

    laptop.configure(url=archive_url, redact=False)
    laptop.run("push")
    desktop.run("pull", session)

    assert "secrets NOT redacted" in laptop.warned
    assert desktop.document(session) == laptop.document(session)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_large_session_is_sent_in_little_memory(machine: MakeMachine) -> None:
    laptop = machine("laptop", redact=False)
    session = laptop.record("Begin")
    path = laptop.home / "sessions" / f"{session}.json"
    lines = "".join(
        f',\n{{"role":"user","id":{number},"parts":[{{"type":"text","text":"{"x" * 100_000}"}}],"timestamp":""}}'
        for number in range(2, size(150, 400))
    )
    path.write_text(path.read_text().replace('\n],"toolCalls"', lines + '\n],"toolCalls"'))
    code = (
        "import sys; from ollm.cli.entry import main; main(['archive', 'push']);"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    )
    environment = {**os.environ, **laptop.environment}

    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert int(done.stdout.split()[-1]) < 120_000  # kilobytes; the session has 15,000, or 40,000
    assert laptop.json("list")[0]["messageCount"] == size(149, 399)


# The first batch waits until two connections of ours are there, and fails when they do not come.
WAIT_FOR_TWO = """
CREATE TABLE public.both_came (at timestamptz);
CREATE FUNCTION public.wait_for_two() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    FOR attempt IN 1..500 LOOP
        PERFORM pg_stat_clear_snapshot();
        IF EXISTS (SELECT FROM public.both_came) OR (SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'ollm') = 2
        THEN
            INSERT INTO public.both_came VALUES (now());
            RETURN NULL;
        END IF;
        PERFORM pg_sleep(0.1);
    END LOOP;
    RAISE EXCEPTION 'it stayed alone';
END $$;
CREATE TRIGGER wait AFTER INSERT ON ollm.records FOR EACH STATEMENT EXECUTE FUNCTION public.wait_for_two();
"""


def test_many_sessions_are_sent_over_two_connections_each_once(machine: MakeMachine, archive_url: str) -> None:
    laptop, reader = machine("laptop", redact=False), machine("reader", redact=False)
    names = {laptop.record(f"Question {number}", f"Answer {number}") for number in range(MIN_SHARED_SESSIONS + 4)}
    forgotten = min(names)
    with psycopg.connect(archive_url, autocommit=True) as connection:
        connection.execute("INSERT INTO ollm.deletions (session_id, owner) VALUES (%s, 'postgres')", (forgotten,))
        connection.execute(WAIT_FOR_TWO)
        laptop.run("push", "--json", code=1)
        rows = connection.execute("SELECT session_id::text, count(*) FROM ollm.records GROUP BY 1").fetchall()

    assert f"Session {forgotten} was deleted from the archive" in laptop.said
    names.remove(forgotten)
    assert dict(rows) == dict.fromkeys(names, 3)
    assert laptop.json("status")["unsentSessions"] == 0
    for name in names:
        reader.run("pull", name)
        assert reader.document(name) == laptop.document(name)
