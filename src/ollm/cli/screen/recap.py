"""Where a resumed session stood: its last messages, said again in short."""

from __future__ import annotations

from typing import Any

from ollm.cli.screen.paint import Painter

LONGEST = 1_500


def shown_past(page: list[dict[str, Any]], painter: Painter) -> str:
    """A page of the archive as the screen would have shown it."""
    earlier = page[0]["id"] - 1
    text = painter.aside(f"{earlier} earlier messages: /history all", "dim") if earlier else ""
    return text + "".join(shown(message, painter) for message in page)


def shown(message: dict[str, Any], painter: Painter) -> str:
    said = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
    if message["role"] == "user":
        return painter.user(shortened(said)) + "\n"
    if message["role"] != "assistant":
        return ""
    text = painter.markdown(shortened(said)) if said.strip() else ""
    return text + "".join(call_line(call, painter) for call in message["toolCalls"])


def call_line(call: dict[str, Any], painter: Painter) -> str:
    style = "dim" if call["status"] == "ok" else "yellow"
    return painter.aside(f"{'✓' if call['status'] == 'ok' else '✗'} {call['name']} · {call['status']}", style)


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … (/history shows the rest)"
