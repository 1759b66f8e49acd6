"""Pages of the archive: every message in full, its calls and results beside it (H: user access to chat history)."""

from __future__ import annotations

from typing import Any

import msgspec

from ollm.domain.session import Session


def page(session: Session, before: int | None, limit: int) -> list[dict[str, Any]]:
    """The `limit` messages before number `before` (or the newest), oldest first, as plain JSON with `toolCalls`."""
    calls = {call.id: call for call in session.tool_calls}
    older = [message for message in session.messages if before is None or message.id < before]
    found = []
    for message in older[-limit:] if limit > 0 else []:
        shown = msgspec.to_builtins(message)
        shown["toolCalls"] = [msgspec.to_builtins(calls[name]) for name in message.call_ids if name in calls]
        found.append(shown)
    return found
