"""Commands that are waited for, and commands that go on by themselves."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ollm.domain.errors import ToolFailure
from ollm.services.background_jobs import BackgroundJobs, Job
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


async def test_a_command_is_waited_for_and_heard(jobs: BackgroundJobs, tmp_path: Path) -> None:
    heard: list[str] = []
    job = await jobs.start(command("echo one; echo two >&2; exit 3", tmp_path), "the line")
    assert job.line == "the line"

    assert await job.wait(WAIT_SECONDS, None, heard.append) == "exited"

    assert job.exit_code == 3
    assert "".join(heard) == "one\ntwo\n" == job.take_output()
    assert job.take_output() == ""
    first = job.seconds
    await asyncio.sleep(0.02)
    assert job.seconds == first > 0
    jobs.release_job(job)


async def test_a_signal_is_told_as_shells_tell_it(jobs: BackgroundJobs, tmp_path: Path) -> None:
    job = await jobs.start(command("kill -9 $$", tmp_path), "x")

    await job.wait(WAIT_SECONDS, None, None)

    assert job.exit_code == 137
    assert 0 < job.seconds < WAIT_SECONDS


async def test_a_command_that_went_well_has_no_code(jobs: BackgroundJobs, tmp_path: Path) -> None:
    job = await jobs.start(command("true", tmp_path), "x")

    await job.wait(WAIT_SECONDS, None, None)

    assert job.exit_code == 0


async def test_time_runs_out_and_silence_too_while_it_runs_on(jobs: BackgroundJobs, tmp_path: Path) -> None:
    job = await jobs.start(command("echo begun; sleep 60", tmp_path), "x")

    assert await job.wait(None, 0.05, None) == "idle"
    assert await job.wait(0.05, None, None) == "timeout"
    assert await job.wait(0.05, 60, None) == "timeout"
    assert job.exit_code is None
    assert job.seconds > 0
    await job.end()
    assert job.exit_code is not None
    assert job.take_output().removesuffix("Terminated\n") == "begun\n"  # bash may have the time to say so


async def test_in_the_background_jobs_have_ids_and_a_limit(jobs: BackgroundJobs, tmp_path: Path) -> None:
    first = await jobs.start_background(command("sleep 60", tmp_path), "a")
    second = await jobs.start_background(command("sleep 60", tmp_path), "b")
    assert (first.id, second.id) == ("job-1", "job-2")
    assert jobs.get("job-1") is first

    with pytest.raises(ToolFailure, match="2 commands are already running in the background: job-1, job-2") as told:
        await jobs.start_background(command("true", tmp_path), "c")
    assert told.value.kind == "ValidationError"
    await jobs.stop("job-1")
    assert first.exit_code is not None
    with pytest.raises(ToolFailure, match=r"No background command 'job-1' \(available: job-2\)"):
        jobs.get("job-1")
    third = await jobs.start_background(command("true", tmp_path), "c")
    assert third.id == "job-3"


async def test_closing_ends_everything_also_what_was_left_behind(host: ProcessHost, tmp_path: Path) -> None:
    jobs = BackgroundJobs(host)
    left = await jobs.start(command("sleep 60 & echo done", tmp_path), "x")
    assert await left.wait(WAIT_SECONDS, None, None) == "exited"
    assert left.take_output() == "done\n"
    jobs.release_job(left)
    running = await jobs.start_background(command("sleep 60", tmp_path), "y")
    assert not left.process.gone

    await jobs.close()

    await wait_until(lambda: left.process.gone and running.process.gone)
    assert running.exit_code is not None


async def test_what_nobody_reads_is_dropped(jobs: BackgroundJobs, tmp_path: Path) -> None:
    job = await jobs.start(command("echo one; sleep 60", tmp_path), "x")
    await job.wait(None, 0.2, None)
    job.discard_output()

    assert job.take_output() == ""
    job.receive_output("late")
    assert job.take_output() == ""
    await job.cancel(0.25)
    await wait_until(lambda: job.process.gone)


async def test_a_terminal_is_one_and_has_a_size(jobs: BackgroundJobs, tmp_path: Path) -> None:
    job = await jobs.start(command("test -t 1 && stty size <&1", tmp_path, terminal=True), "x")

    assert await job.wait(WAIT_SECONDS, None, None) == "exited"

    assert job.take_output().strip() == "40 120"
    jobs.release_job(job)


async def test_a_command_that_cannot_start_leaves_nothing_open(jobs: BackgroundJobs, tmp_path: Path) -> None:
    missing = ProcessCommand(argv=("/nowhere/at/all",), cwd=tmp_path, environment={})

    async def count_open() -> int:
        with pytest.raises(Exception):  # noqa: B017 - whatever the host says
            await jobs.start(missing, "x")
        return count_open_files()

    before = await count_open()
    assert await count_open() <= before


async def test_one_that_is_given_time_is_ended_after_it(jobs: BackgroundJobs, tmp_path: Path) -> None:
    job: Job = await jobs.start(command("sleep 60", tmp_path), "x")

    job.end_after(0.01)

    assert await job.wait(WAIT_SECONDS, None, None) == "exited"
    jobs.release_job(job)


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


async def test_of_a_million_characters_and_more_head_and_tail_are_kept(jobs: BackgroundJobs, tmp_path: Path) -> None:
    job = await jobs.start(command("true", tmp_path), "x")
    await job.wait(WAIT_SECONDS, None, None)
    job.receive_output("a" * 1024 * 1024)
    assert job.take_output() == "a" * 1024 * 1024
    job.receive_output("b" * 1024 * 1024 + "end")

    told = job.take_output()

    assert told.startswith("bbb")
    assert told.endswith("bend")
    assert 0 < told.count("b") < 1024 * 1024
    jobs.release_job(job)


async def test_what_was_printed_is_there_at_once(jobs: BackgroundJobs, tmp_path: Path) -> None:
    job = await jobs.start(command("echo one; sleep 60", tmp_path), "x")
    taken, end = "", time.monotonic() + WAIT_SECONDS

    while not taken and time.monotonic() < end:
        time.sleep(0.01)  # nothing else may read it meanwhile
        taken = job.take_output()

    assert taken == "one\n"
    await job.end()
