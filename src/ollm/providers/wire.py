"""Reading what servers send without trusting its shape."""

from __future__ import annotations

from typing import Any

import msgspec

from ollm.domain.messages import JsonObject
from ollm.domain.tools import ToolSchema


def as_mapping(value: Any) -> dict[str, Any]:
    """The value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_entries(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; nothing for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def parse_arguments(value: Any) -> JsonObject | str:
    """A call's arguments: an object where they are one, else the text as the model wrote it."""
    if isinstance(value, dict):
        return value
    written = as_text(value)
    if not written.strip():
        return {}
    try:
        decoded = msgspec.json.decode(written)
    except (msgspec.DecodeError, RecursionError):  # no object, or one nested so deeply that nothing can be done with it
        return written
    return decoded if isinstance(decoded, dict) else written


def build_functions(tools: tuple[ToolSchema, ...]) -> list[JsonObject]:
    """Tools in the form both kinds of server take."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]
