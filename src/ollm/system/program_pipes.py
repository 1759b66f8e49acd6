"""Programs with piped input, output and errors, read and written without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.domain.struct import Data
from ollm.system.capture import Capture
from ollm.system.processes import ChildProcess, ProcessCommand, ProcessHost
from ollm.system.terminal_text import flatten_text

MAX_STDERR_CHARS = 8_000
MAX_TAIL_CHARS = 400

if TYPE_CHECKING:
    from ollm.system.sandbox.sandbox import Sandbox


class PipedProgram(Data, frozen=True):
    """A started program and our ends of its standard input, output and error."""

    process: ChildProcess
    feed: int
    output: int
    errors: int


async def start_configured(
    host: ProcessHost,
    sandbox: Sandbox | None,
    command: ProcessCommand,
    words: Sequence[str],
    own: Mapping[str, str] | None = None,
    server: str = "",
) -> PipedProgram:
    """Start a program that the settings name, with the network, in a working box that shows the paths among the
    `words`, which the user wrote. Without a sandbox it runs as it is. The variables of its `own` come last. `server` is
    the id of a server, whose downloads are kept apart."""

    def start() -> Awaitable[PipedProgram]:
        box = sandbox.make_box("working", network="all", program=words, server=server) if sandbox else None
        added = sandbox.make_environment(box, unasked=False) if sandbox else {}
        level = sandbox.level if sandbox and box else "none"
        environment = {**command.environment, **added, **(own or {})}
        return start_with_pipes(host, replace(command, environment=environment, box=box, level=level))

    return await (sandbox.start(start) if sandbox else start())


async def start_with_pipes(host: ProcessHost, command: ProcessCommand) -> PipedProgram:
    (source, feed), (reading, output), (reading_errors, errors) = [os.pipe() for _ in range(3)]
    try:
        process = await host.start(command, output, errors=errors, source=source)
    except BaseException:
        for end in (feed, reading, reading_errors):
            os.close(end)
        raise
    finally:
        for end in (source, output, errors):
            os.close(end)
    return PipedProgram(process, feed, reading, reading_errors)


async def connect_reader(descriptor: int, protocol: Callable[[], asyncio.Protocol]) -> asyncio.ReadTransport:
    pipe = os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(protocol, pipe)
    return transport


async def connect_writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    pipe = os.fdopen(descriptor, "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)


class RunningProgram:
    """The pipes of a started program. `words` is the end of its stderr."""

    def __init__(self, process: ChildProcess, output: asyncio.StreamReader, feed: asyncio.StreamWriter) -> None:
        self.process = process
        self.output = output
        self.feed = feed
        self.words = ""

    def add_words(self, text: str) -> None:
        self.words = (self.words + text)[-MAX_STDERR_CHARS:]

    @property
    def stderr_tail(self) -> str:
        """The first and the last words without indented lines, such as the stack below an error."""
        lines = self.words.splitlines()
        told = [line for line in lines if line[:1].strip() and any(map(str.isalnum, line))] or lines
        text, half = flatten_text(" ".join(told)), MAX_TAIL_CHARS // 2
        return text if len(text) <= 2 * half else f"{text[:half]} … {text[-half:]}"

    async def end(self) -> None:
        self.feed.close()
        await self.process.end(grace=0.5)


@asynccontextmanager
async def keep_program(program: PipedProgram, max_line_bytes: int) -> AsyncIterator[RunningProgram]:
    """Keep a program's pipes open. On exit, end it and everything it started."""
    lines = asyncio.StreamReader(limit=max_line_bytes)
    transport = await connect_reader(program.output, lambda: asyncio.StreamReaderProtocol(lines))
    found = RunningProgram(program.process, lines, await connect_writer(program.feed))
    complaints = Capture(program.errors, found.add_words)
    try:
        yield found
    finally:
        transport.close()
        complaints.close()
        await asyncio.shield(asyncio.ensure_future(found.end()))
