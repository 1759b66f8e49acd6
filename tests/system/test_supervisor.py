"""One command and all that comes from it, to its end."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from ollm.system.processes import ProcessCommand, ProcessHost, StartError
from tests.system.children import ESCAPES, run, sleepers, start, until_sleeping


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
