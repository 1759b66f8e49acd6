"""`!command`: run as the person, in their own environment, outside policy. The model sees it only when attached."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from ollm.runtime.base import Attachment

MAX_OUTPUT_BYTES = 200_000
TerminalContext = AbstractAsyncContextManager[None]


async def run_own_command(command: str, workspace: Path, terminal: TerminalContext) -> tuple[int, Attachment]:
    """Its exit code, and what it printed (the end of it), ready to be attached. It has the terminal meanwhile."""
    kept = b""
    async with terminal:
        process = await asyncio.create_subprocess_shell(
            command, cwd=workspace, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        assert process.stdout
        try:
            while data := await process.stdout.read(65536):
                kept = (kept + data)[-MAX_OUTPUT_BYTES:]
                sys.stdout.buffer.write(data)
                sys.stdout.flush()
        finally:
            if process.returncode is None:
                await wait_or_kill(process)
    return process.returncode or 0, Attachment(name=f"$ {command}", text=kept.decode("utf-8", "replace"))


async def wait_or_kill(process: asyncio.subprocess.Process) -> None:
    """Wait for it; a command that has closed its output but goes on is left alone for a second, then ended."""
    try:
        await asyncio.wait_for(process.wait(), 1)
    except (TimeoutError, asyncio.CancelledError):
        process.kill()
        await process.wait()
