"""Sending sessions to the archive."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
from ollm.archive.shipper import ArchiveShipper
from ollm.archive.team_archive import PushReport, TeamArchive
from ollm.domain.errors import DeniedError
from ollm.domain.messages import Message, TextPart
from ollm.store.session_index.entries import IndexEntry
from tests.daemon.running import daemon
from tests.servers.archive_machine import AT, ArchiveMachine, MakeMachine, make_call, stop_shippers
from tests.servers.postgres import PostgresServer, require_postgres
from tests.sizes import size

SESSION = "00000000-0000-4000-8000-000000000001"

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

        assert sender.seq == 5
        assert sender.list_digests() == {one.name: one.digest for one in (record(1), record(2, b'{"new": 1}'))}
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
def test_many_sessions_are_sent_each_once(machine: MakeMachine, archive_url: str) -> None:
    laptop, reader = machine("laptop", redact=False), machine("reader", redact=False)
    names = {laptop.record(f"Question {number}", f"Answer {number}") for number in range(12)}
    forgotten = min(names)
    with psycopg.connect(archive_url, autocommit=True) as connection:
        connection.execute("INSERT INTO ollm.deletions (session_id, owner) VALUES (%s, 'postgres')", (forgotten,))
        laptop.run("push", "--json", code=1)
        rows = connection.execute("SELECT session_id::text, count(*) FROM ollm.records GROUP BY 1").fetchall()

    assert f"Session {forgotten} was deleted from the archive" in laptop.said
    names.remove(forgotten)
    assert dict(rows) == dict.fromkeys(names, 3)
    assert laptop.json("status")["unsentSessions"] == 0
    for name in names:
        reader.run("pull", name)
        assert reader.document(name) == laptop.document(name)


WAIT_SECONDS = 120

KILLS = size(2, 20)

SESSIONS = size(2, 40)

MESSAGES = size(12, 30)

WATCH = ("push", "--watch", "--linger", "0.2")


def wait_until(is_true: Callable[[], object]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not is_true():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.2)


def start(machine: ArchiveMachine, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "ollm", "archive", *words],
        env={**os.environ, **machine.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def count(url: str, query: str = "SELECT count(*) FROM ollm.records") -> int:
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url, connect_timeout=5) as connection:
        row = connection.execute(query.encode()).fetchone()
        return int(row[0]) if row else 0
    return -1


def check_everything_is_there_once(machine: ArchiveMachine, url: str, reader: ArchiveMachine) -> None:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT s.session_id::text, s.last_seq, count(*), count(DISTINCT (kind, key)), max(seq)"
            " FROM ollm.sessions AS s JOIN ollm.records USING (session_id)"
            " WHERE s.session_id = ANY(%s::uuid[]) GROUP BY 1, 2",
            (list(machine.ids()),),
        ).fetchall()
    assert {row[0] for row in rows} == machine.ids()
    for session_id, last, records, names, newest in rows:
        assert records == names
        assert newest == last
        reader.run("pull", session_id)
        assert reader.document(session_id) == machine.document(session_id)


def record_many(machine: ArchiveMachine, sessions: int = SESSIONS) -> None:
    for number in range(sessions):
        machine.record(*(f"session {number} message {place} " + "word " * 6000 for place in range(MESSAGES)))


def test_a_push_that_is_killed_again_and_again_stores_everything_once(shipping_root: Path, archive_url: str) -> None:
    laptop, reader = (ArchiveMachine(shipping_root / name, archive_url, redact=False) for name in ("laptop", "reader"))
    record_many(laptop)
    for kill in range(KILLS):
        process = start(laptop, "push")
        wanted = (MESSAGES + 1) * SESSIONS * (kill + 1) // (KILLS + 1)
        wait_until(lambda: count(archive_url) >= wanted or process.poll() is not None)  # noqa: B023
        process.kill()
        process.wait()

    laptop.run("push")

    check_everything_is_there_once(laptop, archive_url, reader)


def test_what_is_written_during_a_long_push_is_sent_before_the_end(
    machine: MakeMachine, archive_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = machine("laptop")
    laptop.record("There from the start")
    archive = TeamArchive(laptop.process)
    send = archive.push

    def push_slowly(*arguments: Any) -> PushReport:
        report = send(*arguments)
        if len(laptop.ids()) == 1:
            laptop.record("Written meanwhile")
        return report

    monkeypatch.setattr(archive, "push", push_slowly)
    ArchiveShipper(archive, linger=0).run()

    assert count(archive_url, "SELECT count(*) FROM ollm.sessions") == 2


class CuttingProxy:
    """Passes bytes to a server, and cuts every connection after so many; 0: never."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut_after = 0
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(source, target, client), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, client: socket.socket) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                passed += len(data)
                if source is client and self.cut_after and passed > self.cut_after:
                    self.cuts += 1
                    break
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()


def test_a_network_that_is_cut_loses_nothing(shipping_root: Path, archive_url: str, postgres: PostgresServer) -> None:
    proxy = CuttingProxy(postgres.port)
    laptop = ArchiveMachine(
        shipping_root / "laptop", archive_url.replace(str(postgres.port), str(proxy.port)), redact=False, push="live"
    )
    reader = ArchiveMachine(shipping_root / "reader", archive_url, redact=False)
    record_many(laptop, 2)
    proxy.cut_after = 200_000
    shipper = start(laptop, *WATCH)
    wait_until(lambda: proxy.cuts >= 2)
    proxy.cut_after = 0

    assert shipper.wait(WAIT_SECONDS) == 0

    proxy.close()
    check_everything_is_there_once(laptop, archive_url, reader)


@pytest.fixture
def mortal() -> Iterator[PostgresServer]:
    server = PostgresServer(require_postgres())
    yield server
    server.stop()


def test_a_server_that_is_killed_comes_back_to_what_was_confirmed(shipping_root: Path, mortal: PostgresServer) -> None:
    url = mortal.create_database()
    laptop = ArchiveMachine(shipping_root / "laptop", url, redact=False, push="live")
    reader = ArchiveMachine(shipping_root / "reader", url, redact=False)
    record_many(laptop, 2)
    laptop.run("setup")
    shipper = start(laptop, *WATCH)
    wait_until(lambda: count(url) > 0 or shipper.poll() is not None)

    mortal.kill()
    mortal.start()

    assert shipper.wait(WAIT_SECONDS) == 0
    check_everything_is_there_once(laptop, url, reader)


SLOWLY = """
CREATE FUNCTION public.wait_a_little() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END $$;
CREATE TRIGGER slow AFTER INSERT ON ollm.records FOR EACH STATEMENT EXECUTE FUNCTION public.wait_a_little();
"""


@pytest.mark.skipif(not size(0, 1), reason="starts four daemons and a second server; one of each dies in the usual run")
async def test_two_daemons_and_the_server_killed_in_mid_push_lose_nothing(
    shipping_root: Path, mortal: PostgresServer
) -> None:
    """Each daemon is killed with the process that sends for it, both start again, and then the server dies."""
    url = mortal.create_database()
    machines = [
        ArchiveMachine(shipping_root / name / ".ollm", url, redact=False, push="live") for name in ("laptop", "desktop")
    ]
    machines[0].run("setup")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SLOWLY)
    for machine in machines:
        for number in range(10):
            machine.record(f"{machine.home} {number} " + "word " * 6000, "An answer")
    everything = sum(len(machine.ids()) for machine in machines)

    async with daemon(machines[0].home.parent) as laptop, daemon(machines[1].home.parent) as desktop:
        for found, machine in zip((laptop, desktop), machines, strict=True):
            sent = "SELECT count(*) FROM ollm.sessions WHERE session_id = ANY('{" + ",".join(machine.ids()) + "}')"
            await asyncio.to_thread(wait_until, lambda: count(url, sent) >= 2)  # noqa: B023
            assert await found.end(signal.SIGKILL) == -signal.SIGKILL
            stop_shippers(machine.home)
            await found.start()
        await asyncio.to_thread(
            wait_until, lambda: count(url, "SELECT count(*) FROM ollm.sessions") > len(machines[0].ids())
        )
        mortal.kill()
        mortal.start()
        for machine in machines:
            await asyncio.to_thread(wait_until, lambda: machine.json("status")["unsentSessions"] == 0)  # noqa: B023

    for machine in machines:
        check_everything_is_there_once(machine, url, ArchiveMachine(shipping_root / "reader", url, redact=False))
    assert count(url, "SELECT count(*) FROM ollm.sessions") == everything


def test_an_open_session_is_leased_sent_live_and_seen_by_the_other_machine(
    shipping_root: Path, archive_url: str
) -> None:
    laptop, desktop = (ArchiveMachine(shipping_root / name, archive_url, push="live") for name in ("laptop", "desktop"))
    keeper = subprocess.Popen(["sleep", "600"])

    async def talk() -> None:
        recording = laptop.process.create_recording_service(lambda event: None)
        session = await recording.create_session("tiny", "ollama")
        await recording.record_message(session, Message(role="user", parts=(TextPart("First"),), timestamp=AT))
        first = start(laptop, *WATCH)
        wait_until(lambda: count(archive_url, "SELECT count(*) FROM ollm.leases") == 1)
        assert start(laptop, *WATCH).wait(WAIT_SECONDS) == 0  # a second one has nothing to do
        assert first.poll() is None
        desktop.run("pull", session, code=1)
        assert "is in use on" in desktop.warned
        assert desktop.json("list")[0]["inUse"]
        desktop.run("pull", session, "--fork")

        with psycopg.connect(archive_url, autocommit=True) as connection:  # as if it had been pulled before
            connection.execute("UPDATE ollm.leases SET seen = now() - interval '1 hour'")
        desktop.run("pull", session)
        second = start(desktop, *WATCH, "--keeper", str(keeper.pid))
        await recording.record_message(session, Message(role="assistant", parts=(TextPart("Second"),), timestamp=AT))
        wait_until(lambda: b"Second" in desktop.document(session))
        await recording.close_session(session)

        wait_until(lambda: count(archive_url, "SELECT count(*) FROM ollm.leases") == 0)
        assert first.wait(WAIT_SECONDS) == 0
        second.send_signal(signal.SIGKILL)
        second.wait()
        assert desktop.document(session) == laptop.document(session)

    try:
        asyncio.run(talk())
    finally:
        keeper.kill()
        keeper.wait()
        stop_shippers(shipping_root)
