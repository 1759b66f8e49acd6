"""Commands and everything that comes from them."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import psutil
import pytest

from ollm.system.capture import Capture
from ollm.system.processes import ChildProcess, ProcessCommand, ProcessHost
from tests.sizes import size

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


async def test_output_and_errors_come_merged_with_the_exit_code(host: ProcessHost) -> None:
    assert await run(host, "echo out; echo err >&2; exit 3") == (3, "out\nerr\n")


async def test_standard_input_is_empty(host: ProcessHost) -> None:
    assert await run(host, "cat; echo done") == (0, "done\n")


async def test_a_command_has_a_session_of_its_own_and_no_stray_descriptors(host: ProcessHost) -> None:
    code, text = await run(host, "ps -o pid=,sid= -p $$; ls /proc/self/fd | sort -n | tr '\\n' ' '")

    session, descriptors = text.splitlines()
    assert code == 0
    assert len(set(session.split())) == 1
    assert descriptors.split() == ["0", "1", "2", "3"]  # 3 is ls itself reading the directory


async def test_a_command_hears_the_signals_a_shell_expects(host: ProcessHost) -> None:
    assert await run(host, "yes | head -1; kill -TERM $$") == (-signal.SIGTERM, "y\n")


async def test_the_environment_is_the_one_given_and_the_supervisors_have_none(host: ProcessHost) -> None:
    code, text = await run(
        host, "env; cat /proc/$PPID/environ", environment={"PATH": os.environ["PATH"], "A": "\udcff"}
    )

    assert code == 0
    assert {line.split("=")[0] for line in text.splitlines()} <= {"PATH", "A", "PWD", "SHLVL", "_", "OLDPWD"}


async def test_a_command_longer_than_a_socket_holds_arrives_whole(host: ProcessHost) -> None:
    environment = {"PATH": os.environ["PATH"], **{f"V{number}": "x" * 100_000 for number in range(8)}}

    assert await run(host, "echo ${#V7}", environment=environment) == (0, "100000\n")


AGENT = """
import asyncio, os, sys
from pathlib import Path
from ollm.system.processes import ProcessCommand, ProcessHost
async def main():
    host = ProcessHost()
    _, writing = os.pipe()
    for _ in range(2):
        await host.start(ProcessCommand(argv=("/bin/sh", "-c", sys.argv[1]), cwd=Path("/"), environment=dict(os.environ)), writing)
    print("ready", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_nothing_is_left_when_the_agent_is_killed(mark: str, how: signal.Signals) -> None:
    for _ in range(size(1, 50)):
        line = ESCAPES["double fork"].format(mark=mark)
        agent = subprocess.Popen([sys.executable, "-c", AGENT, line], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"ready\n"
        await until_sleeping(mark, 4)

        agent.send_signal(how)
        agent.wait()

        assert gone_soon(mark)
        agent.stdout.close()
