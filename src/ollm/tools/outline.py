"""Show a file's definitions, or a map of the most used definitions of a directory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, ClassVar

import msgspec

from ollm.config.settings import OutputSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count, format_names, format_suggestion, suggest_names
from ollm.domain.tools import ToolResult
from ollm.services.code_map.syntax_tree import (
    CodeDefinition,
    find_parse_error,
    fit_outline,
    has_grammar,
    match_symbol,
    normalize_symbol,
    outline_text,
)
from ollm.tools.files.file_text import NOTE_CHARS, NOTE_LINES, LineRange, count_lines, read_whole_text
from ollm.tools.framework.base import PATH_ALIASES, WIDE_WINDOW_TOKENS, Count, SmallForm, Text, Tool, ToolContext
from ollm.tools.framework.output import append_notes, show_controls, take_head
from ollm.tools.search.scope import (
    find_readable,
    resolve_scope,
)

if TYPE_CHECKING:
    from ollm.services.code_map.service import CodeMap
    from ollm.tools.catalogue import ToolServices


class Outline(Tool["ToolServices"], frozen=True):
    """Show the classes and functions of a file with their line numbers, or a map of a directory's most used ones."""

    name: ClassVar = "outline"
    category: ClassVar = "read"
    aliases: ClassVar = {**PATH_ALIASES, "directory": "path"}
    priority: ClassVar = {"code": 10, "debug": 10, "plan": 11, "assistant": 11}
    min_window: ClassVar = WIDE_WINDOW_TOKENS
    small: ClassVar = SmallForm(description="Show what a file or directory defines.")

    path: Text = "."
    max_tokens: Count | None = None

    def summary(self) -> str:
        return f"Outline {self.path}"

    async def run(self, context: ToolContext, needs: ToolServices) -> ToolResult:
        scope = await resolve_scope(context, needs.discovery, self.path)
        most = self.max_tokens or needs.code_map.settings.max_tokens
        if scope.file is not None:
            with context.open_file(self.path) as file:
                text = await render_file_outline(self.path, file, most, needs.count_tokens)
            lines = text.count("\n") + 1
            return ToolResult(llm_content=text, return_display=f"{self.path}: outline of {format_count(lines, 'line')}")
        found = await find_readable(context, needs.discovery, scope)
        notes = [*scope.notes, *found.notes]
        room = most - sum(needs.count_tokens(f"\n[{note}]") for note in notes)
        prefix = "" if scope.root == scope.workspace else f"{scope.render_path('')}/"
        drawn = await needs.code_map.build_map(scope.root, found.paths, max(room, 1), needs.count_tokens, prefix)
        if not drawn.text:
            raise self._make_empty_failure(drawn, most)
        words = f"{self.path}: map of {format_count(drawn.files, 'file')}"
        return ToolResult(llm_content=append_notes(drawn.text, [*notes, *drawn.notes]), return_display=words)

    def _make_empty_failure(self, drawn: CodeMap, most: int) -> ToolFailure:
        place = "the workspace" if self.path == "." else self.path
        if drawn.has_more:
            return ToolFailure(
                "NotFound", f"No line of the map of {place} fits into {format_count(most, 'token')}; allow more."
            )
        return ToolFailure("NotFound", f"No code was found in {place}. Use ls to see what there is.")


MAX_OUTLINED_BYTES = 10 * 1024 * 1024


async def render_file_outline(path: str, file: BinaryIO, max_tokens: int, count: Callable[[str], int]) -> str:
    """Render a file's definitions within the budget, below a line with its length. Raises ToolFailure."""
    text = read_whole_text(path, file, MAX_OUTLINED_BYTES)
    data = text.encode("utf-8", "replace")
    definitions = await asyncio.to_thread(outline_text, path, data)
    head = f"{path}: {format_count(count_lines(text), 'line')}"
    if line := await asyncio.to_thread(find_parse_error, path, data):
        head = f"{head}; line {line} does not parse, so something may be missing here"
    if not definitions:
        why = "nothing in it is a definition" if has_grammar(path) else "its language cannot be parsed here"
        return f"{head}; {why}. Read it with read_file."
    kept = await asyncio.to_thread(fit_outline, definitions, max_tokens - count(f"{head}\n"), count)
    return "\n".join([head, *kept])


async def find_symbol_lines(path: str, file: BinaryIO, symbol: str, *, numbered: bool) -> tuple[LineRange, str]:
    """Find the lines of one definition, and describe its other definitions, such as `impl` blocks. Raises ToolFailure
    if no definition or more than one has that name."""
    data = read_whole_text(path, file, MAX_OUTLINED_BYTES).encode("utf-8", "replace")
    file.seek(0)
    definitions = await asyncio.to_thread(outline_text, path, data)
    matches = match_symbol(symbol, definitions)
    if not matches:
        raise _make_unknown_failure(path, symbol, definitions)
    found = [match for match in matches if match.kind != "impl"] or matches  # The type comes before its impl blocks.
    places = {(match.first, match.last) for match in found}
    if len(places) > 1 and not _is_overloaded(found):
        told = f"{path} defines {symbol} more than once: {list_matches(found)}. Read one with startLine and endLine."
        raise ToolFailure("NotFound", told)
    first, last = min(first for first, _ in places), max(last for _, last in places)
    others = list_matches([match for match in matches if match not in found])
    return LineRange(first=first, last=last, numbered=numbered), others


def list_matches(found: Sequence[CodeDefinition]) -> str:
    names = [match.signature if match.kind == "impl" else match.full_name for match in found]
    lines = [f"(lines {match.first} to {match.last})" for match in found]
    return format_names([" ".join(pair) for pair in zip(names, lines, strict=True)], MAX_LISTED_PLACES)


def _is_overloaded(found: Sequence[CodeDefinition]) -> bool:
    ordered = sorted(found, key=lambda match: match.first)
    close = all(later.first - earlier.last <= 2 for earlier, later in pairwise(ordered))
    return close and len({match.full_name for match in found}) == 1


def _make_unknown_failure(path: str, symbol: str, definitions: Sequence[CodeDefinition]) -> ToolFailure:
    if not has_grammar(path):
        told = f"{path} cannot be parsed here; find {symbol} with grep and read it with startLine."
        return ToolFailure("NotFound", told)
    names = list(dict.fromkeys(found.full_name for found in definitions))
    listed = f"it defines {format_names(names, 20)}." if names else "see outline."
    return ToolFailure("NotFound", f"{path} does not define {symbol}; {format_suggestion(symbol, names, listed)}")


MIN_DEFINITIONS = 3
NOTE_TOKENS = 60


def replace_rest(
    path: str, content: bytes, result: ToolResult, limits: OutputSettings, max_tokens: int | None, needs: ToolServices
) -> ToolResult:
    """Replace the rest of a long file with its outline, or return the result unchanged without one."""
    definitions = outline_text(path, content)
    if len(definitions) < MIN_DEFINITIONS:
        return result
    whole = show_controls(content.decode("utf-8", "replace"))
    budget = needs.code_map.settings.max_tokens
    budget = budget if max_tokens is None else min(budget, max_tokens // 2)
    outline = fit_outline(definitions, budget, needs.count_tokens)
    head = _take_head(whole, "\n".join(outline), limits, max_tokens, needs.count_tokens)
    shown, total = head.count("\n"), count_lines(whole)
    rest = [found for found in definitions if found.last > shown]
    if len(rest) < len(definitions):
        outline = fit_outline(rest, budget, needs.count_tokens)
    note = (
        f"[lines 1 to {shown:,} of {total:,} are shown; read on with startLine {shown + 1}, or name a symbol. "
        "Outline of the rest:]"
    )
    return msgspec.structs.replace(
        result,
        llm_content="\n".join([f"{head}{note}", *outline]),
        return_display=f"{path}: {shown:,} of {total:,} lines and an outline of the rest",
        full_output=whole,
    )


def _take_head(
    whole: str, outline: str, limits: OutputSettings, max_tokens: int | None, count: Callable[[str], int]
) -> str:
    """Take whole lines from the beginning, as many as fit beside the outline."""
    chars = max(limits.max_chars - len(outline) - NOTE_CHARS, 1)
    lines = max(limits.max_lines - outline.count("\n") - NOTE_LINES, 1)
    head = take_head(whole, chars, lines)
    if max_tokens is not None:
        left = max(max_tokens - count(outline) - NOTE_TOKENS, 0)
        while head and (needed := count(head)) > left:
            head = take_head(head, min(int(len(head) * left / needed), len(head) - 1), lines)
    return head[: head.rfind("\n") + 1]


MAX_LISTED_PLACES = 12
MAX_COMPARED_NAMES = 50_000


async def find_symbol_file(context: ToolContext, needs: ToolServices, path: str, symbol: str) -> str:
    """Find the only file below a directory that defines a symbol. Raises ToolFailure if none or several do."""
    scope = await resolve_scope(context, needs.discovery, path)
    files = await find_readable(context, needs.discovery, scope)
    found = await needs.code_map.find_symbol(scope.root, files.paths, symbol)
    places = {match.path: match.definition for match in found}
    if not places:
        names = await needs.code_map.list_symbols(scope.root, files.paths)
        raise ToolFailure("NotFound", f"No file in {path} defines {symbol}{await suggest_symbol(symbol, names)}")
    if len(places) > 1:
        listed = [f"{scope.render_path(file)} (line {match.line})" for file, match in places.items()]
        told = format_names(listed, MAX_LISTED_PLACES)
        raise ToolFailure("NotFound", f"{symbol} is defined in {told}. Say which with path.")
    return scope.render_path(next(iter(places)))


async def suggest_symbol(symbol: str, names: list[str]) -> str:
    """Return the end of a sentence: similar names, or else the next step."""
    wanted = normalize_symbol(symbol)
    last = wanted.rpartition(".")[2]
    same = [name for name in names if name.rpartition(".")[2].casefold() == last.casefold()][:3]
    near = same or await asyncio.to_thread(suggest_names, wanted, names[:MAX_COMPARED_NAMES], 3)
    return f"; did you mean {' or '.join(near)}?" if near else ". Search for it with grep."
