"""Which tools a model is shown: those of its mode, as many as fit, so that a small one is not lost in them."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from ollm.domain.context import ModeName
from ollm.domain.tools import ToolSchema
from ollm.services.modes import shows_tool
from ollm.services.token_counting import TokenCounter
from ollm.tools.framework.base import ToolDescription
from ollm.tools.framework.small_schemas import SMALL_WINDOW_TOKENS, TINY_WINDOW_TOKENS, shorten_schema

MIN_FOREIGN_TOOLS = 2  # find_tool and use_tool, whatever a model was seen to bear: a person configured a server
MIN_TINY_TOOLS, MIN_TOOLS, MAX_TOOLS, MAX_ROOMY_TOOLS = 4, 5, 10, 12
TINIEST_WINDOW_TOKENS = 2_000  # they get one tool less
MAX_SCHEMA_TOKENS, MAX_ROOMY_SCHEMA_TOKENS = 1_500, 2_000
MAX_WINDOW_SHARE = 0.15
WIDE_WINDOW_TOKENS = 16_000  # smaller windows get the tools in few words
ROOMY_WINDOW_TOKENS = 32_000  # from here on there is room for those that spare a window, too


def select_tools(
    mode: ModeName,
    tools: Sequence[ToolDescription],
    window: int,
    most: int | None = None,
    *,
    folded: bool = False,
    instruction_tokens: int = 0,
    permitted: AbstractSet[str] = frozenset(),
) -> tuple[ToolSchema, ...]:
    """The tools of a mode by name: five to ten of ours, five where the window is small and four where it is tiny, under
    1,500 tokens (twelve and 2,000 where there is much room), and with the instructions under 15 % of the window; the
    last ones in few words where more does not fit. Those that extensions bring have 15 % to themselves, since a person
    asked for them; the rest is found with `find_tool`. Those that are `permitted` by name are shown in every mode.
    `most` is how many the model was seen to handle. Once something was `folded` away `recall` is one of them. A tool
    that is not shown can still be called."""
    by_name = {tool.name: tool for tool in tools if shows_tool(mode, tool.category) and window >= tool.min_window}
    placed = sorted((tool.priority[mode], tool.name) for tool in by_name.values() if mode in tool.priority)
    ours = [name for _, name in placed]
    least, limit = _count_limits(window, most)
    foreign = [tool for tool in tools if tool.category is None and (tool.name in by_name or tool.name in permitted)]
    if foreign and most is not None:
        most = max(most, least + MIN_FOREIGN_TOOLS)
    theirs = _select_foreign(foreign, window, None if most is None else most - least)
    if folded and "recall" in ours:
        least = least + 1 if most is None else min(least + 1, most)
        limit = max(limit, least)  # it takes the place of no tool from outside
        ours.remove("recall")
        ours.insert(least - 1, "recall")
    shown: dict[str, ToolSchema] = {}
    left = {
        True: min(_get_schema_limit(window), MAX_WINDOW_SHARE * window - instruction_tokens),
        False: MAX_WINDOW_SHARE * window,
    }  # for ours, for theirs
    for name in [*ours[:least], *theirs, *ours[least:]]:
        own = name not in theirs
        schema, price = _fit_schema(by_name[name], window, left[True]) if own else theirs[name]
        fits = price <= left[own] and len(shown) < limit + len(theirs)
        if (len(shown) < least and own) or (fits and (most is None or len(shown) < most)):
            shown[name] = schema
            left[own] -= price
    return tuple(shown[name] for name in sorted(shown))


def _select_foreign(
    foreign: Sequence[ToolDescription], window: int, max_tools: int | None
) -> dict[str, tuple[ToolSchema, int]]:
    """The tools from outside that are shown, with their tokens, and those that find the others where not all fit."""
    if not foreign:
        return {}
    from ollm.tools.framework.deferred_tools import build_deferred_schemas, split_by_budget

    count_exactly = TokenCounter().count_schema_texts
    schemas = [tool.schema if window >= WIDE_WINDOW_TOKENS else shorten_schema(tool, window) for tool in foreign]
    prices = {schema.name: count_exactly([schema]) for schema in schemas}

    def count(tools: Sequence[ToolSchema]) -> int:
        return sum(prices[tool.name] if tool.name in prices else count_exactly([tool]) for tool in tools)

    shown, hidden = split_by_budget(schemas, MAX_WINDOW_SHARE * window, count, window, max_tools)
    finders = build_deferred_schemas(hidden, window) if hidden else ()
    return {schema.name: (schema, count([schema])) for schema in (*finders, *shown)}


def _fit_schema(tool: ToolDescription, window: int, max_tokens: float) -> tuple[ToolSchema, int]:
    """The schema and its tokens: in few words where the window is not wide or it takes more than `max_tokens`."""
    count = (
        TokenCounter().count_schema_texts
    )  # not the model's own: what is shown must not change with what is learnt of it
    if window >= WIDE_WINDOW_TOKENS:
        price = count([tool.schema])
        if price <= max_tokens:
            return tool.schema, price
    schema = shorten_schema(tool, window)
    return schema, count([schema])


def _get_schema_limit(window: int) -> int:
    return MAX_ROOMY_SCHEMA_TOKENS if window >= ROOMY_WINDOW_TOKENS else MAX_SCHEMA_TOKENS


def _count_limits(window: int, most: int | None) -> tuple[int, int]:
    """How many of our tools are shown whatever they cost, and how many at the most."""
    least = MIN_TINY_TOOLS - (window < TINIEST_WINDOW_TOKENS) if window < TINY_WINDOW_TOKENS else MIN_TOOLS
    limit = MIN_TOOLS if window < SMALL_WINDOW_TOKENS else MAX_TOOLS
    if window >= ROOMY_WINDOW_TOKENS:
        limit = MAX_ROOMY_TOOLS
    return (least, limit) if most is None else (min(least, most), min(limit, most))
