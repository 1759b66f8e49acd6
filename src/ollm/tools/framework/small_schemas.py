"""Tools as a small window can bear them: the parameters a small model needs, in few words.

What is left out can still be given in a call: only the description is shorter, the tool is the same.
"""

from __future__ import annotations

from ollm.domain.messages import JsonObject
from ollm.domain.tools import ToolSchema

TINY, SMALL = 3_000, 8_000  # windows below these
BARE = 2_600  # below, tools whose names say what they do come without a word, so that what they require has room
# Optional parameters a tool is of no use without; required ones always stay.
_KEPT: dict[str, tuple[str, ...]] = {
    "recall": ("query", "messageId", "callId"),
    "write_todos": ("text", "id"),
    "memory": ("key", "value"),
    "goal": ("text",),
    "ls": ("path",),
}
# And those worth their tokens. A small window does not show them: very small models ask for the first line of a file
# and take it for all, search a file they made up, or overwrite what they should add to.
_WORTH: dict[str, tuple[str, ...]] = {
    "read_file": ("startLine", "endLine"),
    "grep": ("path",),
    "write_file": ("overwrite",),
}
MOST_OPTIONAL = 4
# Other forms that these tools take too: one edit without a list around it, a command and nothing else.
_FORMS: dict[str, JsonObject] = {
    "edit_file": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "target": {"type": "string"}, "replacement": {"type": "string"}},
        "required": ["path", "target", "replacement"],
    },
    "shell": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
_TOLD = {
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
_UNTOLD = frozenset(_TOLD) - {"recall", "write_todos", "memory", "goal"}


def slim(schema: ToolSchema, window: int) -> ToolSchema:
    """The same tool in fewer words.

    Tools that are not ours keep their first sentence and their required parameters, or the first ones where none is."""
    full = _FORMS.get(schema.name, schema.parameters)
    kept = (*full.get("required", ()), *_KEPT.get(schema.name, ()))
    if not kept and schema.name not in _TOLD:
        kept = tuple(full.get("properties", ()))[:MOST_OPTIONAL]
    if window >= SMALL:
        kept += _WORTH.get(schema.name, ())
    told = _TOLD.get(schema.name) or schema.description.split(". ")[0][:120]
    if window < BARE and schema.name in _UNTOLD:
        told = ""
    return ToolSchema(name=schema.name, description=told, parameters=_object(full, kept))


def _object(parameters: JsonObject, kept: tuple[str, ...]) -> JsonObject:
    properties = parameters.get("properties", {})
    small = {name: _value(value) for name, value in properties.items() if name in kept}
    needed = [name for name in parameters.get("required", ()) if name in small]
    return {"type": "object", "properties": small, **({"required": needed} if needed else {})}


def _value(schema: JsonObject) -> JsonObject:
    """Types and choices stay, words go."""
    small = {key: value for key, value in schema.items() if key in ("type", "enum", "anyOf")}
    if isinstance(schema.get("items"), dict):
        small["items"] = _value(schema["items"])
    if schema.get("type") == "object" and "properties" in schema:
        small = _object(schema, tuple(schema.get("required", ())))
    return small
