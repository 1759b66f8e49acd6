"""Search the text of files (T4.5-4.8, T4.12)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count
from ollm.domain.tools import ToolResult
from ollm.tools.framework.base import Count, SmallForm, Text, Tool, ToolContext
from ollm.tools.framework.output import append_notes
from ollm.tools.search.ripgrep import (
    MAX_COUNTED_MATCHES,
    MAX_SEARCHED_BYTES,
    FoundLine,
    MatchCollector,
    find_type_globs,
    read_output,
)
from ollm.tools.search.scope import (
    ReadableFiles,
    SearchScope,
    find_readable,
    resolve_scope,
)

if TYPE_CHECKING:
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
