"""The newest messages of a session, bounded in four ways, in an order any server accepts (W: recent messages).

A call and its results are never parted, the window starts with a user message, and a call that was interrupted has a
result that says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from ollm.config.settings import ResumeSettings
from ollm.domain.messages import PromptMessage, ToolCall

INTERRUPTED_TEXT = "[interrupted: this call has no result]"
MESSAGE_OVERHEAD_CHARS = 64  # keys and quotes of one message in JSON


class RecentWindow:
    """A ring buffer fed with every message; `flush` returns what to keep."""

    def __init__(self, settings: ResumeSettings, messages: Iterable[PromptMessage] = ()) -> None:
        self._settings = settings
        self._ring: deque[PromptMessage] = deque(maxlen=max(settings.messages * 2, 8))
        self._request: PromptMessage | None = None
        for message in messages:
            self.add(message)

    def add(self, message: PromptMessage) -> None:
        if message.role == "user":
            self._request = message
        self._ring.append(message)

    def collect_messages(self) -> tuple[PromptMessage, ...]:
        """Collect the newest messages that fit, oldest first. If no user message fits, the newest one is put before the
        rest."""
        units = [shorten_unit(unit, self._settings) for unit in group_units(self._ring)]
        first = [shorten_unit([self._request], self._settings)[0]] if self._request else []
        available = self._settings.messages - len(first), self._settings.total_chars - count_json_chars(first)
        kept = select_newest(units, *available)
        start = next((i for i, unit in enumerate(kept) if unit[0].role == "user"), None)
        if start is not None:
            return tuple(message for unit in kept[start:] for message in unit)
        return (*first, *(message for unit in kept for message in unit)) if first else ()


def group_units(messages: Iterable[PromptMessage]) -> list[list[PromptMessage]]:
    """Messages grouped so that an answer is with the results of its calls; stray results are left out."""
    units: list[list[PromptMessage]] = []
    waiting: dict[str, ToolCall] = {}
    for message in messages:
        if message.role == "tool":
            if message.call_id in waiting:
                del waiting[message.call_id]
                units[-1].append(message)
            continue
        if message.role == "system":
            continue
        close_unit(units, waiting)
        units.append([message])
        waiting = {call.id: call for call in message.calls}
    close_unit(units, waiting)
    return units


def close_unit(units: list[list[PromptMessage]], waiting: dict[str, ToolCall]) -> None:
    """Give the calls of the last unit that have no result one that says so."""
    for call in waiting.values():
        units[-1].append(
            PromptMessage(role="tool", content=INTERRUPTED_TEXT, call_id=call.id, tool_name=call.name, failed=True)
        )


def shorten_unit(unit: Sequence[PromptMessage], settings: ResumeSettings) -> list[PromptMessage]:
    return [
        msgspec.structs.replace(
            message,
            content=cut_text(
                message.content, settings.tool_output_chars if message.role == "tool" else settings.message_chars
            ),
            thinking="",
            images=(),
            written="",
            calls=tuple(shorten_call(call, settings.message_chars) for call in message.calls),
        )
        for message in unit
    ]


def shorten_call(call: ToolCall, limit: int) -> ToolCall:
    """A call whose arguments are too long keeps its name and what it was about."""
    encoded = msgspec.json.encode(call.arguments)
    if len(encoded) <= limit:
        return call
    share = max(16, limit // (2 * max(1, len(call.arguments))))
    short = {key: cut_text(value, share) if isinstance(value, str) else value for key, value in call.arguments.items()}
    if len(msgspec.json.encode(short)) > limit:
        short = {"cut": cut_text(encoded.decode(errors="replace"), limit // 2)}
    return msgspec.structs.replace(call, arguments=short)


def cut_text(text: str, limit: int) -> str:
    """At most `limit` characters: the head, the tail, and how much is missing between them."""
    if len(text) <= limit:
        return text
    mark = f"\n[… {len(text) - limit} characters omitted …]\n"
    if len(mark) >= limit:
        return text[:limit]
    available = limit - len(mark)
    return text[: available - available // 3] + mark + (text[-(available // 3) :] if available >= 3 else "")


def select_newest(units: Sequence[list[PromptMessage]], messages: int, characters: int) -> list[list[PromptMessage]]:
    """Whole units from the end, as many as fit both limits."""
    kept: list[list[PromptMessage]] = []
    for unit in reversed(units):
        messages -= len(unit)
        characters -= count_json_chars(unit)
        if messages < 0 or characters < 0:
            break
        kept.append(unit)
    return kept[::-1]


def count_json_chars(messages: Sequence[PromptMessage]) -> int:
    """Characters these messages take as JSON."""
    return sum(len(msgspec.json.encode(message).decode()) + MESSAGE_OVERHEAD_CHARS for message in messages)
