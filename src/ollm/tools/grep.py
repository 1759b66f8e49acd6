"""Search the text of files (T4.5-4.8, T4.12)."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import subprocess
from bisect import bisect_right
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import cache, cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, cast

import msgspec
from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count, suggest_names
from ollm.domain.tools import ToolResult
from ollm.system.sandbox.confined import find_bundled_program, make_helper_environment, start_confined
from ollm.tools.framework.base import Count, SmallForm, Text, Tool, ToolContext
from ollm.tools.framework.output import append_notes
from ollm.tools.search.scope import (
    ReadableFiles,
    SearchScope,
    find_readable,
    resolve_scope,
)

if TYPE_CHECKING:
    from io import BufferedReader

    from ollm.services.file_discovery.service import FileDiscoveryService

Lines = Annotated[int, Meta(ge=0, le=100)]
_WORDS = re.compile(r"(?<!\\)\b\w{3,}|(?<=\\.)\w{3,}")


class Grep(Tool["FileDiscoveryService"], frozen=True):
    """Search the text of files with a regular expression. Ignored files are left out."""

    name: ClassVar = "grep"
    category: ClassVar = "read"
    aliases: ClassVar = {
        "query": "pattern", "regex": "pattern", "include": "filePattern", "glob": "filePattern", "type": "fileType",
        "context": "contextLines", "limit": "maxResults", "directory": "path",
    }  # fmt: skip
    priority: ClassVar = {"code": 5, "debug": 3, "plan": 2, "assistant": 2}
    # A small window shows no path: very small models search a file they made up.
    small: ClassVar = SmallForm(description="Search the text of files.", useful_parameters=("path",))

    pattern: Text
    path: Annotated[str, Meta(min_length=1, description="Directory or file.")] = "."
    file_pattern: Annotated[Text | None, Meta(description="Only files like *.py or src/**.")] = None
    file_type: Annotated[Text | None, Meta(description="Only this type: py, ts, rust, …")] = None
    case_sensitive: bool = True
    literal: Annotated[bool, Meta(description="Pattern is plain text.")] = False
    multiline: bool = False
    context_lines: Lines = 0
    output: Literal["lines", "files", "counts"] = "lines"
    max_results: Count | None = None

    def summary(self) -> str:
        place = "" if self.path == "." else f" in {self.path}"
        return f"Search for {self.pattern!r}{place}" + (f" ({self.file_pattern})" if self.file_pattern else "")

    async def run(self, context: ToolContext, needs: FileDiscoveryService) -> ToolResult:
        if "\0" in self.pattern:
            raise ToolFailure("InvalidPattern", "The pattern contains a NUL character.")
        scope = await resolve_scope(context, needs, self.path)
        found = await self._find_files(context, needs, scope)
        most = self.max_results or context.settings.max_results
        notes = [*scope.notes, *found.notes]
        if self.output == "lines":
            return await self._search_lines(scope, found, notes, most)
        return await self._search_per_file(scope, found, notes, most)

    async def _find_files(
        self, context: ToolContext, discovery: FileDiscoveryService, scope: SearchScope
    ) -> ReadableFiles:
        if scope.file is not None:
            if (scope.root / scope.file).stat().st_size > MAX_SEARCHED_BYTES:
                most = f"{MAX_SEARCHED_BYTES >> 30} GiB"
                raise ToolFailure("TooLarge", f"{self.path} is larger than {most}; search it with a shell command.")
            return ReadableFiles(paths=[scope.file], search_paths=[scope.file])
        named = (self.file_pattern,) if self.file_pattern else ()
        typed = await find_type_globs(self.file_type) if self.file_type else ()
        return await find_readable(context, discovery, scope, *filter(None, (named, typed)))

    async def _search_lines(self, scope: SearchScope, found: ReadableFiles, notes: list[str], most: int) -> ToolResult:
        options = [*self._build_options(), "--json", f"--context={self.context_lines}"]
        matches = MatchCollector(found.paths)
        async with aclosing(read_output(scope.root, options, found.search_paths)) as printed:
            async for chunk in printed:
                matches.feed(chunk)
                if matches.is_full:
                    break
        kept = {path: lines for path, lines in sorted(matches.files.items()) if scope.still_contains(path)}
        total = f"at least {MAX_COUNTED_MATCHES:,}" if matches.is_full else f"{matches.count:,}"
        words = f"{total} {'match' if matches.count == 1 else 'matches'} in {format_count(len(kept), 'file')}"
        notes += [f"{scope.render_path(path)} is not text but matches" for path in sorted(matches.binary)[:5]]
        if matches.too_long:
            notes.append(f"{matches.too_long} matching lines are too long to show")
        if matches.count > most:
            notes.append(f"{words}, the first {most:,} shown; narrow the search or raise maxResults")
        written = list(_render_matches(scope, kept, most)) or [self._describe_no_match(len(found.paths))]
        return ToolResult(llm_content=append_notes("\n".join(written), notes), return_display=words)

    async def _search_per_file(
        self, scope: SearchScope, found: ReadableFiles, notes: list[str], most: int
    ) -> ToolResult:
        option = "--files-with-matches" if self.output == "files" else "--count-matches"
        options = [*self._build_options(), option, "--with-filename", "--null"]
        printed = b"".join([chunk async for chunk in read_output(scope.root, options, found.search_paths)])
        wanted = set(found.paths)
        counted = sorted((path, count) for path, count in _parse_counts(printed, self.output) if path in wanted)
        counts = {path: count for path, count in counted if scope.still_contains(path)}
        lines = [
            scope.render_path(path) + (f": {count:,}" if self.output == "counts" else "")
            for path, count in counts.items()
        ]
        words = format_count(len(counts), "file")
        if self.output == "counts":
            words = f"{format_count(sum(counts.values()), 'match', 'matches')} in {words}"
        if rest := len(lines[most:]):
            notes.append(f"{words}; {format_count(rest, 'more file')}, narrow the search or raise maxResults")
        return ToolResult(
            llm_content=append_notes("\n".join(lines[:most]) or self._describe_no_match(len(found.paths)), notes),
            return_display=words,
        )

    def _build_options(self) -> list[str]:
        spans_lines = self.multiline or "\n" in self.pattern
        return [
            "--case-sensitive" if self.case_sensitive else "--ignore-case",
            *(["--fixed-strings"] if self.literal else []),
            *(["--multiline", "--multiline-dotall"] if spans_lines else []),
            f"--regexp={self.pattern}",
        ]

    def _describe_no_match(self, searched: int) -> str:
        text = f"No match for {self.pattern!r} in {format_count(searched, 'file')}."
        longest = max(_WORDS.findall(self.pattern), key=len, default="")
        return f"{text} Try a shorter pattern, such as {longest}." if longest and longest != self.pattern else text


def _render_matches(scope: SearchScope, files: dict[str, list[FoundLine]], most: int) -> Iterator[str]:
    """Render matches as `path:12:text`, context lines as `path-13-text`, and gaps as `--`."""
    apart = any(not line.matches for lines in files.values() for line in lines)
    left, following = most, -1
    for path, lines in files.items():
        name = scope.render_path(path)
        for line in lines:
            left -= line.starts
            if left < 0:
                return
            if apart and following not in (-1, line.number):
                yield "--"
            following = line.number + 1
            mark = ":" if line.matches else "-"
            yield f"{name}{mark}{line.number}{mark}{line.text}"
        following = 0


def _parse_counts(printed: bytes, output: str) -> Iterator[tuple[str, int]]:
    if output == "files":
        yield from ((os.fsdecode(name).removeprefix("./"), 1) for name in printed.split(b"\0") if name)
        return
    for line in printed.split(b"\n"):
        name, found, count = line.rpartition(b"\0")
        if found and count.isdigit():
            yield os.fsdecode(name).removeprefix("./"), int(count)


_ARGUMENT_BYTES = 1_000_000  # A command line may have 2 MB.
_ARGUMENT_COST = 16  # Each argument takes so many bytes besides its own.
_CHUNK_BYTES = 1 << 18
MAX_SEARCHED_BYTES = 4 << 30  # A larger file may be sparse and is left out.
_OPTIONS = ("--no-ignore", "--hidden", "--binary", "--max-depth=1", "--no-messages", "--color=never")


@cache
def find_ripgrep() -> str:
    return find_bundled_program("rg") or "/usr/bin/rg"


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
    process = _start_ripgrep(root, [*_OPTIONS, f"--max-filesize={MAX_SEARCHED_BYTES}", *options, "--", *batch])
    output, errors = cast("BufferedReader", process.stdout), cast("BufferedReader", process.stderr)
    complaint = asyncio.create_task(asyncio.to_thread(errors.read))
    try:
        while chunk := await asyncio.to_thread(output.read1, _CHUNK_BYTES):
            yield chunk
        said = (await complaint).decode("utf-8", "replace")
        if await asyncio.to_thread(process.wait) == 2 and said:  # With --no-messages it is about the pattern alone.
            raise ToolFailure(
                "InvalidPattern",
                f"Invalid regular expression: {said.removeprefix('rg: ').strip()}",
                action="Set literal to true to search for plain text.",
            )
    finally:
        process.kill()
        await asyncio.to_thread(process.communicate)  # It waits for the end, and closes the pipes.


def _start_ripgrep(root: Path, arguments: Sequence[str | bytes]) -> subprocess.Popen[bytes]:
    """Start ripgrep so that it can only read, and only below the root."""

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [find_ripgrep(), "--no-config", *arguments],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=make_helper_environment(os.environ),
        )

    try:
        return start_confined(start, find_ripgrep(), [str(root)])
    except FileNotFoundError as error:
        raise ToolFailure("NotFound", "ripgrep (rg) is not installed; grep needs it.") from error


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
    printed = _start_ripgrep(Path(find_ripgrep()).parent, ["--type-list"]).communicate()[0].decode()
    listed = (line.partition(": ") for line in printed.splitlines())
    return {name: tuple(globs.split(", ")) for name, _, globs in listed}


_MAX_LINE_CHARS = 400
_CHARS_BEFORE_MATCH = 120
_MAX_RECORD_BYTES = 8 << 20  # A longer line of output is counted and not shown.
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
        self._rest = b""  # It is the beginning of a line whose end has not come.
        self._decode = msgspec.json.Decoder().decode

    @cached_property
    def _wanted_paths(self) -> frozenset[str]:
        """The paths to search, built only when there is a match."""
        return frozenset(self._paths)

    @property
    def is_full(self) -> bool:
        return self.count >= MAX_COUNTED_MATCHES

    def feed(self, chunk: bytes) -> None:
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[: _MAX_RECORD_BYTES + 1]
        self.too_long += sum(len(line) > _MAX_RECORD_BYTES for line in lines)
        for line in lines:
            if 0 < len(line) <= _MAX_RECORD_BYTES:
                self._take_record(self._decode(line))

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
