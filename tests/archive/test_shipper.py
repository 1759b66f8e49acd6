"""The shipper: killed, cut off and started again, it stores everything once; it follows others and keeps leases."""

import asyncio
import contextlib
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

from ollm.archive.shipper import ArchiveShipper
from ollm.archive.team_archive import MIN_SHARED_SESSIONS, PushReport, TeamArchive
from ollm.domain.messages import Message, TextPart
from tests.daemon.running import daemon
from tests.servers.archive_machine import AT, ArchiveMachine, MakeMachine, stop_shippers
from tests.servers.postgres import PostgresServer, require_postgres
from tests.sizes import size

WAIT_SECONDS = 120
KILLS = size(2, 20)
SESSIONS = size(2, 40)
MESSAGES = size(12, 30)
WATCH = ("push", "--watch", "--linger", "0.2")


def wait_until(is_true: Callable[[], object]) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while not is_true():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


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
        for number in range(MIN_SHARED_SESSIONS + 2):
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
