"""The outline of one open file, and the lines of one definition in it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import BinaryIO

from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.domain.suggest import format_suggestion
from ollm.services.code_map.definition import CodeDefinition, match_symbol
from ollm.services.code_map.outline import fit_outline, outline_text
from ollm.services.code_map.syntax_tree import find_parse_error
from ollm.tools.files.encoding import Encoding
from ollm.tools.files.file_text import LineRange, detect_text_encoding, make_too_large_failure

MAX_OUTLINED_BYTES = 10 * 1024 * 1024
MAX_LISTED_MATCHES = 12


class SymbolLines(Data, frozen=True):
    """Where one definition is, and in words what else is defined for it, such as `impl` blocks."""

    lines: LineRange
    others: str = ""


async def render_file_outline(path: str, file: BinaryIO, max_tokens: int, count: Callable[[str], int]) -> str:
    """Its definitions within the budget, below a line that says how long the file is. Raises ToolFailure."""
    data = _read_all(path, file)
    definitions = await asyncio.to_thread(outline_text, path, data)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    head = f"{path}: {lines:,} {'line' if lines == 1 else 'lines'}"
    if not definitions:
        return f"{head}; nothing in it looks like a definition. Read it with read_file."
    if line := await asyncio.to_thread(find_parse_error, path, data):
        head = f"{head}; line {line} does not parse, so something may be missing here"
    kept = await asyncio.to_thread(fit_outline, definitions, max_tokens - count(f"{head}\n"), count)
    return "\n".join([head, *kept])


async def find_symbol_lines(path: str, file: BinaryIO, symbol: str, *, numbered: bool) -> SymbolLines:
    """Where one definition is. Raises ToolFailure when there is none of that name, or more than one."""
    data = _read_all(path, file)
    file.seek(0)
    definitions = await asyncio.to_thread(outline_text, path, data)
    matches = match_symbol(symbol, definitions)
    if not matches:
        raise _make_unknown_failure(path, symbol, definitions)
    found = [match for match in matches if match.kind != "impl"] or matches  # the type, before what is done for it
    places = {(match.first, match.last) for match in found}
    if len(places) > 1 and not _is_overloaded(found):
        told = f"{path} defines {symbol} more than once: {list_matches(found)}. Read one with startLine and endLine."
        raise ToolFailure("NotFound", told)
    first, last = min(first for first, _ in places), max(last for _, last in places)
    others = list_matches([match for match in matches if match not in found])
    return SymbolLines(lines=LineRange(first=first, last=last, numbered=numbered), others=others)


def list_matches(found: Sequence[CodeDefinition]) -> str:
    listed = ", ".join(
        f"{match.signature if match.kind == 'impl' else match.full_name} (lines {match.first} to {match.last})"
        for match in found[:MAX_LISTED_MATCHES]
    )
    return f"{listed}, …" if len(found) > MAX_LISTED_MATCHES else listed


def _is_overloaded(found: Sequence[CodeDefinition]) -> bool:
    """Whether they are one thing written several times, one after the other: overloads, a property and its setter."""
    ordered = sorted(found, key=lambda match: match.first)
    close = all(later.first - earlier.last <= 2 for earlier, later in pairwise(ordered))
    return close and len({match.full_name for match in found}) == 1


def _make_unknown_failure(path: str, symbol: str, definitions: Sequence[CodeDefinition]) -> ToolFailure:
    names = list(dict.fromkeys(found.full_name for found in definitions))
    listed = f"it defines {', '.join(names[:20])}{', …' if len(names) > 20 else ''}." if names else "see outline."
    return ToolFailure("NotFound", f"{path} does not define {symbol}; {format_suggestion(symbol, names, listed)}")


def _read_all(path: str, file: BinaryIO) -> bytes:
    """The file as UTF-8, whatever it is written in."""
    size = os.fstat(file.fileno()).st_size
    data = file.read(MAX_OUTLINED_BYTES + 1)
    if len(data) > MAX_OUTLINED_BYTES:
        raise make_too_large_failure(path, size, MAX_OUTLINED_BYTES)
    encoding: Encoding = detect_text_encoding(path, data, len(data))
    return encoding.decode(data).encode("utf-8", "replace")
