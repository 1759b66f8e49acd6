"""Processes and their descendants."""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import StartError
from ollm.system.capture import Capture, HeadAndTail
from ollm.system.process_tree import (
    count_cores,
    list_from_proc,
    list_from_ps,
    make_undumpable,
)
from ollm.system.processes import ProcessCommand, ProcessHost
from ollm.system.program_pipes import connect_reader, connect_writer, start_with_pipes
from tests.ordinary_user import as_ordinary_user
from tests.sizes import size
from tests.system.children import ESCAPES, gone_soon, run, sleepers, start, until_sleeping


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
    before = set(psutil.Process().children())
    assert await run(host, "true") == (0, "")
    (pool,) = set(psutil.Process().children()) - before
    pool.kill()

    assert await run(host, "echo again") == (0, "again\n")


async def test_what_is_written_comes_back_on_either_stream(tmp_path: Path) -> None:
    host = ProcessHost()
    try:
        command = ProcessCommand(("/bin/sh", "-c", "read line; echo $line; echo bad >&2"), tmp_path, {})
        program = await start_with_pipes(host, command)
        out, errors = asyncio.StreamReader(), asyncio.StreamReader()
        pipes = [
            await connect_reader(program.output, lambda: asyncio.StreamReaderProtocol(out)),
            await connect_reader(program.errors, lambda: asyncio.StreamReaderProtocol(errors)),
        ]
        feed = await connect_writer(program.feed)
        feed.write(b"hello\n")
        assert (await out.read(), await errors.read()) == (b"hello\n", b"bad\n")
        feed.close()
        for pipe in pipes:
            pipe.close()
        await program.process.end(grace=0.1)
    finally:
        await host.close()


async def test_a_program_that_does_not_start_leaves_no_descriptor(tmp_path: Path) -> None:
    host = ProcessHost()
    try:
        missing = ProcessCommand((str(tmp_path / "missing"),), tmp_path, {})
        with pytest.raises(StartError):
            await start_with_pipes(host, missing)
        before = len(list(Path("/dev/fd").iterdir()))
        with pytest.raises(StartError):
            await start_with_pipes(host, missing)
        assert len(list(Path("/dev/fd").iterdir())) == before
    finally:
        await host.close()


@given(pieces=st.lists(st.text(max_size=30)), limit=st.integers(2, 60))
def test_the_beginning_and_the_end_are_kept_whatever_the_pieces(pieces: list[str], limit: int) -> None:
    kept = HeadAndTail(limit)
    for piece in pieces:
        kept.add(piece)
    whole, half = "".join(pieces), limit // 2

    assert kept.characters == len(whole)
    assert kept.omitted_characters == max(0, len(whole) - 2 * half)
    if kept.omitted_characters:
        assert kept.render_text().startswith(whole[:half])
        assert kept.render_text().endswith(whole[-half:])
        assert f"{kept.omitted_characters} characters" in kept.render_text()
    else:
        assert kept.render_text() == whole


async def test_a_character_cut_by_a_read_arrives_whole() -> None:
    reading, writing = os.pipe()
    texts: list[str] = []
    capture = Capture(reading, texts.append)
    for byte in "é€😀".encode() + b"\xff":
        os.write(writing, bytes([byte]))
        await asyncio.sleep(0)
        capture.drain()
    os.close(writing)

    await capture.ended.wait()

    assert "".join(texts) == "é€😀\ufffd"


def test_a_process_that_is_kept_to_one_core_has_one() -> None:
    code = "import os; from ollm.system.process_tree import count_cores; os.sched_setaffinity(0, {%d}); print(count_cores())"
    only = code % min(os.sched_getaffinity(0))

    assert subprocess.run([sys.executable, "-c", only], capture_output=True, text=True, check=True).stdout == "1\n"
    assert count_cores() == len(os.sched_getaffinity(0))


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
