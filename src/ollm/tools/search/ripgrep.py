"""Running ripgrep over discovered files, with clear errors for invalid patterns."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
import sysconfig
from bisect import bisect_right
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count, suggest_names
from ollm.system.helper_process import start_helper
from ollm.system.sandbox.confined import find_program, make_helper_environment, start_confined

_ARGUMENT_BYTES = 1_000_000  # of the 2 MB that a command line may have
_ARGUMENT_COST = 16  # bytes an argument takes besides its own
_CHUNK_BYTES = 1 << 18
MAX_SEARCHED_BYTES = 4 << 30  # a larger file, which may be a hole on the disk, is left out
_WRAPPER = "(?:"


@cache
def find_ripgrep() -> str:
    """Find the bundled ripgrep, or the one on the PATH."""
    beside = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    bundled = next((str(folder / "rg") for folder in beside if (folder / "rg").is_file()), None)
    return bundled or find_program("rg") or "/usr/bin/rg"


async def read_output(root: Path, options: Sequence[str], files: Sequence[str]) -> AsyncGenerator[bytes, None]:
    """Yield ripgrep's output about the files, or about all files directly in a directory (paths from the root)."""
    for batch in _split_batches(files):
        async with aclosing(_run_ripgrep(root, options, batch)) as printed:
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


async def _run_ripgrep(root: Path, options: Sequence[str], batch: Sequence[bytes]) -> AsyncGenerator[bytes, None]:
    command: list[str | bytes] = [
        find_ripgrep(),
        "--no-config",
        "--no-ignore",
        "--hidden",
        "--binary",
        "--max-depth=1",
        "--no-messages",
        "--color=never",
        f"--max-filesize={MAX_SEARCHED_BYTES}",
        *options,
        "--",
        *batch,
    ]
    try:
        process = await start_helper(command, root)
    except FileNotFoundError as error:
        raise ToolFailure("NotFound", "ripgrep (rg) is not installed; grep needs it.") from error
    try:
        while chunk := await process.output.read(_CHUNK_BYTES):
            yield chunk
        complaint = (await process.errors.read()).decode("utf-8", "replace")
        if await process.wait() == 2 and complaint:  # of the pattern: it says nothing of files
            raise make_pattern_failure(complaint)
    finally:
        await process.close()


def make_pattern_failure(complaint: str) -> ToolFailure:
    """Convert ripgrep's message about a pattern, without the brackets it adds: the reason, the pattern, a marker."""
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


async def find_type_globs(name: str) -> tuple[str, ...]:
    """Find the globs of a file type. Raises a ValidationError with the closest names."""
    types = await asyncio.to_thread(_load_types)
    if name not in types:
        near = suggest_names(name, sorted(types), 3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ", such as py, ts, rust, md."
        raise ToolFailure("ValidationError", f"fileType: there is no type {name!r}{hint}")
    return types[name]


@cache
def _load_types() -> dict[str, tuple[str, ...]]:
    printed = start_confined(_run_type_list, find_ripgrep())
    listed = (line.partition(": ") for line in printed.splitlines())
    return {name: tuple(globs.split(", ")) for name, _, globs in listed}


def _run_type_list() -> str:
    command = [find_ripgrep(), "--no-config", "--type-list"]
    return subprocess.run(
        command, capture_output=True, check=True, text=True, env=make_helper_environment(os.environ)
    ).stdout


_MAX_LINE_CHARS = 400  # characters of a line that are shown
_CHARS_BEFORE_MATCH = 120
_MAX_RECORD_BYTES = 64 << 20  # bytes of one line of output
MAX_COUNTED_MATCHES = 10_000


class FoundLine(NamedTuple):
    """A line of a file: a match or its context. A match over several lines `starts` with the first."""

    number: int
    text: str
    matches: bool
    starts: bool


class MatchCollector:
    """A collector of matches from ripgrep's output. It is full when it has far more matches than anyone reads. Output
    about files outside the search is ignored."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self._paths = wanted
        self.files: dict[str, list[FoundLine]] = {}
        self.binary: set[str] = set()
        self.count = 0
        self.too_long = 0
        self._waiting: list[bytes] = []
        self._size = 0
        self._decode = msgspec.json.Decoder().decode

    @cached_property
    def _wanted_paths(self) -> frozenset[str]:
        """The paths to search, built only when there is a match."""
        return frozenset(self._paths)

    @property
    def is_full(self) -> bool:
        return self.count >= MAX_COUNTED_MATCHES

    def feed(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._buffer_part(first)
        for part in others:
            self._finish_line()
            self._buffer_part(part)

    def _buffer_part(self, part: bytes) -> None:
        """Buffer a part of a line. A line that is far too long is discarded."""
        self._size += len(part)
        if self._size <= _MAX_RECORD_BYTES:
            self._waiting.append(part)

    def _finish_line(self) -> None:
        if self._size > _MAX_RECORD_BYTES:
            self.too_long += 1
        elif self._size:
            self._take_record(self._decode(b"".join(self._waiting)))
        self._waiting, self._size = [], 0

    def _take_record(self, record: Any) -> None:
        kind, data = record["type"], record["data"]
        if kind in ("match", "context"):
            path = _decode_text(data["path"], "surrogateescape").removeprefix("./")
            if path not in self._wanted_paths:
                return
            start = data["submatches"][0]["start"] if data["submatches"] else 0
            lines = self.files.setdefault(path, [])
            lines.extend(_make_lines(data, start, matches=kind == "match"))
            self.count += kind == "match"
        elif kind == "end" and data["binary_offset"] is not None:
            self._drop_binary(_decode_text(data["path"], "surrogateescape").removeprefix("./"))

    def _drop_binary(self, path: str) -> None:
        lines = self.files.pop(path, None)
        if lines:
            self.binary.add(path)
            self.count -= sum(line.starts for line in lines)


def _make_lines(data: Any, start: int, *, matches: bool) -> list[FoundLine]:
    text = _decode_text(data["lines"], "replace")
    texts = text.removesuffix("\n").split("\n")
    first = data["line_number"]
    return [
        FoundLine(first + at, _trim_line(line.removesuffix("\r"), 0 if at else start), matches, matches and not at)
        for at, line in enumerate(texts)
    ]


def _trim_line(line: str, start: int) -> str:
    """Trim a line to a readable length around the match. `start` is in bytes, which is accurate enough."""
    if len(line) <= _MAX_LINE_CHARS:
        return line
    begin = max(min(start, len(line)) - _CHARS_BEFORE_MATCH, 0)
    end = begin + _MAX_LINE_CHARS
    left = f"… {format_count(begin, 'character')} … " if begin else ""
    right = f" … {format_count(len(line) - end, 'character')} …" if end < len(line) else ""
    return left + line[begin:end] + right


def _decode_text(record: dict[str, str], errors: str) -> str:
    return record["text"] if "text" in record else base64.b64decode(record["bytes"]).decode("utf-8", errors)
