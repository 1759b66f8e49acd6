"""`ollm acp`: serves one editor until it goes away. Standard output carries the protocol alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import Any

from ollm.acp.adapter import EditorClient
from ollm.acp.sessions import EditorSessions
from ollm.acp.transport import StdioTransport
from ollm.app import ProcessScope
from ollm.system.process_tree import make_undumpable

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def serve_editor(process: ProcessScope, flags: dict[str, Any], source: int, target: int) -> None:
    """Speak the protocol on two descriptors until the input ends, or SIGTERM, SIGINT or SIGHUP comes."""
    make_undumpable()
    process.start_logging()
    transport = StdioTransport(source, target)
    editor = EditorClient(transport)
    sessions = EditorSessions(process, editor, flags)
    connection = editor.connect(sessions)
    listening = asyncio.ensure_future(connection.listen())
    loop = asyncio.get_running_loop()
    for name in ENDING_SIGNALS:
        loop.add_signal_handler(name, listening.cancel)
    try:
        await asyncio.wait([listening])
    finally:
        for name in ENDING_SIGNALS:
            loop.remove_signal_handler(name)
        await sessions.close_all()
        with contextlib.suppress(ConnectionError):  # an answer that nobody reads any more
            await connection.close()


def claim_stdout() -> int:
    """The protocol's own descriptor; whatever else prints from now on goes to standard error."""
    sys.stdout.flush()
    target = os.dup(1)
    os.dup2(2, 1)
    return target
