"""A server on loopback that does with each connection what a test hands it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serve_with(handle: Handle, path: Path | None = None) -> AsyncIterator[int]:
    """Its port; with `path` it listens there. When it ends, so do its connections: asyncio's own way out of a server waits,
    from Python 3.12 on, for clients and handlers that may never leave."""
    at_work: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        at_work.add(task)
        try:
            await handle(reader, writer)
        finally:
            at_work.discard(task)
            writer.close()

    listening = (
        await asyncio.start_unix_server(accept, path) if path else await asyncio.start_server(accept, "127.0.0.1", 0)
    )
    try:
        yield 0 if path else listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        tasks = list(at_work)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
