"""Commands and everything that comes from them."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import psutil
import pytest

from ollm.system.capture import Capture
from ollm.system.process_tree import list_from_proc, list_from_ps, make_undumpable
from ollm.system.processes import ChildProcess, ProcessCommand, ProcessHost, StartError
from tests.ordinary_user import as_ordinary_user
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


async def test_a_signal_is_a_negative_exit_code(host: ProcessHost) -> None:
    assert (await run(host, "kill -KILL $$"))[0] == -signal.SIGKILL


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


async def test_many_commands_run_side_by_side(host: ProcessHost) -> None:
    results = await asyncio.gather(*(run(host, f"sleep 0.1; echo {number}") for number in range(20)))

    assert [text for _, text in results] == [f"{number}\n" for number in range(20)]


async def test_a_command_longer_than_a_socket_holds_arrives_whole(host: ProcessHost) -> None:
    environment = {"PATH": os.environ["PATH"], **{f"V{number}": "x" * 100_000 for number in range(8)}}

    assert await run(host, "echo ${#V7}", environment=environment) == (0, "100000\n")


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


def test_an_undumpable_process_does_not_give_its_environment_to_others_of_its_user() -> None:
    def can_look_into(prepare: Callable[[], None]) -> bool:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            prepare()
            os.write(writing, b"r")
            signal.pause()
        try:
            os.read(reading, 1)
            return bool(Path(f"/proc/{child}/environ").read_bytes())
        except PermissionError:
            return False
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def dumpable() -> None:
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)

    def undumpable() -> None:
        dumpable()
        make_undumpable()

    def body(_: Path) -> None:
        assert can_look_into(dumpable)
        assert not can_look_into(undumpable)

    as_ordinary_user(body)


def test_where_there_is_no_proc_ps_tells_the_same() -> None:
    me = (os.getpid(), os.getppid())

    assert me in list_from_ps()
    assert me in list_from_proc()
