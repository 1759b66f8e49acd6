"""A session as a Markdown document. Whatever stands in it is fenced so that it cannot break out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart
from ollm.domain.tools import ToolCallRecord
from ollm.services.session_export.source import Readable
from ollm.services.session_export.text import gathered, slices, visible

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}


def markdown(session: Readable) -> Iterator[str]:
    """The document, piece by piece; control characters, which a terminal would obey, are made visible."""
    return map(visible, gathered(part for piece in _pieces(session) for part in slices(piece)))


def _pieces(source: Readable) -> Iterator[str]:
    session = source.session
    yield f"# {_line(session.metadata.title or 'Session')}\n\n"
    yield f"- Session: `{session.session_id}`\n- Model: {_line(session.model)} ({_line(session.provider)})\n"
    yield f"- From {session.start_time} to {session.last_activity}\n"
    if session.metadata.workspace:
        yield f"- Workspace: {_line(session.metadata.workspace)}\n"
    for message in source.messages():
        if message.role != "tool" or message.text:
            yield from _message(message, source)
    for call in source.other_calls():
        yield from _call(call)


def _message(message: Message, source: Readable) -> Iterator[str]:
    mark = " (interrupted)" if message.interrupted else ""
    yield f"\n## {message.id}. {NAMES[message.role]}{mark}\n\n*{_line(message.timestamp)}*\n"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield f"\n{closed(part.text)}\n"
        elif isinstance(part, ThinkingPart):
            quoted = "\n".join(f"> {line}" for line in closed(part.text).splitlines())
            yield f"\n> *Thinking*\n>\n{quoted}\n"
        elif isinstance(part, ImagePart):
            yield f"\n*(an image, {_line(part.media_type)})*\n"
        elif isinstance(part, ToolCallPart) and (call := source.call(part.id)):
            yield from _call(call)


def _call(call: ToolCallRecord) -> Iterator[str]:
    yield f"\n**Tool call: {_line(call.name)}** ({call.status})\n\n{fenced(arguments(call), 'json')}\n"
    if call.result:
        yield f"\n{fenced(call.result.full_output or call.result.llm_content)}\n"


def arguments(call: ToolCallRecord) -> str:
    """What the call was asked with, as JSON on several lines."""
    return msgspec.json.format(msgspec.json.encode(call.args), indent=2).decode("utf-8", "replace")


def fenced(text: str, language: str = "") -> str:
    """The text in a code block whose fence is longer than any run of backticks in it."""
    longest = max(map(len, re.findall(r"`+", text)), default=0) if "`" in text else 0
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def closed(text: str) -> str:
    """The text with a code block that it left open closed."""
    if "```" not in text and "~~~" not in text:
        return text
    fence = ""
    for found in _FENCE.finditer(text):
        if not fence:
            fence = found[1]
        elif found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _line(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")
