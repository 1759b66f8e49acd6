"""Open the connection to a server: start its program in the sandbox, or call its address with a saved login."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from ollm.extensions.mcp.connection import FirstStart, McpConnectionState, Open
from ollm.extensions.mcp.http import open_address, run_reader
from ollm.extensions.mcp.results import read_message
from ollm.extensions.mcp.settings import McpServer
from ollm.system.processes import ProcessCommand, ProcessHost
from ollm.system.program_pipes import RunningProgram, keep_program, start_configured
from ollm.system.sandbox.sandbox import Sandbox

# A downloaded server then starts without a network, and npm prints why one failed without notices around it.
NPM_SETTINGS = {"npm_config_prefer_offline": "true", "npm_config_loglevel": "error"}


def make_opener(
    server: McpServer,
    host: ProcessHost,
    workspace: Path,
    environment: Mapping[str, str],
    sandbox: Sandbox,
    logins: Path | None = None,
) -> Open:
    """Make a function that opens the connection: start the program, or call the address with a saved login."""
    if server.url:
        return lambda line: open_with_login(server, logins, line)
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
    words = (server.command, *server.args)
    command = ProcessCommand(argv=words, cwd=workspace / server.cwd, environment={**environment, **NPM_SETTINGS})
    box, opened = sandbox if server.boxed else None, words if server.own else ()
    cache_id = _make_cache_id(server, words, workspace)
    if box and box.level != "none":
        line.install = FirstStart(box.find_caches(cache_id))
        await asyncio.to_thread(line.install.begin)
    program = await start_configured(host, box, command, opened, server.env, cache_id)
    async with keep_program(program, MAX_LINE_BYTES) as started:
        sandbox.attach(started.process)
        line.last_words = lambda: started.stderr_tail
        async with open_stdio_transport(started, line.mark_lost) as streams:
            yield streams


def _make_cache_id(server: McpServer, words: Sequence[str], workspace: Path) -> str:
    """Return the name of a server's cache: another command, or an entry of another workspace, has another one."""
    import hashlib

    parts = (server.name, *words, *(() if server.own else (str(workspace),)))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


@asynccontextmanager
async def open_with_login(server: McpServer, logins: Path | None, line: McpConnectionState) -> AsyncIterator[Any]:
    from ollm.extensions.mcp.login import LoginFile, build_kept_auth

    auth = build_kept_auth(LoginFile(logins), server) if logins else None
    async with open_address(server, line.note_refusal, line.mark_lost, auth) as streams:
        yield streams


log = logging.getLogger("ollm.mcp")

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_GARBAGE_LINES = 1_000  # Some servers print text before their first message.
MAX_UNASKED_MESSAGES = 20_000  # A server that only notifies would keep ollm busy.


@asynccontextmanager
async def open_stdio_transport(started: RunningProgram, lost: Callable[[str], None]) -> AsyncIterator[Any]:
    """Open the streams of an SDK client. `lost` gets the reason for the end."""
    import anyio
    from mcp.shared.message import SessionMessage

    heard, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, said = anyio.create_memory_object_stream[SessionMessage](0)

    async def write_server() -> None:
        with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for each in said:
                started.feed.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await started.feed.drain()

    read = partial(_forward_messages, started.output)
    async with writing, said, reading, run_reader(read, heard, lost) as group:
        group.start_soon(write_server)
        yield reading, writing


async def _forward_messages(lines: asyncio.StreamReader, send: Callable[[Any], Any]) -> str:
    """Forward every message; returns the reason for the end."""
    from mcp.shared.message import SessionMessage

    garbage = unasked = 0
    while True:
        try:
            line = await lines.readline()
        except ValueError:
            return f"it sent a line of more than {MAX_LINE_BYTES // 2**20} MiB"
        except OSError:
            line = b""
        if not line:
            return "it closed its output"
        if not line.strip():
            continue
        try:
            message = read_message(line)
        except ValueError:
            garbage += 1
            log.debug("Not a message: %r", line[:200], extra={"operation": "read"})
            if garbage > MAX_GARBAGE_LINES:
                return "it prints text that is not MCP messages to stdout"
            continue
        unasked = unasked + 1 if hasattr(message, "method") else 0
        if unasked > MAX_UNASKED_MESSAGES:
            return f"it sent {MAX_UNASKED_MESSAGES:,} unsolicited messages"
        await send(SessionMessage(message))
