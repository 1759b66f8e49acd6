"""The processes that run commands: what is killed leaves nothing behind, and the next command works."""

import asyncio

from ollm.system.processes import ProcessHost
from tests.system.children import gone_soon, run, start


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
