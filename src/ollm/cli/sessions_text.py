"""A session as people read it in a terminal: roles, times, thinking marked, calls folded or not, all made harmless."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ollm.cli.options import printable
from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart
from ollm.domain.session import Session
from ollm.domain.tools import ToolCallRecord

COLOURS = {"user": "green", "assistant": "blue", "system": "magenta", "tool": "yellow"}


Style = Callable[..., str]


def plain(text: str, **_style: Any) -> str:
    """No style at all, for what is no terminal."""
    return text


def session_lines(session: Session, *, unfold: bool, style: Style) -> Iterator[str]:
    """Piece by piece, each with its line end."""
    yield style(printable(session.metadata.title or "(no title)"), bold=True) + "\n"
    yield f"{session.session_id}  {printable(session.model)} ({printable(session.provider)})\n"
    yield f"{session.start_time} to {session.last_activity}, {len(session.messages)} messages\n"
    calls = {call.id: call for call in session.tool_calls}
    for message in session.messages:
        if message.role != "tool":
            yield from _message(message, calls, unfold, style)


def shown(text: str, prefix: str = "") -> str:
    """Several lines made harmless: what is not printable is written as an escape."""
    if not prefix and text.replace("\n", "").isprintable():
        return text + "\n"
    lines = text.expandtabs(4).split("\n")
    return "".join(f"{prefix}{printable(line)}\n" for line in lines)


def _message(message: Message, calls: dict[str, ToolCallRecord], unfold: bool, style: Style) -> Iterator[str]:
    mark = style(" (interrupted)", fg="red") if message.interrupted else ""
    name = style(message.role, fg=COLOURS[message.role], bold=True)
    yield f"\n#{message.id} {name}{mark}  {printable(message.timestamp)}\n"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield shown(part.text)
        elif isinstance(part, ThinkingPart):
            yield style(shown(part.text, "  ~ "), dim=True)
        elif isinstance(part, ImagePart):
            yield f"  (an image, {printable(part.media_type)})\n"
        elif part.id in calls:
            yield from _call(calls[part.id], unfold, style)


def _call(call: ToolCallRecord, unfold: bool, style: Style) -> Iterator[str]:
    lines = len(call.result.llm_content.splitlines()) if call.result else 0
    size = "1 line" if lines == 1 else f"{lines:,} lines"
    arguments = ", ".join(f"{name}={value}" for name, value in call.args.items())
    folded = printable(arguments if len(arguments) <= 70 else arguments[:69] + "…")
    outcome = call.status if call.error is None else f"{call.status}: {printable(call.error.message)[:80]}"
    yield f"  {'▾' if unfold else '▸'} {style(printable(call.name), bold=True)}({folded}) → {outcome}, {size}\n"
    if unfold:
        yield shown(json.dumps(call.args, ensure_ascii=False, indent=2), "    ")
        if call.result:
            yield shown(call.result.full_output or call.result.llm_content, "    │ ")
