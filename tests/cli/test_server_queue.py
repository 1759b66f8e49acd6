"""Several chats on a server that runs one request at a time."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

from ollm.providers.base import AnyPiece, ProgressPiece, TextPiece
from ollm.runtime.model.server_queue import ServerQueue, in_background
from tests.cli.running import running
from tests.cli.terminal import CTRL_D, ENTER, ESCAPE, at_terminal
from tests.servers.answers import Answer


async def test_a_second_chat_waits_shows_its_position_and_outlives_a_killed_one(tmp_path: Path) -> None:
    script = [Answer(text="First one.", stall_after=1), "Second one.", "Third one."]
    async with running(tmp_path, script) as runner:
        runner.home.mkdir()
        (runner.home / "config.yaml").write_text("provider: {parallel: 1}\n")
        async with at_terminal(runner, "chat") as first:
            first.type("one" + ENTER)
            await first.wait_for("First")
            async with at_terminal(runner, "chat", "--beside") as second:
                second.type("two" + ENTER)
                await second.wait_for("waiting for the server: 1 request ahead", "Esc stops")
                second.type(ESCAPE)
                await second.wait_for("stopped", gone="Esc stops")
                assert len(runner.server.chats) == 1, "nothing was sent while it waited"
                second.type("three" + ENTER)
                await second.wait_for("› three", "waiting for the server: 1 request ahead")
                first.kill(signal.SIGKILL)
                await second.wait_for("Second one.", gone="Esc stops")
                second.type("four" + ENTER)
                await second.wait_for("Third one.", gone="Esc stops")
                second.type(CTRL_D)
                await second.ended()
        (folder,) = (runner.home / "run").glob("server-*")
        assert [path.name for path in folder.iterdir()] == ["guard"]


async def test_interactive_requests_go_before_background_ones_in_the_order_they_came(tmp_path: Path) -> None:
    begun: list[str] = []
    finish = asyncio.Event()

    async def answer(name: str) -> AsyncGenerator[AnyPiece, None]:
        begun.append(name)
        await finish.wait()
        yield TextPiece(name)

    async def ask(name: str, *, background: bool = False) -> list[AnyPiece]:
        in_background.set(background)  # Each task has a context of its own.
        queue = ServerQueue(tmp_path, "http://server", 1)
        return [piece async for piece in queue.relay(answer(name))]

    tasks = []
    for name, background in (("running", False), ("task", True), ("chat", False), ("next", False)):
        tasks.append(asyncio.create_task(ask(name, background=background)))
        await asyncio.sleep(0.05)
    assert begun == ["running"]
    finish.set()
    heard = await asyncio.gather(*tasks)

    assert begun == ["running", "chat", "next", "task"]
    assert heard[0] == [TextPiece("running")], "a request that need not wait says nothing"
    assert heard[2][0] == ProgressPiece(total=1, stage="queued")


async def test_a_server_without_a_known_limit_has_no_queue(tmp_path: Path) -> None:
    async with running(tmp_path, ["Fine."]) as runner:
        assert (await runner.run("-p", "hi")).code == 0
        assert not list((runner.home / "run").glob("server-*"))
