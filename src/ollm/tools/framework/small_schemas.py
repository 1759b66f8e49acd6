"""Tools as they fit a small window: the parameters a small model needs, in few words.

What is left out can still be given in a call: only the description is shorter, the tool is the same.
"""

from __future__ import annotations

from ollm.domain.messages import JsonObject
from ollm.domain.tools import ToolSchema
from ollm.tools.framework.base import ToolDescription

TINY_WINDOW_TOKENS, SMALL_WINDOW_TOKENS = 3_000, 8_000  # windows below these
BARE_WINDOW_TOKENS = 2_600  # below, tools whose names say what they do come without a word: what they require has room
MAX_OPTIONAL_PARAMETERS = 4


def shorten_schema(tool: ToolDescription, window: int) -> ToolSchema:
    """The same tool in fewer words. Tools that do not say how keep their first sentence and their required parameters,
    or the first ones where none is."""
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
    """Types, choices and references stay, words go. Of an object its required parameters stay, or all of them."""
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
