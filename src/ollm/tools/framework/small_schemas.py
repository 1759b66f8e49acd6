"""Tools as a small window can bear them: the parameters a small model needs, in few words.

What is left out can still be given in a call: only the description is shorter, the tool is the same.
"""

from __future__ import annotations

from ollm.domain.messages import JsonObject
from ollm.domain.tools import ToolSchema

TINY_WINDOW_TOKENS, SMALL_WINDOW_TOKENS = 3_000, 8_000  # windows below these
BARE_WINDOW_TOKENS = (
    2_600  # below, tools whose names say what they do come without a word, so that what they require has room
)
# Optional parameters a tool is of no use without; required ones always stay.
_NEEDED_PARAMETERS: dict[str, tuple[str, ...]] = {
    "recall": ("query", "messageId", "callId"),
    "write_todos": ("text", "id"),
    "memory": ("key", "value"),
    "goal": ("text",),
    "ls": ("path",),
}
# And those worth their tokens. A small window does not show them: very small models ask for the first line of a file
# and take it for all, search a file they made up, or overwrite what they should add to.
_USEFUL_PARAMETERS: dict[str, tuple[str, ...]] = {
    "read_file": ("startLine", "endLine"),
    "grep": ("path",),
    "write_file": ("overwrite",),
}
MAX_OPTIONAL_PARAMETERS = 4
# Other forms that these tools take too: one edit without a list around it, a command and nothing else.
_SMALL_FORMS: dict[str, JsonObject] = {
    "edit_file": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "target": {"type": "string"}, "replacement": {"type": "string"}},
        "required": ["path", "target", "replacement"],
    },
    "shell": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
_SHORT_DESCRIPTIONS = {
    "edit_file": "Replace one line of a file, copied exactly, or a part of it.",
    "grep": "Search the text of files.",
    "shell": "Run a bash command.",
    "write_file": "Create a new file.",
    "read_file": "Read a file.",
    "glob": "Find files by name, such as **/*.py.",
    "ls": "List a directory.",
    "read_many_files": "Read several files.",
    "recall": "Read what is no longer shown in full.",
    "write_todos": "Keep the list of what is to be done.",
    "web_fetch": "Read a web page.",
    "web_search": "Search the web.",
    "memory": "Keep values for later conversations.",
    "goal": "Note goals and decisions.",
}
_SELF_EXPLAINING = frozenset(_SHORT_DESCRIPTIONS) - {"recall", "write_todos", "memory", "goal"}


def shorten_schema(schema: ToolSchema, window: int) -> ToolSchema:
    """The same tool in fewer words.

    Tools that are not ours keep their first sentence and their required parameters, or the first ones where none is."""
    full = _SMALL_FORMS.get(schema.name, schema.parameters)
    kept = (*full.get("required", ()), *_NEEDED_PARAMETERS.get(schema.name, ()))
    if not kept and schema.name not in _SHORT_DESCRIPTIONS:
        kept = tuple(full.get("properties", ()))[:MAX_OPTIONAL_PARAMETERS]
    if window >= SMALL_WINDOW_TOKENS:
        kept += _USEFUL_PARAMETERS.get(schema.name, ())
    told = _SHORT_DESCRIPTIONS.get(schema.name) or schema.description.split(". ")[0][:120]
    if window < BARE_WINDOW_TOKENS and schema.name in _SELF_EXPLAINING:
        told = ""
    return ToolSchema(name=schema.name, description=told, parameters=_shorten_object(full, kept))


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
