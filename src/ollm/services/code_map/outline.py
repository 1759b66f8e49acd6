"""The outline of one file's text, by its syntax tree where a grammar is installed, else by patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ollm.services.code_map.definition import CodeDefinition, render_definition
from ollm.services.code_map.patterns import find_definitions
from ollm.services.code_map.syntax_tree import parse_definitions

MAX_PARSED_BYTES = 2 * 1024 * 1024  # a larger file is read by patterns, which stop by themselves

CountTokens = Callable[[str], int]


def outline_text(name: str, data: bytes) -> list[CodeDefinition]:
    """What a file defines, in its order. The name says what language it is in."""
    parsed = parse_definitions(name, data) if len(data) <= MAX_PARSED_BYTES else None
    if parsed:
        return parsed
    return find_definitions(name, data.decode("utf-8", "replace"))


def fit_outline(definitions: Sequence[CodeDefinition], max_tokens: int, count: CountTokens) -> list[str]:
    """The outline within so many tokens: what is inside others goes first, deepest first, then the end is cut; what
    is left out is said."""
    shown = list(definitions)
    deepest = max((found.depth for found in shown), default=0)
    while deepest > 0 and _count_lines(shown, count) > max_tokens:
        shown = [found for found in shown if found.depth < deepest]
        deepest -= 1
    lines = [render_definition(found) for found in shown]
    kept = take_within(lines, max_tokens, count)
    if len(kept) == len(definitions):
        return kept
    kept = take_within(lines, max_tokens - count(_say_more(len(definitions))), count)
    return [*kept, _say_more(len(definitions) - len(kept))]


def _say_more(gone: int) -> str:
    return f"… {gone:,} more {'definition' if gone == 1 else 'definitions'} not shown"


def take_within(lines: Sequence[str], max_tokens: int, count: CountTokens) -> list[str]:
    """As many of the first lines as fit."""
    left, kept = max_tokens, list[str]()
    for line in lines:
        left -= count(f"{line}\n")
        if left < 0:
            break
        kept.append(line)
    return kept


def _count_lines(definitions: Sequence[CodeDefinition], count: CountTokens) -> int:
    return count("\n".join(render_definition(found) for found in definitions))
