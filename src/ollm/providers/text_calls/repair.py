"""Parsing and repair of calls written as text (T10.1): JSON, and elements as some templates use them.

Only offered tools are ever called. json-repair is imported only when strict JSON fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ollm.domain.lazy import compile_late
from ollm.domain.messages import JsonObject
from ollm.domain.struct import Data
from ollm.domain.tools import ToolSchema
from ollm.providers.base import CallPiece, unescape_surrogates

Offered = Mapping[str, ToolSchema]

NAME_KEYS = ("name", "tool", "tool_name", "function")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
NOT_JSON = (msgspec.DecodeError, RecursionError, UnicodeError)
MAX_CALL_CHARACTERS = 1 << 20
NO_CALL_MISTAKE = "it is not a JSON object with name and arguments."
MAX_REPAIR_CHARACTERS = 200_000  # The time for repairs grows faster than the text.

_ELEMENT = compile_late(
    r"<(?:function=|invoke\s+name=)[\"']?([\w.-]+)[\"']?\s*>(.*?)(?:</(?:function|invoke)>|\Z)", re.DOTALL
)
_PARAMETER = compile_late(r"<(?:parameter=|parameter\s+name=)[\"']?([\w.-]+)[\"']?[^<>]*>(.*?)</parameter>", re.DOTALL)


class ParsedCalls(Data, frozen=True):
    """Calls in a piece of text. `mistake` is a one-line reason why nothing could be called; `meant` is False if the
    text is unrelated to tools."""

    calls: tuple[CallPiece, ...] = ()
    mistake: str = ""
    meant: bool = True


def parse_calls(text: str, offered: Offered) -> ParsedCalls:
    """Parse text that consists of calls, without the marks around them."""
    found = list(_parse_elements(text, offered)) or list(_find_calls(_parse_value(text), offered, depth=4))
    calls = tuple(call for call in found if isinstance(call, CallPiece))
    if calls:
        return ParsedCalls(calls=calls)
    mistakes = [mistake for mistake in found if isinstance(mistake, str)]
    names_tool = any(f'"{name}"' in text for name in offered) and not _is_valid_json(text)
    return ParsedCalls(mistake=mistakes[0] if mistakes else NO_CALL_MISTAKE, meant=bool(mistakes) or names_tool)


def repair_arguments(arguments: str) -> JsonObject | str:
    """Repair arguments that are almost JSON, or return the text unchanged if that is not possible: a value that breaks
    off is not closed, and of several objects none is chosen."""
    value = None if breaks_off(arguments) or _is_glued(arguments.strip()) else _parse_value(arguments)
    return value if isinstance(value, dict) and value else arguments


def _is_glued(text: str) -> bool:
    import json

    try:
        end = json.JSONDecoder().raw_decode(text)[1]
    except (ValueError, RecursionError):
        return False
    return text[end:].lstrip().startswith("{")


def breaks_off(text: str) -> bool:
    """Return True if a string has no end in text like JSON, with the quotes of its first key."""
    mark = "'" if text.lstrip("[{ \t\r\n").startswith("'") else '"'
    return len(re.findall(rf"(?<!\\)(?:\\\\)*{mark}", text)) % 2 == 1


def _is_valid_json(text: str) -> bool:
    try:
        msgspec.json.decode(text.strip())
    except NOT_JSON:
        return False
    return True


def _parse_value(text: str) -> Any:
    """Parse one JSON value, or several in sequence, with repairs if needed."""
    text = unescape_surrogates(text.strip())
    with suppress(*NOT_JSON):
        return msgspec.json.decode(text)
    if len(lines := [line for line in text.splitlines() if line.strip()]) > 1:
        with suppress(*NOT_JSON):
            return [msgspec.json.decode(line) for line in lines]
    if not text.startswith(("{", "[", '"')) or len(text) > MAX_REPAIR_CHARACTERS:
        return None
    import json_repair

    try:
        return json_repair.loads(text, skip_json_loads=True)
    except (RecursionError, ValueError):
        return None


def _find_calls(value: Any, offered: Offered, depth: int) -> Iterator[CallPiece | str]:
    if isinstance(value, list) and depth:
        for item in value:
            yield from _find_calls(item, offered, depth - 1)
    if not isinstance(value, dict) or not depth:
        return
    inner = value.get("tool_calls") or value.get("function_call") or value.get("tool_call") or value.get("function")
    if isinstance(inner, dict | list):
        yield from _find_calls(inner, offered, depth - 1)
        return
    yield from _read_call(value, offered)


def _read_call(value: JsonObject, offered: Offered) -> Iterator[CallPiece | str]:
    key = next((key for key in NAME_KEYS if isinstance(value.get(key), str)), None)
    if key is None:
        alone = next(iter(value)) if len(value) == 1 else ""
        if alone in offered and isinstance(value[alone], dict):
            yield CallPiece(alone, value[alone])
        return
    name = strip_tool_prefix(value[key])
    if name not in offered and not any(given in value for given in ARGUMENT_KEYS):
        return
    if name not in offered:
        yield f"there is no tool named {name[:60]!r}; the tools are {', '.join(sorted(offered))}."
        return
    arguments = _read_arguments({k: v for k, v in value.items() if k != key}, offered[name])
    if isinstance(arguments, dict) and "properties" in arguments and arguments.get("type") == "object":
        yield f"that is the description of {name}, not a call with values."
        return
    yield CallPiece(name, arguments)


def strip_tool_prefix(name: str) -> str:
    return name.strip().removeprefix("functions.").removeprefix("tools.")


def _read_arguments(rest: JsonObject, tool: ToolSchema) -> JsonObject | str:
    """Read arguments under any usual name: as an object, as text containing one, or flat beside the name."""
    given = next((rest[key] for key in ARGUMENT_KEYS if key in rest), None)
    if isinstance(given, str):
        return repair_arguments(given)
    if isinstance(given, dict):
        return given
    known = tool.parameters.get("properties", {})
    return {key: value for key, value in rest.items() if key in known}


def _parse_elements(text: str, offered: Offered) -> Iterator[CallPiece | str]:
    """Parse `<function=NAME>` and `<invoke name="NAME">` with parameters as elements or JSON."""
    for found in _ELEMENT.finditer(text):
        name, body = strip_tool_prefix(found[1]), found[2]
        if name not in offered:
            yield f"there is no tool named {name[:60]!r}; the tools are {', '.join(sorted(offered))}."
            continue
        whole = _parse_value(body)
        if isinstance(whole, dict):
            yield CallPiece(name, whole)
            continue
        known = offered[name].parameters.get("properties", {})
        given = {part[1]: _convert_value(part[2], known.get(part[1], {})) for part in _PARAMETER.finditer(body)}
        if given or not body.strip():
            yield CallPiece(name, given)
        else:
            yield f"the parameters of {name} cannot be read."


def _convert_value(text: str, schema: JsonObject) -> Any:
    """Convert a value to its parameter's type, without one line break at either end."""
    plain = text.removeprefix("\n").removesuffix("\n")
    if schema.get("type") == "string":
        return plain
    value = _parse_value(plain)
    return plain if value is None else value
