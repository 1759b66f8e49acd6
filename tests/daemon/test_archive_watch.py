"""The daemon's look at the team archive: others' sessions are listed, and the sender that was killed is there again."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

from ollm.daemon.server import ArchiveWatch
from ollm.system.locks import read_owner
from tests.daemon.running import daemon
from tests.servers.archive_machine import ArchiveMachine, MakeMachine


async def wait_until(found: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not found():
            await asyncio.sleep(0.02)


async def test_a_daemon_that_never_sent_anything_lists_what_others_have(tmp_path: Path, archive_url: str) -> None:
    desktop, laptop = ArchiveMachine(tmp_path / "desktop", archive_url), ArchiveMachine(tmp_path / ".ollm", archive_url)
    theirs = desktop.record("The desktop's question")
    desktop.run("push")

    async with daemon(tmp_path) as found, asyncio.timeout(120):
        while not (rows := (await found.ask("GET", "/sessions")).json):
            await asyncio.sleep(0.05)

    assert [(row["sessionId"], row["archive"]["owner"]) for row in rows] == [(theirs, "postgres")]
    assert laptop.ids() == set()


async def test_what_is_sent_is_said_the_list_is_new_and_a_killed_sender_is_started_again(
    shipping_root: Path, archive_url: str, machine: MakeMachine
) -> None:
    laptop, desktop = ArchiveMachine(shipping_root / "laptop", archive_url, push="live"), machine("desktop")
    laptop.record("The laptop's question")
    lock = laptop.home / "run" / "archive.lock"
    watch = ArchiveWatch({**os.environ, **laptop.environment}, pause=0.2)
    watch.start()
    try:
        await wait_until(lambda: read_owner(lock) is not None)
        assert "first push: 1 session " in (laptop.home / "run" / "archive.trouble").read_text()
        first = (read_owner(lock) or {})["pid"]
        os.kill(first, signal.SIGKILL)
        await wait_until(lambda: (read_owner(lock) or {"pid": first})["pid"] != first)
        laptop.configure(url=archive_url, push="off")
        os.kill((read_owner(lock) or {})["pid"], signal.SIGKILL)
        theirs = desktop.record("Said later")
        desktop.run("push")
        await wait_until(lambda: theirs in (laptop.home / "archive.db").read_bytes().decode("latin-1"))
    finally:
        watch.stop()
