"""Where a resumed session stood: its last messages, said again in short."""

from __future__ import annotations

from typing import Any

from ollm.cli.screen.paint import Painter

MAX_MESSAGE_CHARACTERS = 1_500
MARKS = {"ok": ("✓", "dim"), "running": ("…", "dim")}


def render_recap(page: list[dict[str, Any]], painter: Painter) -> str:
    """A page of the archive as the screen would have shown it."""
    earlier = page[0]["id"] - 1
    text = painter.paint_aside(f"{earlier} earlier messages: /history all", "dim") if earlier else ""
    return text + "".join(render_message(message, painter) for message in page)


def render_message(message: dict[str, Any], painter: Painter) -> str:
    said = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
    if message["role"] == "user":
        return painter.paint_user_message(shorten(said)) + "\n"
    if message["role"] != "assistant":
        return ""
    text = painter.paint_markdown(shorten(said)) if said.strip() else ""
    return text + "".join(render_call(call, painter) for call in message["toolCalls"])


def render_call(call: dict[str, Any], painter: Painter) -> str:
    mark, style = MARKS.get(call["status"], ("✗", "yellow"))
    return painter.paint_aside(f"{mark} {call['name']} · {call['status']}", style)


def shorten(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE_CHARACTERS else f"{text[:MAX_MESSAGE_CHARACTERS]} … (see /history)"
