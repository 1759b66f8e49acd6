"""A session as a Markdown document. Whatever is in it is fenced so that it cannot break out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart
from ollm.domain.tools import ToolCallRecord
from ollm.services.session_export.source import ExportSource
from ollm.services.session_export.text import format_time, gather_pieces, slice_text
from ollm.system.terminal_text import escape_controls

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
ROLE_NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}


def render_markdown(session: ExportSource) -> Iterator[str]:
    """The document, piece by piece; control characters, which a terminal would obey, are made visible."""
    return map(escape_controls, gather_pieces(part for piece in _render_pieces(session) for part in slice_text(piece)))


def _render_pieces(source: ExportSource) -> Iterator[str]:
    session = source.session
    yield f"# {_flatten_line(session.metadata.title or 'Session')}\n\n"
    yield f"- Session: `{session.session_id}`\n"
    yield f"- Model: {_flatten_line(session.model)} ({_flatten_line(session.provider)})\n"
    yield f"- From {format_time(session.start_time)} to {format_time(session.last_activity)}\n"
    if session.metadata.workspace:
        yield f"- Workspace: {_flatten_line(session.metadata.workspace)}\n"
    for message in source.iter_messages():
        if message.role != "tool" or message.text:
            yield from _render_message(message, source)
    for call in source.iter_other_calls():
        yield from _render_call(call)


def _render_message(message: Message, source: ExportSource) -> Iterator[str]:
    mark = " (interrupted)" if message.interrupted else ""
    yield f"\n## {message.id}. {ROLE_NAMES[message.role]}{mark}\n\n*{_flatten_line(format_time(message.timestamp))}*\n"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield f"\n{close_fence(part.text)}\n"
        elif isinstance(part, ThinkingPart):
            quoted = "\n".join(f"> {line}" for line in close_fence(part.text).splitlines())
            yield f"\n> *Thinking*\n>\n{quoted}\n"
        elif isinstance(part, ImagePart):
            yield f"\n*(an image, {_flatten_line(part.media_type)})*\n"
        elif isinstance(part, ToolCallPart) and (call := source.find_call(part.id)):
            yield from _render_call(call)


def _render_call(call: ToolCallRecord) -> Iterator[str]:
    arguments = fence_text(format_arguments(call), "json")
    yield f"\n**Tool call: {_flatten_line(call.name)}** ({describe_outcome(call)})\n\n{arguments}\n"
    for asked in call.result.questions if call.result else ():
        yield f"\n> {_flatten_line(asked.question)}\n>\n> **{_flatten_line(asked.answer)}**\n"
    if call.result:
        yield f"\n{fence_text(call.result.full_output or call.result.llm_content)}\n"


def describe_outcome(call: ToolCallRecord) -> str:
    """How it ended: a command that failed is not ok."""
    failed = call.result is not None and call.result.exit_code
    return f"exit {call.result.exit_code}" if failed and call.result else call.status


def format_arguments(call: ToolCallRecord) -> str:
    """What the call was asked with, as JSON on several lines."""
    return msgspec.json.format(msgspec.json.encode(call.args), indent=2).decode("utf-8", "replace")


def fence_text(text: str, language: str = "") -> str:
    """The text in a code block whose fence is longer than any run of backticks in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def close_fence(text: str) -> str:
    """The text with a code block that it left open closed."""
    if "```" not in text and "~~~" not in text:
        return text
    fence = ""
    for found in _FENCE.finditer(text):
        if not fence:
            fence = found[1]
        elif found[1].startswith(fence) and not found[2].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _flatten_line(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")
