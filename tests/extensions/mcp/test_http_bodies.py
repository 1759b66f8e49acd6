"""Answers over HTTP that the SDK could not read, in one document or as events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ollm.extensions.mcp.http import make_mended_body
from tests.cli.running import running
from tests.extensions.raw_servers import configure, shown_tools
from tests.servers.oauth_mcp import Handler, serve_oauth_mcp


def make_tool(name: str, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return {"name": name, "description": "Does it.", "inputSchema": {"type": "object", "properties": {"a": schema}}}


class DeepHandler(Handler):
    """One tool of three has a schema that is nested 300 deep; `events`: it answers with events."""

    events = False

    def answer(self, message: dict[str, Any]) -> None:
        if message.get("method") != "tools/list":
            super().answer(message)
            return
        tools = [make_tool("first", 2), make_tool("deep", 300), make_tool("last", 2)]
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}}).encode()
        if self.events:
            body = b"event: message\ndata: " + body + b"\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if self.events else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.parametrize("events", [False, True])
async def test_a_tool_nested_too_deeply_loses_itself_and_not_its_server(tmp_path: Path, events: bool) -> None:
    with serve_oauth_mcp(type("Deep", (DeepHandler,), {"events": events})) as state:
        state.open_to_all = True
        async with running(tmp_path, ["Hi."]) as runner:
            configure(runner, mcpServers={"far": {"url": state.url}})
            done = await runner.run("-p", "hi")

    assert {"far__first", "far__last"} <= set(shown_tools(runner.server.chats[0])), done.err
    assert "deep of the MCP server far was skipped: its parameters are nested too deeply." in done.err


DEEP = b'{"id": 7, "result": {"content": ' + b"[" * 300 + b"]" * 300 + b"}}"


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_events_come_whole_however_they_are_cut(size: int) -> None:
    text = b"event: message\ndata: " + DEEP + b'\n\n: ping\ndata: {"id": 8}\n\nrest'

    async def cut() -> AsyncIterator[bytes]:
        for start in range(0, len(text), size):
            await asyncio.sleep(0)
            yield text[start : start + size]

    body = b"".join([piece async for piece in make_mended_body(cut(), 10_000, events=True)])

    first, second, *others = body.split(b"\n")
    assert first == b"event: message"
    assert json.loads(second.removeprefix(b"data:"))["id"] == 7
    assert others == [b"", b": ping", b'data: {"id": 8}', b"", b"rest"]
