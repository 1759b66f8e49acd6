"""Pages of the archive: every message in full, its calls and results beside it (H: user access to chat history)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ollm.domain.messages import Message
from ollm.domain.session import Session
from ollm.store.session_files import LoadedSession, MessagePage


def load_history_page(
    read: Callable[[MessagePage], LoadedSession], before: int | None, limit: int
) -> list[dict[str, Any]]:
    """The `limit` messages before number `before` (or the newest), oldest first, as plain JSON with `toolCalls`."""
    if limit < 1:
        return []
    older, session = load_older_messages(read, before, limit)
    calls = {call.id: call for call in session.tool_calls}
    found = []
    for message in older[-limit:]:
        shown = msgspec.to_builtins(message)
        shown["toolCalls"] = [msgspec.to_builtins(calls[name]) for name in message.call_ids if name in calls]
        found.append(shown)
    return found


def load_older_messages(
    read: Callable[[MessagePage], LoadedSession], before: int | None, limit: int
) -> tuple[list[Message], Session]:
    """At least `limit` messages where there are: numbers may be missing between them."""
    count = limit
    while True:
        loaded = read(MessagePage(before, count))
        older = [message for message in loaded.session.messages if before is None or message.id < before]
        if len(older) >= limit or not loaded.skipped:
            return older, loaded.session
        count *= 4
