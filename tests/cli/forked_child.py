"""A forked command that goes on while a test talks to it, with what a test asks of a process of asyncio."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cli.command import SCRIPT
from tests.cli.forked import ForkedProcess, ForkServer, find_fork_server

MAX_LINE_BYTES = 1 << 27


class ForkedChild:
    """Its streams are pipes; `stdin` is there where the test wants to write."""

    def __init__(self, process: ForkedProcess) -> None:
        self._process = process
        self.pid = process.pid
        self.stdin: asyncio.StreamWriter | None = None
        self.output: Any = None  # the pipe that `stdout` reads, to stop or close it
        self.stdout = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        self.stderr = asyncio.StreamReader(limit=MAX_LINE_BYTES)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        return await self._process.wait()

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def terminate(self) -> None:
        self.send_signal(15)

    def kill(self) -> None:
        self._process.kill()

    async def communicate(self, text: bytes | None = None) -> tuple[bytes, bytes]:
        """Write `text`, then read both outputs to their ends and wait for the process."""
        if self.stdin is not None:
            self.stdin.write(text or b"")
            self.stdin.close()
        out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return out, err


async def start_command(
    arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], *, writes: bool = False
) -> Any:
    """`ollm arguments`, as a fork where that is what a new process would be; with `writes`, a pipe leads to its input."""
    server = find_fork_server(environment)
    if server is not None:
        return await _fork_child(server, arguments, cwd, environment, writes)
    pipe = asyncio.subprocess.PIPE
    stdin = pipe if writes else asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(
        SCRIPT, *arguments, cwd=cwd, env=environment, stdin=stdin, stdout=pipe, stderr=pipe, limit=MAX_LINE_BYTES
    )


async def _fork_child(
    server: ForkServer, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], writes: bool
) -> ForkedChild:
    read_in, write_in = os.pipe()
    (read_out, write_out), (read_err, write_err) = os.pipe(), os.pipe()
    try:
        child = ForkedChild(server.fork(arguments, str(cwd), environment, [read_in, write_out, write_err]))
    finally:
        for number in (read_in, write_out, write_err):
            os.close(number)
    loop = asyncio.get_running_loop()
    for reader, number in ((child.stdout, read_out), (child.stderr, read_err)):
        protocol = asyncio.StreamReaderProtocol(reader)
        pipe, _ = await loop.connect_read_pipe(lambda protocol=protocol: protocol, os.fdopen(number, "rb", 0))  # type: ignore[misc]
        child.output = child.output or pipe
    if writes:
        into = os.fdopen(write_in, "wb", 0)
        transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, into)
        child.stdin = asyncio.StreamWriter(transport, flow, None, loop)
    else:
        os.close(write_in)
    return child
