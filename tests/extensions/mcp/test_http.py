"""MCP servers at an address."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from ollm.extensions.mcp.http import PlainAddressError, check_address
from ollm.extensions.mcp.settings import McpServer
from tests.extensions.mcp_lines import SCRIPT, lines
from tests.servers.handled import serve_with
from tests.servers.oauth_mcp import Handler, serve_oauth_mcp


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
        assert (await found.call("far__inquire")).llm_content == "decline"
        await found.call("far__learn")
        async with asyncio.timeout(30):
            while "far__multiply" not in found.names:
                await found.servers.before_turn()
                await asyncio.sleep(0.05)


class NewerHandler(Handler):
    """Refuses the handshake, as a server does that only speaks the protocol without one."""

    def answer(self, message: dict[str, Any]) -> None:
        if message.get("method") == "initialize":
            error = {"code": -32022, "message": "Unsupported protocol version"}
            self.send(400, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif message.get("method") == "server/discover":
            found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
            info = {"serverInfo": {"name": "newer", "version": "1"}, "ttlMs": 0, "cacheScope": "private"}
            self.send(200, {"jsonrpc": "2.0", "id": message["id"], "result": {**found, **info}})
        else:
            super().answer(message)


async def test_a_server_that_refuses_the_handshake_is_spoken_to_without_one(tmp_path: Path) -> None:
    with serve_oauth_mcp(NewerHandler) as state:
        state.open_to_all = True
        async with lines(tmp_path, {"newer": {"url": state.url}}) as found:
            await found.servers.before_turn()
            assert found.told == []
            assert found.names == ["newer__whoami"]


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://login.example/token", True),
        ("http://127.0.0.1:8/token", True),
        ("http://[::1]:8/token", True),
        ("http://lan.example:80/token", True),
        ("http://lan.example:81/token", False),
        ("http://login.example/token", False),
        ("http://127.0.0.1.example/token", False),
        ("ftp://login.example/token", False),
    ],
)
def test_a_key_goes_over_no_plain_line_but_the_configured_one(url: str, taken: bool) -> None:
    server = McpServer(name="far", url="http://lan.example:80/mcp")
    with nullcontext() if taken else pytest.raises(PlainAddressError):
        check_address(url, server)


async def test_an_answer_without_end_is_refused(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n[")
            while True:
                writer.write(b"1," * 50_000)
                await writer.drain()

    async with serve_with(answer) as port:
        async with lines(tmp_path, {"endless": {"url": f"http://127.0.0.1:{port}/mcp"}}) as found:
            await found.servers.before_turn()

    assert "The MCP server endless cannot be used" in found.told[0]


async def test_an_address_where_nobody_answers_is_told(tmp_path: Path) -> None:
    async with lines(tmp_path, {"gone": {"url": "http://127.0.0.1:9/mcp"}}) as found:
        await found.servers.before_turn()

    assert len(found.told) == 1
    assert "The MCP server gone cannot be used" in found.told[0]
