"""`!command`: run as the person, in their own environment, outside policy. The model sees it only when attached."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from prompt_toolkit.application import in_terminal

from ollm.runtime.base import Attachment

KEPT = 200_000


async def run_own_command(command: str, workspace: Path) -> tuple[int, Attachment]:
    """Its exit code, and what it printed (the end of it), ready to be attached. The terminal is its own meanwhile."""
    kept = b""
    async with in_terminal():
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
