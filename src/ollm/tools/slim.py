"""Tools as a small window can bear them: the parameters a small model needs, in few words.

What is left out can still be given in a call: only the description is shorter, the tool is the same.
"""

from __future__ import annotations

from ollm.domain.messages import JsonObject
from ollm.domain.tools import ToolSchema

# Optional parameters worth their tokens; required ones always stay.
_KEPT: dict[str, tuple[str, ...]] = {
    "read_file": ("startLine", "endLine"),
    "grep": ("path",),
    "shell": ("command",),
    "write_file": ("overwrite",),
    "recall": ("query", "messageId", "callId"),
    "write_todos": ("text", "id"),
    "memory": ("key", "value"),
    "goal": ("text",),
    "ls": ("path",),
}
MOST_OPTIONAL = 4
# One edit at a time, without a list: `edit_file` takes it in this form too.
ONE_EDIT: JsonObject = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "target": {"type": "string"}, "replacement": {"type": "string"}},
    "required": ["path", "target", "replacement"],
}
_TOLD = {
    "edit_file": "Replace a text copied exactly from a file.",
    "grep": "Search the text of files.",
    "shell": "Run a bash command.",
    "write_file": "Create a file; overwrite replaces one.",
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


def slim(schema: ToolSchema, *, tiny: bool = False) -> ToolSchema:
    """The same tool in fewer words; a tiny window sees no optional parameter where another one is required.

    Tools that are not ours keep their first sentence and their required parameters, or the first ones where none is."""
    full = ONE_EDIT if schema.name == "edit_file" else schema.parameters
    needed = tuple(full.get("required", ()))
    if not needed and schema.name not in _TOLD:
        needed = tuple(full.get("properties", ()))[:MOST_OPTIONAL]
    parameters = _object(full, needed if tiny and needed else (*needed, *_KEPT.get(schema.name, ())))
    if tiny:
        parameters.pop("required", None)  # all that is shown is required
    told = _TOLD.get(schema.name) or schema.description.split(". ")[0][:120]
    return ToolSchema(name=schema.name, description=told, parameters=parameters)


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
