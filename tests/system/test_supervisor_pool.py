"""The processes that run commands: what is killed leaves nothing behind, and the next command works."""

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import psutil
import pytest

from ollm.system.capture import Capture
from ollm.system.processes import ChildProcess, ProcessCommand, ProcessHost


@pytest.fixture
async def host() -> AsyncIterator[ProcessHost]:
    host = ProcessHost()
    yield host
    await host.close()


@pytest.fixture
def mark() -> str:
    """A sleeping time no other process has, to find ours by."""
    return f"1{uuid.uuid4().int % 10**9}.{os.getpid()}"


def sleepers(mark: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and "sleep" in line and mark in line:
            found.append(process.pid)
    return found


def gone_soon(mark: str, seconds: float = 8) -> bool:
    deadline = time.monotonic() + seconds
    while sleepers(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not sleepers(mark)


async def start(
    host: ProcessHost, line: str, *, environment: Mapping[str, str] | None = None, cwd: Path = Path("/")
) -> tuple[ChildProcess, Capture, list[str]]:
    reading, writing = os.pipe()
    texts: list[str] = []
    capture = Capture(reading, texts.append)
    try:
        command = ProcessCommand(
            argv=("/bin/sh", "-c", line), cwd=cwd, environment=environment or {"PATH": os.environ["PATH"]}
        )
        return await host.start(command, writing), capture, texts
    except BaseException:
        capture.close()
        raise
    finally:
        os.close(writing)


async def run(host: ProcessHost, line: str, **more: object) -> tuple[int, str]:
    process, capture, texts = await start(host, line, **more)  # type: ignore[arg-type]
    code = await process.wait()
    await capture.ended.wait()
    return code, "".join(texts)


async def test_many_commands_run_side_by_side(host: ProcessHost) -> None:
    results = await asyncio.gather(*(run(host, f"sleep 0.1; echo {number}") for number in range(20)))

    assert [text for _, text in results] == [f"{number}\n" for number in range(20)]


async def test_a_killed_supervisor_leaves_nothing_and_the_next_command_works(host: ProcessHost, mark: str) -> None:
    process, capture, _ = await start(
        host, f"setsid sleep {mark} & sleep {mark} & sleep 0.3; kill -KILL $PPID; sleep {mark}"
    )

    await asyncio.wait_for(process.wait(), 10)

    assert gone_soon(mark)
    assert await run(host, "echo again") == (0, "again\n")
    capture.close()


async def test_a_killed_pool_is_started_anew(host: ProcessHost) -> None:
    assert await run(host, "true") == (0, "")
    assert host._child is not None
    host._child.kill()
    host._child.wait()

    assert await run(host, "echo again") == (0, "again\n")
