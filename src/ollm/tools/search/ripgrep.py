"""Runs ripgrep over files that were found, and says in words where a pattern is wrong."""

from __future__ import annotations

import os
import sys
import sysconfig
from bisect import bisect_right
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from functools import cache
from itertools import accumulate
from pathlib import Path

from ollm.domain.errors import ToolFailure
from ollm.system.helper_process import start_helper

_ARGUMENT_BYTES = 1_000_000  # of the 2 MB that a command line may have
_ARGUMENT_COST = 16  # bytes an argument takes besides its own
_CHUNK_BYTES = 1 << 18
MAX_SEARCHED_BYTES = 4 << 30  # a larger file, which may be a hole on the disk, is left out
_WRAPPER = "(?:"


@cache
def find_ripgrep() -> str:
    """The ripgrep that came with us, or the one on the PATH."""
    beside = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    return next((str(folder / "rg") for folder in beside if (folder / "rg").is_file()), "rg")


def group_by_directory(files: Sequence[str], in_part: frozenset[str]) -> list[str]:
    """The same files as fewer words: a directory stands for all right in it, unless it is one of those `in_part`."""
    parents = [path.rpartition("/")[0] for path in files]
    whole = dict.fromkeys(parents)
    for directory in in_part:
        whole.pop(directory, None)
    alone = [path for path, parent in zip(files, parents, strict=True) if parent not in whole]
    return [*(f"./{directory}" for directory in whole), *alone]


async def search_files(root: Path, options: Sequence[str], files: Sequence[str]) -> AsyncGenerator[bytes, None]:
    """What ripgrep prints about the files, or all right in a directory (paths from the root), in pieces. Close it, and
    the search ends."""
    for batch in _split_batches(files):
        async with aclosing(_run_ripgrep(root, [*options, "--", *batch])) as printed:
            async for chunk in printed:
                yield chunk


def _split_batches(files: Sequence[str]) -> Iterator[list[bytes]]:
    names = os.fsencode("\0".join(files) or os.devnull).split(b"\0")
    ends = list(accumulate(len(name) + _ARGUMENT_COST for name in names))
    first = taken = 0
    while first < len(names):
        last = max(bisect_right(ends, taken + _ARGUMENT_BYTES), first + 1)
        yield names[first:last]
        first, taken = last, ends[last - 1]


async def _run_ripgrep(root: Path, arguments: Sequence[str | bytes]) -> AsyncGenerator[bytes, None]:
    command = [
        find_ripgrep(),
        "--no-config",
        "--no-ignore",
        "--hidden",
        "--binary",
        "--max-depth=1",
        f"--max-filesize={MAX_SEARCHED_BYTES}",
        "--no-messages",
        "--color=never",
        *arguments,
    ]
    try:
        process = await start_helper(command, root)
    except FileNotFoundError as error:
        raise ToolFailure("NotFound", "ripgrep (rg) is not installed; grep needs it.") from error
    try:
        while chunk := await process.output.read(_CHUNK_BYTES):
            yield chunk
        complaint = (await process.errors.read()).decode("utf-8", "replace")
        if await process.wait() == 2 and "error" in complaint:
            raise make_pattern_failure(complaint)
    finally:
        await process.close()


def make_pattern_failure(complaint: str) -> ToolFailure:
    """ripgrep's words about a pattern, without the brackets it adds: the reason, the pattern, a mark below it."""
    lines = complaint.removeprefix("rg: ").strip().splitlines()
    reason = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), lines[0])
    shown = [line[4:] for line in lines if line.startswith("    ")]
    if shown and shown[0].startswith(_WRAPPER):
        shown = [shown[0][len(_WRAPPER) : -1], *(line[len(_WRAPPER) :] for line in shown[1:])]
    where = "\n".join(f"    {line}" for line in shown if line.strip())
    return ToolFailure(
        "InvalidPattern",
        f"Invalid regular expression: {reason}.\n{where}".rstrip(),
        action="Set literal to true to search for plain text.",
    )
