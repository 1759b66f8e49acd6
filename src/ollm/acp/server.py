"""`ollm acp`: serves one editor until it disconnects. Standard output carries only the protocol."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ollm.acp.connection import EditorClient
from ollm.acp.transport import StdioTransport
from ollm.system.process_tree import make_undumpable

if TYPE_CHECKING:
    from ollm.acp.sessions import EditorSessions
    from ollm.app import ProcessScope

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def serve_editor(process: ProcessScope, flags: dict[str, Any], source: int, target: int) -> None:
    """Serve the protocol on two descriptors until the input ends or SIGTERM, SIGINT or SIGHUP arrives."""
    make_undumpable()
    transport = StdioTransport(source, target)
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        serving = asyncio.ensure_future(serve_requests(process, flags, transport, stack))
        for name in ENDING_SIGNALS:
            loop.add_signal_handler(name, serving.cancel)
        try:
            await asyncio.wait([serving])
        finally:
            for name in ENDING_SIGNALS:
                loop.remove_signal_handler(name)
    if not serving.cancelled():
        serving.result()


async def serve_requests(
    process: ProcessScope, flags: dict[str, Any], transport: StdioTransport, stack: AsyncExitStack
) -> None:
    """Serve requests. Cleanup is pushed onto `stack`."""
    stack.push_async_callback(transport.close)
    editor = EditorClient(transport)
    stack.push_async_callback(editor.close)

    async def load_sessions() -> EditorSessions:
        process.start_logging()
        module = await asyncio.to_thread(import_module, "ollm.acp.sessions")
        sessions: EditorSessions = module.EditorSessions(process, editor, flags)
        stack.push_async_callback(sessions.close_all)
        stack.callback(asyncio.create_task(sessions.stop_after(transport.ended), name="end of input").cancel)
        return sessions

    await editor.serve_requests(load_sessions)


def claim_stdout() -> int:
    """Reserve stdout for the protocol and return its descriptor. Other output goes to stderr from now on."""
    sys.stdout.flush()
    target = os.dup(1)
    os.dup2(2, 1)
    return target
