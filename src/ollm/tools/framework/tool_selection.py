"""Selection of the tools shown to a model: those of its mode, as many as fit without confusing a small model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, zip_longest
from operator import attrgetter
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from ollm.domain.context import ModeName
from ollm.domain.messages import JsonObject
from ollm.domain.text import format_names
from ollm.domain.tools import ToolResult, ToolSchema
from ollm.providers.base import parse_arguments
from ollm.services.modes import shows_tool
from ollm.services.token_counting import TokenCounter
from ollm.tools.framework.base import Tool, ToolContext, ToolDescription, describe_class

FIND_TOOL, USE_TOOL = "find_tool", "use_tool"
MAX_FOUND_TOOLS = 5
MAX_LISTED_NAMES = 60
MAX_SCHEMA_CHARACTERS = 4_000
MAX_FOUND_CHARACTERS = 2_000  # Limits the reply of find_tool after the first tool.
MIN_STEM_CHARACTERS = 4
MAX_SERVER_LINE_CHARACTERS = 90
BRIEF_WINDOW_TOKENS = 16_000  # Smaller windows get shortened tools, and only the names of servers.

Cost = Callable[[Sequence[ToolSchema]], int]

USE_SCHEMA = ToolSchema(
    name=USE_TOOL,
    description="Call a tool that find_tool showed.",
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
        "required": ["name", "arguments"],
    },
)


def split_by_budget(
    theirs: Sequence[ToolSchema], budget: float, cost: Cost, window: int, max_tools: float = math.inf
) -> tuple[list[ToolSchema], list[ToolSchema]]:
    """Split external tools into shown and hidden ones. If not all fit, the servers take turns, the smallest first.
    `max_tools`: how many more the model can handle."""
    if cost(theirs) <= budget and len(theirs) <= max_tools:
        return list(theirs), []
    budget, max_tools = budget - cost(build_deferred_schemas(theirs, window)), max_tools - MIN_FOREIGN_TOOLS
    groups = sorted(group_by_server(theirs).values(), key=cost)
    shown: list[ToolSchema] = []
    for tool in filter(None, chain.from_iterable(zip_longest(*groups))):
        if cost([tool]) <= budget and len(shown) < max_tools:
            shown.append(tool)
            budget -= cost([tool])
    return shown, [tool for tool in theirs if tool not in shown]


def group_by_server(tools: Sequence[ToolSchema]) -> dict[str, list[ToolSchema]]:
    """Group tools by the name before `__`. Tools of extensions form a separate group."""
    found: dict[str, list[ToolSchema]] = {}
    for tool in tools:
        server, mark, _ = tool.name.partition("__")
        found.setdefault(server if mark else "extensions", []).append(tool)
    return found


def build_deferred_schemas(hidden: Sequence[ToolSchema], window: int) -> tuple[ToolSchema, ToolSchema]:
    """Build `find_tool`, which lists the servers with hidden tools, one line each, and `use_tool`."""
    lines = [_describe_group(server, tools, window) for server, tools in group_by_server(hidden).items()]
    mark = "\n" if window >= BRIEF_WINDOW_TOKENS else ", "
    told = "Find more tools by what they do; use_tool calls them. There are:" + mark.replace(",", "") + mark.join(lines)
    return msgspec.structs.replace(describe_class(FindTool).schema, description=told), USE_SCHEMA


def _describe_group(server: str, tools: Sequence[ToolSchema], window: int) -> str:
    if window < BRIEF_WINDOW_TOKENS:
        return f"{server} ({len(tools)})"
    names = ", ".join(tool.name.partition("__")[2] or tool.name for tool in tools)
    shown = names if len(names) <= MAX_SERVER_LINE_CHARACTERS else f"{names[: MAX_SERVER_LINE_CHARACTERS - 1]}…"
    return f"{server} ({len(tools)}): {shown}"


def unwrap_call(name: str, arguments: JsonObject) -> tuple[str, JsonObject]:
    """Convert a call of `use_tool` to the call it wraps, the only one that policy, hooks and the record see."""
    inner, given = arguments.get("name"), arguments.get("arguments")
    if name != USE_TOOL or not isinstance(inner, str) or not inner or inner == USE_TOOL:
        return name, arguments
    given = parse_arguments(given) if isinstance(given, str) else given
    if given is None:
        given = {key: value for key, value in arguments.items() if key not in ("name", "arguments")}
    return (inner, given) if isinstance(given, dict) else (name, arguments)


class FindTool(Tool[Callable[[], Sequence[ToolSchema]]], frozen=True):
    """Find more tools by what they do."""

    name: ClassVar = FIND_TOOL
    category: ClassVar = "read"

    query: Annotated[str, Meta(description="What the tool should do, in a few words.")]

    def summary(self) -> str:
        return f"Find a tool: {self.query}"

    async def run(self, context: ToolContext, needs: Callable[[], Sequence[ToolSchema]]) -> ToolResult:
        tools = needs()
        found = find_tools(self.query, tools)[:MAX_FOUND_TOOLS]
        names = format_names([tool.name for tool in tools], MAX_LISTED_NAMES)
        text = render_found_tools(found) if found else f"No tool fits {self.query!r}. There are: {names}."
        return ToolResult(llm_content=text, return_display=", ".join(tool.name for tool in found) or "nothing found")


def find_tools(query: str, tools: Sequence[ToolSchema]) -> list[ToolSchema]:
    """Find tools whose names or descriptions contain words of the query, best first. Rare words count more than common
    ones, and names more than descriptions."""
    words = {tool.name: (set(_split_words(tool.name)), set(_split_words(tool.description))) for tool in tools}
    scores = {name: 100.0 * (query.strip().lower() == name.lower()) for name in words}
    for word in dict.fromkeys(_split_words(query)):
        hits = {name: 3 * _has_word(word, named) + _has_word(word, told) for name, (named, told) in words.items()}
        weight = math.log(1 + len(tools) / max(1, sum(map(bool, hits.values()))))
        scores = {name: score + weight * hits[name] for name, score in scores.items()}
    best = max(scores.values(), default=0)
    ranked = sorted(tools, key=lambda tool: (-scores[tool.name], tool.name))
    return [tool for tool in ranked if scores[tool.name] and scores[tool.name] * 3 >= best]


def _split_words(text: str) -> list[str]:
    """Split text into lower-case words; `listOpenPages2` is four words."""
    return re.findall(r"[^\W\d_]+|\d+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower())


def _has_word(word: str, words: set[str]) -> bool:
    if word in words:
        return True
    stem = word[: max(MIN_STEM_CHARACTERS, len(word) - 3)]
    return len(word) >= MIN_STEM_CHARACTERS and any(
        other.startswith(stem) or (len(other) >= MIN_STEM_CHARACTERS and word.startswith(other)) for other in words
    )


def render_found_tools(found: Sequence[ToolSchema]) -> str:
    """Render as many tools with arguments as fit a small window, at least the first, and the others by name."""
    lines: list[str] = []
    for tool in found:
        line = f"{tool.name}: {tool.description}\n  arguments: {_render_parameters(tool)}"
        if lines and sum(map(len, lines)) + len(line) > MAX_FOUND_CHARACTERS:
            break
        lines.append(line)
    if others := [tool.name for tool in found[len(lines) :]]:
        lines.append(f"Less near, shown when you ask by name: {', '.join(others)}.")
    example = msgspec.json.encode({"name": found[0].name, "arguments": {}}).decode()
    return "\n".join([*lines, f"Call one with use_tool {example}, its arguments filled in."])


def _render_parameters(tool: ToolSchema) -> str:
    text = msgspec.json.encode(tool.parameters).decode()
    if len(text) <= MAX_SCHEMA_CHARACTERS:
        return text

    described = ToolDescription(name=tool.name, description=tool.description, parameters=tool.parameters)
    return msgspec.json.encode(shorten_schema(described, 0).parameters).decode()[:MAX_SCHEMA_CHARACTERS]


SMALL_WINDOW_TOKENS = 8_000
BARE_WINDOW_TOKENS = 2_600  # In smaller windows, clear names need no description; required parameters take its room.
MAX_OPTIONAL_PARAMETERS = 4


def shorten_schema(tool: ToolDescription, window: int) -> ToolSchema:
    """Shorten a tool's schema. Tools without a short form keep their first sentence and their required parameters, or
    the first ones if none is required."""
    form = tool.small
    if form is None:
        required = tuple(tool.parameters.get("required", ()))
        kept = required or tuple(tool.parameters.get("properties", ()))[:MAX_OPTIONAL_PARAMETERS]
        description = tool.description.split(". ")[0][:120]
        return ToolSchema(name=tool.name, description=description, parameters=_shorten_object(tool.parameters, kept))
    full = form.schema or tool.parameters
    kept = (*full.get("required", ()), *form.parameters)
    if window >= SMALL_WINDOW_TOKENS:
        kept += form.useful_parameters
    description = "" if window < BARE_WINDOW_TOKENS and form.clear_name else form.description
    return ToolSchema(name=tool.name, description=description, parameters=_shorten_object(full, kept))


def _shorten_object(parameters: JsonObject, kept: tuple[str, ...]) -> JsonObject:
    properties = parameters.get("properties", {})
    small = {name: _shorten_value(value) for name, value in properties.items() if name in kept}
    needed = [name for name in parameters.get("required", ()) if name in small]
    shared = {
        key: {name: _shorten_value(value) for name, value in parameters[key].items()}
        for key in ("$defs", "definitions")
        if isinstance(parameters.get(key), dict)
    }
    return {"type": "object", "properties": small, **({"required": needed} if needed else {}), **shared}


def _shorten_value(schema: JsonObject) -> JsonObject:
    """Keep types, choices and references, and drop text. An object keeps its required parameters, or else all."""
    small = {key: value for key, value in schema.items() if key in ("type", "enum", "const", "$ref")}
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if isinstance(schema.get(key), list):
            small[key] = [_shorten_value(choice) for choice in schema[key] if isinstance(choice, dict)]
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            small[key] = _shorten_value(schema[key])
    if isinstance(schema.get("properties"), dict):
        needed = schema.get("required") or schema["properties"]
        small = {**small, **_shorten_object(schema, tuple(needed))}
    return small


MIN_FOREIGN_TOOLS = 2  # The user configured a server, so find_tool and use_tool stay even if few tools fit.
MAX_WINDOW_SHARE = 0.15
TOOL_LIMITS = (  # For windows below the first number: least and most own tools, and most tokens of their schemas.
    (2_000, 3, 5, 1_500),
    (3_000, 4, 5, 1_500),
    (SMALL_WINDOW_TOKENS, 5, 5, 1_500),
    (32_000, 5, 10, 1_500),
    (math.inf, 5, 12, 1_850),  # Wide windows also have room for tools that save tokens.
)


def select_tools(
    mode: ModeName,
    tools: Sequence[ToolDescription],
    window: int,
    most: float | None = None,
    *,
    folded: bool = False,
    instruction_tokens: int = 0,
    permitted: AbstractSet[str] = frozenset(),
) -> tuple[ToolSchema, ...]:
    """Select the tools of a mode, sorted by name: ours within `TOOL_LIMITS`, and with the instructions under 15 % of
    the window. The last ones are shortened if space runs out. Tools of extensions have a separate 15 %, since a person
    asked for them; the rest is found with `find_tool`. Tools `permitted` by name are shown in every mode. `most` is the
    number of tools the model was seen to handle. After a compaction (`folded`), `recall` is included."""
    by_name = {tool.name: tool for tool in tools if shows_tool(mode, tool.category) and window >= tool.min_window}
    foreign = [tool for tool in tools if tool.category is None and (tool.name in by_name or tool.name in permitted)]
    least, limit, max_tokens = next(row[1:] for row in TOOL_LIMITS if window < row[0])
    most = math.inf if most is None else most
    least, limit = int(min(least, most)), int(min(limit, most))
    most = max(most, least + MIN_FOREIGN_TOOLS) if foreign else most
    theirs = _select_foreign(foreign, window, most - least)
    ranked = sorted((tool.priority[mode], tool.name) for tool in by_name.values() if mode in tool.priority)
    ours = [by_name[name] for _, name in ranked]
    if folded:  # `recall` is one of the tools that are shown in any case.
        least = int(min(least + 1, most))
        recall, others = ([tool for tool in ours if (tool.name == "recall") is wanted] for wanted in (True, False))
        ours = [*others[: least - 1], *recall, *others[least - 1 :]]
    room = min(max_tokens, MAX_WINDOW_SHARE * window - instruction_tokens)
    shown = _fit_own(ours, least, min(max(limit, least), most - len(theirs)), window, room)
    return tuple(sorted((*shown, *theirs), key=attrgetter("name")))


def _fit_own(
    ours: Sequence[ToolDescription], least: int, most: float, window: int, max_tokens: float
) -> list[ToolSchema]:
    """Show the first tools, at least so many, and more as far as they fit."""
    shown: list[ToolSchema] = []
    for tool in ours:
        schema, price = _fit_schema(tool, window, max_tokens)
        if len(shown) < least or (price <= max_tokens and len(shown) < most):
            shown.append(schema)
            max_tokens -= price
    return shown


def _select_foreign(foreign: Sequence[ToolDescription], window: int, max_tools: float) -> list[ToolSchema]:
    """Select the external tools to show, and the tools for finding the rest if not all fit."""
    schemas = [tool.schema if window >= BRIEF_WINDOW_TOKENS else shorten_schema(tool, window) for tool in foreign]
    count = TokenCounter().count_schema_texts
    shown, hidden = split_by_budget(schemas, MAX_WINDOW_SHARE * window, count, window, max_tools)
    return [*(build_deferred_schemas(hidden, window) if hidden else ()), *shown]


def _fit_schema(tool: ToolDescription, window: int, max_tokens: float) -> tuple[ToolSchema, int]:
    """Return the schema and its tokens, shortened if the window is not wide or it exceeds `max_tokens`."""
    count = TokenCounter().count_schema_texts  # The model's counter learns, but the tools shown must not change.
    if window >= BRIEF_WINDOW_TOKENS:
        price = count([tool.schema])
        if price <= max_tokens:
            return tool.schema, price
    schema = shorten_schema(tool, window)
    return schema, count([schema])
