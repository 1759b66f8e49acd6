"""MCP servers at an address."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.extensions.mcp_lines import SCRIPT, lines


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes its time to start a server."""
    monkeypatch.setattr("ollm.extensions.mcp.servers.FIRST_WAIT_SECONDS", 30.0)


@asynccontextmanager
async def over_http(kind: str) -> AsyncIterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, SCRIPT, kind, "--http", str(port), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


async def test_a_server_at_an_address_brings_its_tools_too(tmp_path: Path) -> None:
    async with over_http("good") as url, lines(tmp_path, {"far": {"url": url, "headers": {"X-Who": "me"}}}) as found:
        await found.servers.before_turn()
        assert found.told == []
        assert (await found.call("far__add", a=20, b=3)).llm_content == "the sum is 23"
        assert (await found.call("far__read_resource", uri="notes://today")).llm_content == "buy milk"
        failed = await found.call("far__fail")
        assert failed.error is not None


async def test_an_answer_without_end_is_refused(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n[")
            while True:
                writer.write(b"1," * 50_000)
                await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, lines(tmp_path, {"endless": {"url": f"http://127.0.0.1:{port}/mcp"}}) as found:
        await found.servers.before_turn()

    assert "The MCP server endless cannot be used" in found.told[0]


async def test_an_address_where_nobody_answers_is_told(tmp_path: Path) -> None:
    async with lines(tmp_path, {"gone": {"url": "http://127.0.0.1:9/mcp"}}) as found:
        await found.servers.before_turn()

    assert len(found.told) == 1
    assert "The MCP server gone cannot be used" in found.told[0]
