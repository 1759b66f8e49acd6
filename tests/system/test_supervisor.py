"""One command and all that comes from it, to its end."""

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import psutil
import pytest

from ollm.system.capture import Capture
from ollm.system.processes import ChildProcess, ProcessCommand, ProcessHost, StartError

ESCAPES = {
    "plain child": "sleep {mark} & wait",
    "background": "sleep {mark} & sleep {mark}",
    "new session": "setsid sleep {mark} & sleep {mark}",
    "double fork": "(setsid sh -c '(setsid sleep {mark} &) ; sleep {mark}' &) ; sleep {mark}",
    "empty environment": "env -i setsid nohup sleep {mark} >/dev/null 2>&1 & sleep {mark}",
    "deaf to SIGTERM": "setsid sh -c 'trap \"\" TERM HUP INT; sleep {mark}; sleep {mark}' & sleep {mark}",
}


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


async def until_sleeping(mark: str, count: int = 1) -> None:
    async with asyncio.timeout(20):
        while len(sleepers(mark)) < count:
            await asyncio.sleep(0.01)


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


async def test_a_signal_is_a_negative_exit_code(host: ProcessHost) -> None:
    assert (await run(host, "kill -KILL $$"))[0] == -signal.SIGKILL


async def test_what_cannot_be_started_says_whether_it_was_the_place_or_the_program(
    host: ProcessHost, tmp_path: Path
) -> None:
    with pytest.raises(StartError) as error:
        await start(host, "true", cwd=tmp_path / "missing")
    assert error.value.where == "cwd"
    with pytest.raises(StartError) as error:
        await host.start(ProcessCommand(argv=("/no/such/program",), cwd=tmp_path, environment={}), 1)
    assert error.value.where == "program"


@pytest.mark.parametrize("how", ESCAPES)
async def test_ending_a_command_ends_all_that_came_from_it(host: ProcessHost, mark: str, how: str) -> None:
    process, capture, _ = await start(host, ESCAPES[how].format(mark=mark))
    await until_sleeping(mark, 1 if how == "plain child" else 2)

    await process.end(grace=0.1)

    assert sleepers(mark) == []
    assert process.gone
    capture.close()


async def test_a_tree_that_grows_while_it_is_ended_is_ended(host: ProcessHost, mark: str) -> None:
    script = f"import os,time\nfor _ in range(200):\n if os.fork()==0:\n  os.setsid(); os.execvp('sleep',['sleep','{mark}'])\n time.sleep(0.002)"
    process, capture, _ = await start(host, f'{sys.executable} -c "{script}"')
    await until_sleeping(mark, 5)

    await process.end(grace=0)

    assert sleepers(mark) == []
    capture.close()


async def test_a_child_left_behind_does_not_hold_up_the_command(host: ProcessHost, mark: str) -> None:
    process, capture, texts = await start(host, f"echo hi; sleep {mark} &")

    assert await asyncio.wait_for(process.wait(), 5) == 0
    capture.drain()
    assert "".join(texts) == "hi\n"
    await until_sleeping(mark)
    assert not process.gone
    await host.close()
    assert sleepers(mark) == []
    capture.close()
