"""Which way a line to a server is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from ollm.extensions.mcp.connection import McpConnectionState
from ollm.extensions.mcp.openers import make_opener
from ollm.extensions.mcp.settings import McpServer
from ollm.system.processes import ProcessHost, StartError
from ollm.system.sandbox.sandbox import Sandbox


async def test_a_program_is_started_in_its_own_folder_and_its_last_words_are_heard(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    script = "pwd; echo $WHO >&2; cat"
    server = McpServer(name="a", command="sh", args=("-c", script), cwd="inner", env={"WHO": "me"}, boxed=False)
    host, line = ProcessHost(), McpConnectionState()
    opener = make_opener(server, host, tmp_path, {"PATH": "/usr/bin:/bin"}, Sandbox(tmp_path, tmp_path))
    async with opener(line):
        while not line.last_words():
            await line_turn()
        assert line.last_words() == "me"
    await host.close()


async def line_turn() -> None:
    import asyncio

    await asyncio.sleep(0.01)


async def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    host = ProcessHost()
    server = McpServer(name="a", command="/no/such/program", boxed=False)
    opener = make_opener(server, host, tmp_path, {}, Sandbox(tmp_path, tmp_path))
    with pytest.raises(StartError):
        async with opener(McpConnectionState()):
            pass
    await host.close()
