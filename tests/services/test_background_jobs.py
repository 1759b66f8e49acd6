"""Commands that are waited for, and commands that go on by themselves."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ollm.services.background_jobs import BackgroundJobs
from ollm.system.processes import ProcessCommand, ProcessHost
from tests.open_files import count_open_files

WAIT_SECONDS = 30


@pytest.fixture
async def host() -> AsyncIterator[ProcessHost]:
    made = ProcessHost()
    yield made
    await made.close()


@pytest.fixture
async def jobs(host: ProcessHost) -> AsyncIterator[BackgroundJobs]:
    made = BackgroundJobs(host, most=2)
    yield made
    await made.close()


def command(line: str, tmp_path: Path, *, terminal: bool = False) -> ProcessCommand:
    return ProcessCommand(
        argv=("/bin/sh", "-c", line),
        cwd=tmp_path,
        environment={"PATH": "/usr/bin:/bin"},
        terminal=terminal,
    )


async def wait_until(condition: object) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.01)


async def test_a_command_that_cannot_start_leaves_nothing_open(jobs: BackgroundJobs, tmp_path: Path) -> None:
    missing = ProcessCommand(argv=("/nowhere/at/all",), cwd=tmp_path, environment={})

    async def count_open() -> int:
        with pytest.raises(Exception):  # noqa: B017 - whatever the host says
            await jobs.start(missing, "x")
        return count_open_files()

    before = await count_open()
    assert await count_open() <= before


async def test_commands_that_were_released_ended_or_cancelled_leave_nothing_open(
    jobs: BackgroundJobs, tmp_path: Path
) -> None:
    async def count_open() -> int:
        released = await jobs.start(command("true", tmp_path), "x")
        await released.wait(WAIT_SECONDS, None, None)
        await wait_until(lambda: released.process.gone)
        jobs.release_job(released)
        assert released.take_output() == ""
        ended = await jobs.start(command("sleep 60", tmp_path), "x")
        await ended.end()
        cancelled = await jobs.start(command("sleep 60", tmp_path), "x")
        await cancelled.cancel(0.25)
        await wait_until(lambda: cancelled.process.gone)
        return count_open_files()

    before = await count_open()
    assert await count_open() <= before


async def test_waiting_for_silence_takes_no_time_of_the_processor(jobs: BackgroundJobs, tmp_path: Path) -> None:
    job = await jobs.start(command("echo begun; sleep 60", tmp_path), "x")
    await wait_until(lambda: job.take_output() == "begun\n")
    before = time.process_time()

    assert await job.wait(WAIT_SECONDS, 0.4, None) == "idle"

    assert time.process_time() - before < 0.2
    await job.end()
