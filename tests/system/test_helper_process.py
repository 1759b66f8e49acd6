"""Helper programs while they run: their output, their exit code, and that they end when nobody wants them any more."""

import os
from pathlib import Path

import pytest

from ollm.system.helper_process import start_helper


async def test_output_errors_and_exit_code_come_back(tmp_path: Path) -> None:
    helper = await start_helper(["/bin/sh", "-c", "pwd; echo oops >&2; exit 3"], tmp_path)

    assert await helper.output.read() == f"{tmp_path}\n".encode()
    assert await helper.errors.read() == b"oops\n"
    assert await helper.wait() == 3
    await helper.close()


async def test_much_output_comes_whole(tmp_path: Path) -> None:
    helper = await start_helper(["/bin/sh", "-c", "head -c 5000000 /dev/zero"], tmp_path)

    taken = 0
    while chunk := await helper.output.read(100_000):
        taken += len(chunk)
    await helper.close()

    assert taken == 5_000_000


async def test_a_helper_that_is_closed_ends(tmp_path: Path) -> None:
    helper = await start_helper(["/bin/sh", "-c", "echo $$; exec sleep 1000"], tmp_path)
    process = int(await helper.output.readline())

    await helper.close()

    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await start_helper(["/no/such/helper"], tmp_path)


async def test_it_can_write_nothing_where_it_reads(tmp_path: Path) -> None:
    helper = await start_helper(["/bin/sh", "-c", "echo x > made"], tmp_path)

    await helper.output.read()
    await helper.close()

    assert list(tmp_path.iterdir()) == []
