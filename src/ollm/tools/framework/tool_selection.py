"""Which tools a model is shown: those of its mode, as many as fit, so that a small one is not lost in them."""

from __future__ import annotations

from collections.abc import Sequence

from ollm.domain.context import ModeName
from ollm.domain.tools import ToolSchema
from ollm.services.modes import BUILTIN_TOOLS, list_mode_tools
from ollm.services.token_counting import TokenCounter
from ollm.tools.framework.small_schemas import SMALL_WINDOW_TOKENS, TINY_WINDOW_TOKENS, shorten_schema

MIN_TINY_TOOLS, MIN_TOOLS, MAX_TOOLS = 4, 5, 10
TINIEST_WINDOW_TOKENS = 2_000  # they get one tool less
MAX_SCHEMA_TOKENS = 1_500
MAX_WINDOW_SHARE = 0.15
WIDE_WINDOW_TOKENS = 16_000  # smaller windows get the tools in few words
INSTRUCTION_TOKENS = ((TINY_WINDOW_TOKENS, 55), (SMALL_WINDOW_TOKENS, 145), (16_000, 385), (32_000, 650))

# The most needed first: where the window is small the end of the line is left out.
_ORDER: dict[ModeName, tuple[str, ...]] = {
    "code": ("read_file", "edit_file", "write_file", "shell", "grep", "glob", "recall", "goal", "write_todos"),
    "debug": ("read_file", "shell", "grep", "edit_file", "write_file", "glob", "recall", "goal", "write_todos"),
    "plan": (
        "read_file",
        "grep",
        "glob",
        "ls",
        "write_todos",
        "recall",
        "goal",
        "read_many_files",
        "web_search",
        "web_fetch",
    ),
    "assistant": (
        "read_file",
        "grep",
        "glob",
        "web_search",
        "web_fetch",
        "recall",
        "ls",
        "memory",
        "read_many_files",
        "goal",
    ),
}


def select_tools(
    mode: ModeName, schemas: Sequence[ToolSchema], window: int, most: int | None = None, *, folded: bool = False
) -> tuple[ToolSchema, ...]:
    """The tools of a mode by name: five to ten of ours, five where the window is small and four where it is tiny, under
    1,500 tokens, and with the instructions under 15 % of the window; the last ones in few words where there is no room
    for more. Those that extensions bring have 15 % to themselves, since a person asked for them. `most` is how many the
    model was seen to bear. Once something was `folded` away `recall` is one of them. A tool that is not shown can still
    be called."""
    by_name = {
        schema.name: shorten_schema(schema, window) if window < WIDE_WINDOW_TOKENS else schema for schema in schemas
    }
    cost = TokenCounter().count_schemas  # not the model's own: what is shown must not change with what is learnt of it
    allowed = list_mode_tools(mode, by_name)
    ours = [name for name in _ORDER[mode] if name in allowed]
    theirs = [name for name in allowed if name not in BUILTIN_TOOLS]
    least, limit = _count_limits(window, most)
    if folded and "recall" in ours:
        least = least + 1 if most is None else min(least + 1, most)
        ours.remove("recall")
        ours.insert(least - 1, "recall")
    shown: dict[str, ToolSchema] = {}
    left = {
        True: min(MAX_SCHEMA_TOKENS, MAX_WINDOW_SHARE * window - _estimate_instruction_tokens(window)),
        False: MAX_WINDOW_SHARE * window,
    }  # for ours, for theirs
    for name in [*ours[:least], *theirs, *ours[least:]]:
        own, schema = name not in theirs, by_name[name]
        price = cost([schema])
        if own and window >= WIDE_WINDOW_TOKENS and price > left[own]:
            schema = shorten_schema(schema, window)
            price = cost([schema])
        fits = price <= left[own] and len(shown) < limit + len(theirs)
        if (len(shown) < least and own) or (fits and (most is None or len(shown) < most)):
            shown[name] = schema
            left[own] -= price
    return tuple(shown[name] for name in sorted(shown))


def _count_limits(window: int, most: int | None) -> tuple[int, int]:
    """How many of our tools are shown whatever they cost, and how many at the most."""
    least = MIN_TINY_TOOLS - (window < TINIEST_WINDOW_TOKENS) if window < TINY_WINDOW_TOKENS else MIN_TOOLS
    limit = MIN_TOOLS if window < SMALL_WINDOW_TOKENS else MAX_TOOLS
    return (least, limit) if most is None else (min(least, most), min(limit, most))


def _estimate_instruction_tokens(window: int) -> int:
    """Tokens the instructions take in a window of this size."""
    return next((tokens for below, tokens in INSTRUCTION_TOKENS if window < below), 0)
