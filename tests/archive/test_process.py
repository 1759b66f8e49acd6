"""Turns, deletions and forks with an archive: sent by a process of its own, never waited for."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from ollm.app.process import ProcessScope
from ollm.archive.process import ArchiveProcess
from ollm.domain.errors import BusyError
from tests.cli.running import Runner, running
from tests.servers.archive_machine import ArchiveMachine, MakeMachine
from tests.servers.postgres import PostgresServer, free_port

WAIT_SECONDS = 90


async def wait_until(is_true: Callable[[], object]) -> None:
    """For the effect, however long a busy machine takes."""
    until = time.monotonic() + WAIT_SECONDS
    while not is_true():
        assert time.monotonic() < until, "it did not happen"
        await asyncio.sleep(0.1)


def set_up(runner: Runner, url: str, **settings: object) -> ArchiveMachine:
    return ArchiveMachine(runner.home, url, **settings)


def count(url: str, query: str = "SELECT count(*) FROM ollm.messages") -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    return int(row[0]) if row else 0


async def test_a_closed_session_is_sent_by_itself_and_the_first_time_is_said(
    shipping_root: Path, archive_url: str
) -> None:
    async with running(shipping_root, ["Hello, you.", "Again."]) as runner:
        set_up(runner, archive_url, push="on-close").ollm("sessions", "list")
        first = await runner.run("-p", "Say hello", "-o", "stream-json")
        second = await runner.run("-p", "Say it again", "-o", "stream-json")

        await wait_until(lambda: count(archive_url) == 4)

    notices = [
        [event for event in map(json.loads, done.out.splitlines()) if event["type"] == "notice"]
        for done in (first, second)
    ]
    assert [["first push" in notice["text"] for notice in told] for told in notices] == [[True], []]


async def test_nothing_of_the_archive_is_imported_by_a_turn(shipping_root: Path, archive_url: str) -> None:
    async with running(shipping_root, ["Hello, you.", "Again."]) as runner:
        set_up(runner, archive_url, push="live")
        await runner.run("-p", "Say hello")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-X", "importtime", "-m", "ollm", "-p", "Say hello"),
            env=runner.environment(),
            cwd=runner.workspace,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, imported = await process.communicate()

    assert process.returncode == 0
    assert b"ollm.runtime.turn" in imported
    assert b"psycopg" not in imported
    assert b"team_archive" not in imported


async def test_no_server_is_waited_for(shipping_root: Path) -> None:
    async with running(shipping_root, ["Hello, you."]) as runner:
        machine = set_up(runner, f"postgresql://me@127.0.0.1:{free_port()}/none", push="live")
        done = await runner.run("-p", "Say hello", "--debug")

        assert (done.code, done.out) == (0, "Hello, you.\n")
        await wait_until(lambda: machine.run("status", "--json", code=1) and json.loads(machine.said)["lastError"])
    assert "Cannot reach" in json.loads(machine.said)["lastError"]
    assert json.loads(machine.said)["unsentSessions"] == 1


async def test_without_an_archive_no_process_is_started(shipping_root: Path) -> None:
    async with running(shipping_root, ["Hello, you."]) as runner:
        await runner.run("-p", "Say hello")

        assert not (runner.home / "archive.db").exists()
        assert not list((runner.home / "run").glob("archive.*")) if (runner.home / "run").exists() else True


async def test_a_session_that_went_on_elsewhere_or_is_open_there_is_not_resumed(
    shipping_root: Path, archive_url: str
) -> None:
    desktop = ArchiveMachine(shipping_root / "desktop", archive_url)
    async with running(shipping_root, ["One.", "Two.", "Three."]) as runner:
        laptop = set_up(runner, archive_url)
        await runner.run("-p", "Begin")
        (session,) = laptop.ids()
        laptop.run("push")
        laptop.configure(url=archive_url, push="live")
        desktop.run("pull", session)
        desktop.run("status", session, "--take")

        held = await runner.run("-p", "Go on", "--session", session)
        assert held.code == 1
        assert "is in use on" in held.err
        assert "--fork" in held.err

        with psycopg.connect(archive_url, autocommit=True) as connection:
            connection.execute("DELETE FROM ollm.leases")
        desktop.go_on(session, "Said on the desktop")
        desktop.run("push")
        laptop.configure(url=archive_url)
        stale = await runner.run("-p", "Go on", "--session", session)
        assert stale.code == 1
        assert "was continued on" in stale.err

        laptop.run("pull", session)
        laptop.configure(url=archive_url, push="live")
        done = await runner.run("-p", "Go on", "--session", session)
        assert done.code == 0, done.err
        await wait_until(lambda: count(archive_url) == 5)


async def test_a_session_of_the_archive_is_resumed_by_its_id(shipping_root: Path, archive_url: str) -> None:
    desktop = ArchiveMachine(shipping_root / "desktop", archive_url)
    session = desktop.record("The answer is 42.")
    desktop.run("push")
    async with running(shipping_root, ["I know."]) as runner:
        laptop = set_up(runner, archive_url)
        laptop.record("Something else")
        laptop.run("push")
        assert session in laptop.ollm("sessions", "list", "--json")

        done = await runner.run("-p", "What was it?", "--session", session[:8])

        assert done.code == 0, done.err
        assert "The answer is 42." in str(runner.server.chats[0]["messages"])


def test_a_session_that_is_in_use_elsewhere_is_refused_as_busy(machine: MakeMachine, tmp_path: Path) -> None:
    desktop, laptop = machine("desktop"), machine("laptop")
    session = desktop.record("The desktop's question")
    desktop.run("push")
    desktop.run("status", session, "--take")

    with pytest.raises(BusyError, match="is in use on") as refused:
        ArchiveProcess(laptop.process).pull(session, tmp_path)

    assert refused.value.action.endswith("--fork`.")


def test_trouble_is_told_once(tmp_path: Path, archive_url: str) -> None:
    shipping = ArchiveProcess(ArchiveMachine(tmp_path, archive_url).process)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "archive.trouble").write_text("It went on elsewhere.")

    assert (shipping.take_trouble(), shipping.take_trouble()) == ("It went on elsewhere.", "")


def test_a_deleted_session_is_deleted_there_with_the_next_push(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    session, other = laptop.record("Delete me"), laptop.record("Keep me")
    laptop.run("push")

    said = laptop.ollm("sessions", "delete", session, "--yes")

    assert "next `ollm archive push` deletes what you have of it" in said
    assert laptop.json("status")["deletionsWaiting"] == 1
    assert "1 session deleted here" in laptop.run("status")
    assert laptop.run("push") == "Deleted 1 session there.\n"
    assert [row["sessionId"] for row in laptop.json("list")] == [other]
    assert laptop.json("status")["deletionsWaiting"] == 0


def test_a_tombstone_outlives_a_server_that_is_away(machine: MakeMachine, archive_url: str) -> None:
    laptop = machine("laptop")
    session = laptop.record("Delete me")
    laptop.run("push")
    laptop.configure(url=f"postgresql://me@127.0.0.1:{free_port()}/none")

    laptop.ollm("sessions", "clear", "--all", "--yes")
    laptop.run("push", code=1)
    laptop.configure(url=archive_url)

    assert laptop.json("list")[0]["sessionId"] == session
    assert laptop.json("push")["deleted"] == 1
    assert laptop.json("list") == []


def test_kept_copies_are_said_at_each_delete(machine: MakeMachine) -> None:
    laptop = machine("laptop", deletes="keep")
    session = laptop.record("Keep my copy")
    laptop.run("push")

    assert "stay (archive.deletes: keep)" in laptop.ollm("sessions", "delete", session, "--yes")

    laptop.run("push")
    assert [row["sessionId"] for row in laptop.json("list")] == [session]


def test_a_copy_of_another_persons_session_is_deleted_here_and_stays_theirs(
    machine: MakeMachine, archive_url: str, postgres: PostgresServer
) -> None:
    role = f"colleague_{uuid4().hex[:8]}"
    postgres.create_role(role)
    owner, guest = machine("owner"), machine("guest", url=archive_url.replace("postgres@", f"{role}@"))
    owner.run("setup", "--person", role, "--person", "postgres", "--team", "shop")
    session, mine = owner.record("Theirs"), guest.record("Mine")
    owner.run("push")
    guest.run("pull", session)
    guest.run("push")

    said = guest.ollm("sessions", "delete", session, "--yes")

    assert said.endswith("postgres's session stays in the archive and in lists; only postgres can delete it there.\n")
    assert guest.json("push")["deleted"] == guest.json("status")["deletionsWaiting"] == 0
    assert "☁ Theirs (postgres on" in guest.ollm("sessions", "list")
    guest.run("pull", session)
    assert "Theirs" in guest.ollm("sessions", "view", session)
    said = guest.ollm("sessions", "clear", "--all", "--yes")
    assert "deletes what you have of it in the archive. It was a copy: postgres's session stays" in said
    assert guest.json("push")["deleted"] == 1
    assert [row["sessionId"] for row in owner.json("list")] == [session] != [mine]


def test_what_the_limit_removes_stays_in_the_archive(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    session = laptop.record("Old")
    laptop.run("push")
    library = laptop.process.library

    library.delete_many([session], everywhere=False)

    assert laptop.json("push")["deleted"] == 0
    assert len(laptop.json("list")) == 1


def test_a_session_that_is_open_is_deleted_neither_here_nor_there(machine: MakeMachine) -> None:
    laptop = machine("laptop")
    session = laptop.record("Open")
    laptop.run("push")
    writer, _ = laptop.process.session_files.open(session)
    try:
        laptop.ollm("sessions", "delete", session, "--yes", code=1)
    finally:
        writer.abandon()

    laptop.run("push")
    assert len(laptop.json("list")) == 1


def test_without_an_archive_nothing_is_remembered(tmp_path: Path) -> None:
    home = ArchiveMachine(tmp_path / "home", "")
    session = home.record("Alone")

    assert ProcessScope({"OLLM_HOME": str(home.home)}).find_deletion_log() is None
    assert home.ollm("sessions", "delete", session, "--yes") == f"Deleted session {session}.\n"
    assert not (home.home / "archive.db").exists()


@pytest.fixture
def parted(machine: MakeMachine) -> tuple[ArchiveMachine, ArchiveMachine, str]:
    """A session that was continued on the desktop, where it was sent, and on the laptop."""
    laptop, desktop = machine("laptop"), machine("desktop")
    session = laptop.record("One", workspace="/srv/shop")
    laptop.run("push")
    desktop.run("pull", session)
    desktop.go_on(session, "From the desktop")
    desktop.run("push")
    laptop.go_on(session, "From the laptop")
    return laptop, desktop, session


def test_both_are_kept_and_every_machine_comes_to_the_same(
    parted: tuple[ArchiveMachine, ArchiveMachine, str],
) -> None:
    laptop, desktop, session = parted

    said = laptop.run("push", session[:8], "--fork")

    (fork,) = laptop.ids() - {session}
    assert f"as session {fork}" in said
    assert "From the laptop" in laptop.ollm("sessions", "view", fork)
    assert laptop.document(session) == desktop.document(session)
    assert "Nothing to send" in laptop.run("push")
    desktop.run("pull", fork)
    assert desktop.document(fork) == laptop.document(fork)
    head = json.loads(laptop.document(fork))["metadata"]
    assert (head["forkedFrom"]["sessionId"], head["workspace"]) == (session, "/srv/shop")


def test_the_session_stays_as_it_is_while_it_goes_on_elsewhere_and_follows_later(
    parted: tuple[ArchiveMachine, ArchiveMachine, str],
) -> None:
    laptop, desktop, session = parted
    desktop.run("status", session, "--take")

    said = laptop.run("push", session, "--fork")

    assert "stays as it is here" in said
    assert "is in use on" in said
    assert "From the laptop" in laptop.ollm("sessions", "view", session)
    assert "Nothing to send" in laptop.run("push")
    assert "From the desktop" not in laptop.ollm("sessions", "view", session)


def test_what_cannot_be_forked_is_said_and_left(parted: tuple[ArchiveMachine, ArchiveMachine, str]) -> None:
    laptop, _, session = parted
    laptop.run("push", "--fork", code=2)
    writer, _ = laptop.process.session_files.open(session)
    try:
        laptop.run("push", session, "--fork", code=1)
        assert "is open" in laptop.warned
    finally:
        writer.abandon()
    path = laptop.home / "sessions" / f"{session}.json"
    path.write_bytes(damaged := path.read_bytes()[:-30])
    laptop.run("push", session, "--fork", code=1)
    assert "check --repair" in laptop.warned
    assert path.read_bytes() == damaged
    assert laptop.ids() == {session}
