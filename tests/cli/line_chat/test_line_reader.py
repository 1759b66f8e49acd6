"""Lines from a terminal, read beside everything else."""

import asyncio
import os

import pytest

from ollm.cli.line_chat.line_reader import LineReader


async def ask(reader: LineReader, *lines: str | None) -> str | None:
    for line in lines:
        reader.put(line)
    return await asyncio.wait_for(reader.ask("> "), 30)


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (["hello"], "hello"),
        ([""], ""),
        ([None], None),
        (["one\\", "two"], "one\ntwo"),
        (["a\\", "b\\", "c"], "a\nb\nc"),
        (["one\\", None], "one\n"),
        (["\\\\", "x"], "\\\nx"),
    ],
)
async def test_a_line_that_ends_with_a_backslash_continues(typed: list[str | None], line: str | None) -> None:
    assert await ask(LineReader(), *typed) == line


async def test_the_prompt_stands_before_a_line_and_a_bar_before_what_continues_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    await ask(LineReader(), "one\\", "two")

    assert capsys.readouterr().out == "> | "


async def test_what_comes_on_standard_input_is_cut_into_lines_and_its_end_is_an_end() -> None:
    reading, writing = os.pipe()
    kept = os.dup(0)
    os.dup2(reading, 0)
    try:
        reader = LineReader()
        with reader.start_reading():
            os.write(writing, "first\nsecond é\n".encode() + b"\xff\n")
            assert [await asyncio.wait_for(reader.ask(""), 30) for _ in range(3)] == ["first", "second é", "\ufffd"]
            os.close(writing)
            assert await asyncio.wait_for(reader.ask(""), 30) is None
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(reading)
