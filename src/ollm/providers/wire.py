"""Read server data without trusting its shape."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any

import msgspec

from ollm.domain.messages import JsonObject, PromptMessage
from ollm.domain.tools import ToolSchema


def as_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_entries(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def parse_arguments(value: Any) -> JsonObject | str:
    """Parse a call's arguments; text that is no object stays as it is."""
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
    """Build tools in the form both kinds of server take."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


_read_role = attrgetter("role")


def merge_user_messages(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    """Join adjacent messages of the user."""
    if ("user", "user") not in pairwise(map(_read_role, messages)):
        return list(messages)
    found: list[PromptMessage] = []
    for message in messages:
        if found and message.role == found[-1].role == "user":
            found[-1] = join_messages(found[-1], message)
        else:
            found.append(message)
    return found


def join_messages(first: PromptMessage, second: PromptMessage) -> PromptMessage:
    return msgspec.structs.replace(
        first,
        content=f"{first.content}\n\n{second.content}",
        images=(*first.images, *second.images),
        sources=(*first.sources, *second.sources),
    )
