"""Recent messages as the workspace's record keeps them: the common chat-completion form (W58-W63), and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ollm.domain.messages import JsonObject, PromptMessage, Role, ToolCall

ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def to_record(message: PromptMessage) -> dict[str, Any]:
    record: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        record["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
            }
            for call in message.calls
        ]
    if message.call_id is not None:
        record["tool_call_id"] = message.call_id
    if message.failed:
        record["failed"] = True
    if message.sources:
        record["sources"] = list(message.sources)
    return record


def from_records(records: Iterable[Mapping[str, Any]]) -> list[PromptMessage]:
    """Read the records; those of another shape are left out."""
    return [message for record in records if (message := from_record(record))]


def from_record(record: Mapping[str, Any]) -> PromptMessage | None:
    role, content = ROLES.get(str(record.get("role"))), record.get("content")
    if role is None or not isinstance(content, str | None):
        return None
    call_id = record.get("tool_call_id")
    return PromptMessage(
        role=role,
        content=content or "",
        calls=tuple(call for entry in record.get("tool_calls") or () if (call := read_call(entry))),
        call_id=call_id if isinstance(call_id, str) else None,
        failed=record.get("failed") is True,
        sources=tuple(number for number in record.get("sources") or () if isinstance(number, int)),
    )


def read_call(entry: Any) -> ToolCall | None:
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(function, dict) or not isinstance(entry.get("id"), str):
        return None
    return ToolCall(
        id=entry["id"], name=str(function.get("name", "")), arguments=decode_arguments(function.get("arguments"))
    )


def decode_arguments(text: Any) -> JsonObject:
    try:
        found = msgspec.json.decode(text) if isinstance(text, str) else {}
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
