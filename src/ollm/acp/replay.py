"""A session that is loaded again, as the updates that would have told it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from ollm.acp.tool_calls import ToolCallViews, shorten_title
from ollm.domain.messages import JsonObject
from ollm.domain.tools import ToolResult
from ollm.system.terminal_text import strip_controls

PAGE_MESSAGES = 200
MAX_REPLAYED_MESSAGES = 2_000
LoadPage = Callable[[int | None, int], Awaitable[list[dict[str, Any]]]]


async def load_messages(load: LoadPage) -> tuple[list[dict[str, Any]], bool]:
    """The newest messages, oldest first, and whether there are older ones."""
    found: list[dict[str, Any]] = []
    before: int | None = None
    while len(found) < MAX_REPLAYED_MESSAGES:
        page = await load(before, PAGE_MESSAGES)
        if not page:
            return found, False
        found, before = [*page, *found], int(page[0]["id"])
    return found, bool(await load(before, 1))


def replay_message(message: dict[str, Any], views: ToolCallViews) -> Iterator[JsonObject]:
    """One message of the archive; results are with their calls."""
    if message["role"] not in ("user", "assistant"):
        return
    for part in message["parts"]:
        if block := read_part(part):
            yield {"sessionUpdate": name_chunk(message["role"], part["type"]), "content": block}
    for call in message["toolCalls"]:
        yield replay_call(call, views)


def name_chunk(role: str, kind: str) -> str:
    if role == "user":
        return "user_message_chunk"
    return "agent_thought_chunk" if kind == "thinking" else "agent_message_chunk"


def read_part(part: dict[str, Any]) -> JsonObject | None:
    if part["type"] in ("text", "thinking") and part["text"]:
        return {"type": "text", "text": strip_controls(part["text"])}
    if part["type"] == "image":
        return {"type": "image", "data": part["data"], "mimeType": part["mediaType"]}
    return None


def replay_call(call: dict[str, Any], views: ToolCallViews) -> JsonObject:
    view = views.read_call(call["name"], call["args"])
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": call["id"],
        "title": shorten_title(views.summarize(call["name"], call["args"])),
        "kind": view.kind,
        "status": "completed" if call["status"] == "ok" else "failed",
        "locations": list(view.locations),
        "rawInput": call["args"],
        "content": views.render_result(read_result(call)),
    }


def read_result(call: dict[str, Any]) -> ToolResult:
    """What the archive holds of a call's outcome; nothing of one that was interrupted."""
    kept = call.get("result") or {"llmContent": ""}
    return msgspec.convert({**kept, "error": call.get("error")}, ToolResult)
