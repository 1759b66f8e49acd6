"""`!command`: run as the person, in their own environment, outside policy. The model sees it only when attached."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from ollm.runtime.base import Attachment

KEPT = 200_000
Terminal = AbstractAsyncContextManager[None]


async def run_own_command(command: str, workspace: Path, terminal: Terminal) -> tuple[int, Attachment]:
    """Its exit code, and what it printed (the end of it), ready to be attached. It has the terminal meanwhile."""
    kept = b""
    async with terminal:
        process = await asyncio.create_subprocess_shell(
            command, cwd=workspace, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        assert process.stdout
        try:
            while data := await process.stdout.read(65536):
                kept = (kept + data)[-KEPT:]
                sys.stdout.buffer.write(data)
                sys.stdout.flush()
        finally:
            if process.returncode is None:
                await ended(process)
    return process.returncode or 0, Attachment(name=f"$ {command}", text=kept.decode("utf-8", "replace"))


async def ended(process: asyncio.subprocess.Process) -> None:
    """Wait for it; a command that has closed its output but goes on is left alone for a second, then ended."""
    try:
        await asyncio.wait_for(process.wait(), 1)
    except (TimeoutError, asyncio.CancelledError):
        process.kill()
        await process.wait()
