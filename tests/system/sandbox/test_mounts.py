"""What one command's mounts leave open. How they hold is tried at every level in `tests/system/test_sandbox.py`."""

import asyncio
from pathlib import Path

from ollm.system.processes import ProcessCommand, ProcessHost
from ollm.system.program_pipes import connect_reader, start_with_pipes
from ollm.system.sandbox.base import list_scratch_places
from ollm.system.sandbox.box import Box
from ollm.system.sandbox.levels import detect_level
from ollm.system.sandbox.mounts import find_opened_directory, list_writable_places


def test_for_an_approved_file_its_directory_is_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert find_opened_directory(str(tmp_path / "file")) == str(tmp_path)
    assert find_opened_directory(str(tmp_path / "missing")) == str(tmp_path)
    assert find_opened_directory(str(tmp_path)) == str(tmp_path)


def test_a_reading_box_writes_to_scratch_alone() -> None:
    box = Box(kind="reading", workspace="/w", home="/h", writable=("/x",), approved=("/y/z",))

    assert list_writable_places(box) == [*list_scratch_places("/h"), "/dev"]


def test_a_working_box_writes_to_the_workspace_what_is_set_and_what_was_approved(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    box = Box(kind="working", workspace=str(tmp_path), home="/h", writable=("/x",), approved=("/y/z",))

    assert list_writable_places(box) == [*list_scratch_places("/h"), "/dev", str(tmp_path), "/x", "/y"]


async def test_a_folder_of_programs_that_is_gone_stops_no_command(tmp_path: Path) -> None:
    host = ProcessHost()
    try:
        box = Box("reading", str(tmp_path), str(tmp_path / "home"), kept=("/tmp/gone/long/ago",))
        command = ProcessCommand(("/bin/sh", "-c", "echo here"), tmp_path, {}, box=box, level=detect_level())
        program = await start_with_pipes(host, command)
        said = asyncio.StreamReader()
        pipe = await connect_reader(program.output, lambda: asyncio.StreamReaderProtocol(said))
        assert await said.read() == b"here\n"
        pipe.close()
        await program.process.end(grace=0.1)
    finally:
        await host.close()
