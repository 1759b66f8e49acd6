"""Where a resumed session stood: its last messages, said again in short."""

from __future__ import annotations

from typing import Any

from ollm.cli.screen.paint import Painter

MAX_MESSAGE_CHARACTERS = 1_500
SUMMARIES = {
    "shell": ("Run", "command"),
    "read_file": ("Read", "path"),
    "edit_file": ("Edit", "path"),
    "write_file": ("Write", "path"),
    "grep": ("Search for", "pattern"),
    "glob": ("Find files matching", "pattern"),
    "ls": ("List", "path"),
    "web_fetch": ("Fetch", "url"),
    "web_search": ("Search the web for", "query"),
}
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
    text = painter.paint_answer(shorten(said), first=True) + "\n" if said.strip() else ""
    return text + "".join(render_call(call, painter) for call in message["toolCalls"])


def render_call(call: dict[str, Any], painter: Painter) -> str:
    mark, style = MARKS.get(call["status"], ("✗", "yellow"))
    code = (call.get("result") or {}).get("exitCode")
    if code:
        mark, style = "✗", "yellow"
    outcome = f" · exit {code}" if code else "" if call["status"] == "ok" else f" · {call['status']}"
    return painter.paint_aside(f"{mark} {summarize_call(call)}{outcome}", style)


def summarize_call(call: dict[str, Any]) -> str:
    """A recorded call in the words it had when it ran."""
    verb, key = SUMMARIES.get(call["name"], ("", ""))
    value = str(call["args"].get(key, "")) if key else ""
    return f"{verb} {' '.join(value.split())[:200]}" if value else str(call["name"])


def shorten(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE_CHARACTERS else f"{text[:MAX_MESSAGE_CHARACTERS]} … (see /history)"
