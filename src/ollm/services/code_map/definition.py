"""Definitions of a file, and its outline as text within a budget of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ollm.domain.struct import Data

MAX_SIGNATURE_CHARS = 160
MAX_VALUE_CHARS = 70

CountTokens = Callable[[str], int]


class CodeDefinition(Data, frozen=True, kw_only=False, array_like=True, gc=False):
    """A class, function or the like. `line` is where it is named, `first` where its decorators or comments begin and
    `last` where it ends, counting from 1. `scope` is what it is in, with dots."""

    kind: str
    name: str
    scope: str
    signature: str
    line: int
    first: int
    last: int

    @property
    def full_name(self) -> str:
        return f"{self.scope}.{self.name}" if self.scope else self.name

    @property
    def depth(self) -> int:
        return self.scope.count(".") + 1 if self.scope else 0


def shorten_signature(text: str, kind: str = "") -> str:
    """On one line, without what comes after it."""
    line = " ".join(text.split()).rstrip("{:; ").removesuffix(" do").removesuffix(" end").rstrip("; ")
    line = line.replace("( ", "(").replace(", )", ")").replace(" )", ")")
    max_chars = MAX_VALUE_CHARS if kind in ("constant", "variable", "type", "macro") else MAX_SIGNATURE_CHARS
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"


def render_definition(found: CodeDefinition) -> str:
    return f"{found.line:>5} {'  ' * found.depth}{found.signature}"


def normalize_symbol(symbol: str) -> str:
    """`Turn::run`, `Turn#run` and `Turn.run()` are all `Turn.run`."""
    return symbol.strip().removesuffix("()").replace("::", ".").replace("#", ".").strip(".")


def match_symbol(symbol: str, definitions: Sequence[CodeDefinition]) -> list[CodeDefinition]:
    """The definitions a symbol names: those of exactly that full name, else those whose full name ends in it."""
    wanted = normalize_symbol(symbol)
    if not wanted:
        return []
    exact = [found for found in definitions if found.full_name == wanted]
    return exact or [found for found in definitions if found.full_name.endswith(f".{wanted}")]


def fit_outline(definitions: Sequence[CodeDefinition], max_tokens: int, count: CountTokens) -> list[str]:
    """Fit the outline into so many tokens: inner definitions go first, deepest first, then the end. Says what is left
    out."""
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
