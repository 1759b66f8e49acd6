"""Running helper programs: their output as it arrives, and their exit. They start confined."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from ollm.system.sandbox.confined import make_helper_environment, start_confined

_BUFFER_BYTES = 1 << 18


class HelperProcess:
    """A running helper. `close` ends it in any case and discards its remaining output."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.output = asyncio.StreamReader(_BUFFER_BYTES)
        self.errors = asyncio.StreamReader(_BUFFER_BYTES)
        self._process = process
        self._transports: list[asyncio.ReadTransport] = []

    async def connect_streams(self) -> None:
        for reader, pipe in ((self.output, self._process.stdout), (self.errors, self._process.stderr)):
            assert pipe is not None
            self._transports.append(await _connect_pipe(reader, pipe))

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def wait(self) -> int:
        """Wait for the exit code."""
        return await asyncio.to_thread(self._process.wait)

    async def close(self) -> None:
        for transport in self._transports:
            transport.close()
        if self._process.poll() is None:
            self.kill()
            await self.wait()


async def start_helper(command: Sequence[str | bytes], root: Path) -> HelperProcess:
    """Start a program that reads below `root`. It cannot change anything, use the network, reach other processes or see
    the secrets of the home. Raises FileNotFoundError if the program does not exist."""

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=make_helper_environment(os.environ),
        )

    helper = HelperProcess(start_confined(start, os.fsdecode(command[0]), [str(root)]))
    try:
        await helper.connect_streams()
    except BaseException:
        await helper.close()
        raise
    return helper


async def _connect_pipe(reader: asyncio.StreamReader, pipe: IO[bytes]) -> asyncio.ReadTransport:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return transport
