"""A program with three pipes: what is written comes back, and nothing stays open when it cannot start."""

import asyncio
from pathlib import Path

import pytest

from ollm.system.processes import ProcessCommand, ProcessHost, StartError
from ollm.system.program_pipes import connect_reader, connect_writer, start_with_pipes


async def test_what_is_written_comes_back_on_either_stream(tmp_path: Path) -> None:
    host = ProcessHost()
    try:
        command = ProcessCommand(("/bin/sh", "-c", "read line; echo $line; echo bad >&2"), tmp_path, {})
        program = await start_with_pipes(host, command)
        out, errors = asyncio.StreamReader(), asyncio.StreamReader()
        pipes = [
            await connect_reader(program.output, lambda: asyncio.StreamReaderProtocol(out)),
            await connect_reader(program.errors, lambda: asyncio.StreamReaderProtocol(errors)),
        ]
        feed = await connect_writer(program.feed)
        feed.write(b"hello\n")
        assert (await out.read(), await errors.read()) == (b"hello\n", b"bad\n")
        feed.close()
        for pipe in pipes:
            pipe.close()
        await program.process.end(grace=0.1)
    finally:
        await host.close()


async def test_a_program_that_does_not_start_leaves_no_descriptor(tmp_path: Path) -> None:
    host = ProcessHost()
    try:
        missing = ProcessCommand((str(tmp_path / "missing"),), tmp_path, {})
        with pytest.raises(StartError):
            await start_with_pipes(host, missing)
        before = len(list(Path("/dev/fd").iterdir()))
        with pytest.raises(StartError):
            await start_with_pipes(host, missing)
        assert len(list(Path("/dev/fd").iterdir())) == before
    finally:
        await host.close()
