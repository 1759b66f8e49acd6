"""The terminal's side of the daemon: what `ollm chat --daemon` asks for, in which order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cli.running import running
from tests.cli.terminal import CTRL_D, ENTER, at_terminal
from tests.covers import covers


@asynccontextmanager
async def relay(socket: Path) -> AsyncIterator[list[str]]:
    """Stands between the daemon and its clients, and notes the first line of every request."""
    behind = socket.with_name("behind.sock")
    socket.rename(behind)
    asked: list[str] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, note: bool) -> None:
        while piece := await reader.read(65536):
            if note:
                lines = piece.decode("utf-8", "replace").splitlines()
                asked.extend(line.rpartition(" ")[0] for line in lines if line.endswith("HTTP/1.1"))
            writer.write(piece)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(str(behind))
        both = pump(reader, inner_writer, note=True), pump(inner_reader, writer, note=False)
        await asyncio.gather(*both, return_exceptions=True)

    server = await asyncio.start_unix_server(serve, str(socket))
    try:
        yield asked
    finally:
        server.close()
        socket.unlink(missing_ok=True)
        behind.rename(socket)


@covers("W134")
async def test_a_chat_through_the_daemon_begins_with_init_and_then_opens_a_session(tmp_path: Path) -> None:
    async with running(tmp_path, ["From the daemon."]) as runner:
        await runner.run("daemon", "start")
        try:
            async with relay(runner.home / "run" / "daemon.sock") as asked:
                async with at_terminal(runner, "chat", "--daemon", "--new") as terminal:
                    terminal.type("hi" + ENTER)
                    await terminal.wait_for("From the daemon.")
                    terminal.type(CTRL_D)
                    assert await terminal.ended() == 0
        finally:
            await runner.run("daemon", "stop")

    begun = [line for line in asked if line.startswith("POST")]
    assert begun[:2] == ["POST /init", "POST /sessions"]
