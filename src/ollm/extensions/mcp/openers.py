"""How the line to a server is opened: its program started in the box, or its address called with a kept login."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ollm.extensions.mcp.connection import McpConnectionState, Open
from ollm.extensions.mcp.settings import SSE, McpServer
from ollm.system.processes import ProcessCommand, ProcessHost
from ollm.system.sandbox.sandbox import Sandbox


def make_opener(
    server: McpServer,
    host: ProcessHost,
    workspace: Path,
    environment: Mapping[str, str],
    sandbox: Sandbox,
    logins: Path | None = None,
) -> Open:
    """How the line to this server is opened: its program started, or its address called, with a login of `logins`."""
    if server.url:
        return lambda line: open_address(server, logins, line)
    return lambda line: open_program(server, host, workspace, environment, sandbox, line)


@asynccontextmanager
async def open_program(
    server: McpServer,
    host: ProcessHost,
    workspace: Path,
    environment: Mapping[str, str],
    sandbox: Sandbox,
    line: McpConnectionState,
) -> AsyncIterator[Any]:
    from ollm.extensions.mcp.stdio import open_stdio_transport, start_program

    box = sandbox.make_box("working", network="all", program=(server.command, *server.args)) if server.boxed else None
    command = ProcessCommand(
        argv=(server.command, *server.args),
        cwd=workspace / server.cwd,
        environment={**environment, **sandbox.make_environment(box, unasked=False), **server.env},
        box=box,
        level="none" if box is None else sandbox.level,
    )
    async with start_program(host, command) as started:
        line.last_words = lambda: started.stderr_tail
        async with open_stdio_transport(started, line.mark_lost) as streams:
            yield streams


@asynccontextmanager
async def open_address(server: McpServer, logins: Path | None, line: McpConnectionState) -> AsyncIterator[Any]:
    from ollm.extensions.mcp.http import open_http_transport
    from ollm.extensions.mcp.sse import open_sse_transport

    def note_refusal(status: int) -> None:
        line.status = status

    auth = None if logins is None else await load_login(server, logins)
    if server.transport == SSE or line.falls_back:
        async with open_sse_transport(server, note_refusal, line.mark_lost, auth) as streams:
            yield streams
    else:
        async with open_http_transport(server, note_refusal, auth) as streams:
            yield streams


async def load_login(server: McpServer, logins: Path) -> Any:
    """The login that was made at this server before; None when there is none."""
    from ollm.extensions.mcp.login import LoginFile, build_kept_auth

    file = LoginFile(logins)
    await asyncio.to_thread(file.get, server)  # a keyring may take its time
    return build_kept_auth(file, server)
