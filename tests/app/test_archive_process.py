"""Turns and the archive: sent afterwards by a process of its own, never waited for, and refused where another goes on."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from ollm.app.archive_process import ArchiveProcess, is_process_alive
from ollm.domain.errors import BusyError
from tests.cli.running import Runner, running
from tests.servers.archive_machine import ArchiveMachine, MakeMachine
from tests.servers.postgres import free_port

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


@pytest.mark.parametrize(("pid", "alive"), [(os.getpid(), True), (2**22 + 12345, False)], ids=["own", "none"])
def test_a_process_is_alive_or_not(pid: int, alive: bool) -> None:
    assert is_process_alive(pid) is alive
