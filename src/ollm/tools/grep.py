"""grep (T4.5-4.8, T4.12)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import aclosing
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.files import DiscoveryOptions
from ollm.domain.tools import Location, Risk, ToolResult
from ollm.services.file_discovery import FileDiscoveryService
from ollm.tools.framework.base import Tool, ToolContext
from ollm.tools.search.file_types import globs_of_type
from ollm.tools.search.matches import MOST_COUNTED, FoundLine, Matches
from ollm.tools.search.ripgrep import places, search
from ollm.tools.search.scope import Most, Readable, Scope, readable, scope_of, with_notes

Word = Annotated[str, Meta(min_length=1)]
Lines = Annotated[int, Meta(ge=0, le=100)]
_WORDS = re.compile(r"(?<!\\)\b\w{3,}|(?<=\\.)\w{3,}")


class Grep(Tool[FileDiscoveryService], frozen=True):
    """Search the text of files with a regular expression. Ignored files are left out."""

    name: ClassVar[str] = "grep"
    risk: ClassVar[Risk] = Risk.LOW
    reads_only: ClassVar[bool] = True
    aliases: ClassVar[dict[str, str]] = {
        "query": "pattern", "regex": "pattern", "include": "filePattern", "glob": "filePattern", "type": "fileType",
        "context": "contextLines", "limit": "maxResults", "directory": "path",
    }  # fmt: skip

    pattern: Annotated[str, Meta(min_length=1, description="Regular expression.")]
    path: Annotated[str, Meta(min_length=1, description="Directory or file.")] = "."
    file_pattern: Annotated[Word | None, Meta(description="Only files like *.py or src/**.")] = None
    file_type: Annotated[Word | None, Meta(description="Only this type: py, ts, rust, …")] = None
    case_sensitive: bool = True
    literal: Annotated[bool, Meta(description="Pattern is plain text.")] = False
    multiline: bool = False
    context_lines: Lines = 0
    output: Literal["lines", "files", "counts"] = "lines"
    max_results: Most | None = None

    def summary(self) -> str:
        place = "" if self.path == "." else f" in {self.path}"
        return f"Search for {self.pattern!r}{place}" + (f" ({self.file_pattern})" if self.file_pattern else "")

    def locations(self) -> list[Location]:
        return [Location(target=self.path)]

    async def run(self, context: ToolContext, needs: FileDiscoveryService) -> ToolResult:
        if "\0" in self.pattern:
            raise ToolFailure("InvalidPattern", "The pattern holds a NUL character, which no text file has.")
        scope = await scope_of(context, needs, self.path)
        found = await self._files(context, needs, scope)
        most = self.max_results or context.settings.max_results
        notes = [*scope.notes, *found.notes]
        if self.output == "lines":
            return await self._lines(scope, found, notes, most)
        return await self._per_file(scope, found, notes, most)

    async def _files(self, context: ToolContext, discovery: FileDiscoveryService, scope: Scope) -> Readable:
        if scope.file is not None:
            return Readable(paths=[scope.file])
        named = (self.file_pattern,) if self.file_pattern else ()
        typed = await globs_of_type(self.file_type) if self.file_type else ()
        options = DiscoveryOptions(root=str(scope.root), within=scope.within)
        return readable(context, scope, await discovery.paths(options, *filter(None, (named, typed))))

    async def _lines(self, scope: Scope, found: Readable, notes: list[str], most: int) -> ToolResult:
        matches = Matches(found.paths)
        options = [*self._options(), "--json", f"--context={self.context_lines}"]
        async with aclosing(search(scope.root, options, _places(found))) as output:
            async for chunk in output:
                matches.feed(chunk)
                if matches.enough:
                    break
        kept = {path: lines for path, lines in sorted(matches.files.items()) if scope.still_holds(path)}
        total = f"at least {MOST_COUNTED:,}" if matches.enough else f"{matches.count:,}"
        words = f"{total} {'match' if matches.count == 1 else 'matches'} in {len(kept):,} {_files(len(kept))}"
        notes += [f"{scope.shown(path)} is not text but matches" for path in sorted(matches.binary)[:5]]
        if matches.too_long:
            notes.append(f"{matches.too_long} matching lines are too long to show")
        if matches.count > most:
            notes.append(f"{words}, the first {most:,} shown; narrow the search or raise maxResults")
        written = list(_written(scope, kept, most)) or [self._nothing(len(found.paths))]
        return ToolResult(llm_content=with_notes(written, notes), return_display=words)

    async def _per_file(self, scope: Scope, found: Readable, notes: list[str], most: int) -> ToolResult:
        option = "--files-with-matches" if self.output == "files" else "--count-matches"
        output = search(scope.root, [*self._options(), option, "--with-filename", "--null"], _places(found))
        said = b"".join([chunk async for chunk in output])
        wanted = set(found.paths)
        told = sorted((path, count) for path, count in _counted(said, self.output) if path in wanted)
        counts = {path: count for path, count in told if scope.still_holds(path)}
        lines = [
            scope.shown(path) + (f": {count:,}" if self.output == "counts" else "") for path, count in counts.items()
        ]
        words = f"{len(counts):,} {_files(len(counts))}"
        if self.output == "counts":
            words = f"{sum(counts.values()):,} matches in {words}"
        if rest := len(lines[most:]):
            notes.append(f"{words}; {rest:,} more {_files(rest)}, narrow the search or raise maxResults")
        return ToolResult(
            llm_content=with_notes(lines[:most] or [self._nothing(len(found.paths))], notes), return_display=words
        )

    def _options(self) -> list[str]:
        spans_lines = self.multiline or "\n" in self.pattern
        return [
            "--case-sensitive" if self.case_sensitive else "--ignore-case",
            *(["--fixed-strings"] if self.literal else []),
            *(["--multiline", "--multiline-dotall"] if spans_lines else []),
            f"--regexp={self.pattern}",
        ]

    def _nothing(self, searched: int) -> str:
        told = f"No match for {self.pattern!r} in {searched:,} {_files(searched)}."
        longest = max(_WORDS.findall(self.pattern), key=len, default="")
        return f"{told} Try a shorter pattern, such as {longest}." if longest and longest != self.pattern else told


def _places(found: Readable) -> list[str]:
    return found.paths if found.in_part is None else places(found.paths, found.in_part)


def _files(count: int) -> str:
    return "file" if count == 1 else "files"


def _written(scope: Scope, files: dict[str, list[FoundLine]], most: int) -> Iterator[str]:
    """`path:12:text` for lines that match, `path-13-text` for those around them, `--` between places far apart."""
    apart = any(not line.matches for lines in files.values() for line in lines)
    left, following = most, -1
    for path, lines in files.items():
        name = scope.shown(path)
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


def _counted(said: bytes, output: str) -> Iterator[tuple[str, int]]:
    if output == "files":
        yield from ((os.fsdecode(name).removeprefix("./"), 1) for name in said.split(b"\0") if name)
        return
    for line in said.split(b"\n"):
        name, found, count = line.rpartition(b"\0")
        if found and count.isdigit():
            yield os.fsdecode(name).removeprefix("./"), int(count)
