"""Tools as a small window can bear them: the parameters a small model needs, in few words.

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
    return {"type": "object", "properties": small, **({"required": needed} if needed else {})}


def _shorten_value(schema: JsonObject) -> JsonObject:
    """Types and choices stay, words go."""
    small = {key: value for key, value in schema.items() if key in ("type", "enum", "anyOf")}
    if isinstance(schema.get("items"), dict):
        small["items"] = _shorten_value(schema["items"])
    if schema.get("type") == "object" and "properties" in schema:
        small = _shorten_object(schema, tuple(schema.get("required", ())))
    return small
