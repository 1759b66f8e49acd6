"""Commands and everything that comes from them."""

import os
import signal
import subprocess
import sys

import pytest

from ollm.system.processes import ProcessHost
from tests.sizes import size
from tests.system.children import ESCAPES, gone_soon, run, until_sleeping


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
