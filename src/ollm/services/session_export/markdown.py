"""A session as a Markdown document. Whatever stands in it is fenced so that it cannot break out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart
from ollm.domain.session import Session
from ollm.domain.tools import ToolCallRecord

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}


def markdown(session: Session) -> Iterator[str]:
    """The document, piece by piece; control characters, which a terminal would obey, are made visible."""
    return (visible(piece) for piece in _pieces(session))


def visible(text: str) -> str:
    """The text with control characters other than line ends and tabs written as escapes."""
    if text.replace("\n", "").isprintable():  # most texts are, and this is quicker to tell
        return text
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _pieces(session: Session) -> Iterator[str]:
    yield f"# {_line(session.metadata.title or 'Session')}\n\n"
    yield f"- Session: `{session.session_id}`\n- Model: {_line(session.model)} ({_line(session.provider)})\n"
    yield f"- From {session.start_time} to {session.last_activity}\n"
    if session.metadata.workspace:
        yield f"- Workspace: {_line(session.metadata.workspace)}\n"
    calls = {call.id: call for call in session.tool_calls}
    for message in session.messages:
        if message.role != "tool":
            yield from _message(message, calls)


def _message(message: Message, calls: dict[str, ToolCallRecord]) -> Iterator[str]:
    mark = " (interrupted)" if message.interrupted else ""
    yield f"\n## {message.id}. {NAMES[message.role]}{mark}\n\n*{message.timestamp}*\n"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield f"\n{closed(part.text)}\n"
        elif isinstance(part, ThinkingPart):
            quoted = "\n".join(f"> {line}" for line in closed(part.text).splitlines())
            yield f"\n> *Thinking*\n>\n{quoted}\n"
        elif isinstance(part, ImagePart):
            yield f"\n*(an image, {_line(part.media_type)})*\n"
        elif part.id in calls:
            yield from _call(calls[part.id])


def _call(call: ToolCallRecord) -> Iterator[str]:
    arguments = json.dumps(call.args, ensure_ascii=False, indent=2)
    yield f"\n**Tool call: {_line(call.name)}** ({call.status})\n\n{fenced(arguments, 'json')}\n"
    if call.result:
        yield f"\n{fenced(call.result.full_output or call.result.llm_content)}\n"


def fenced(text: str, language: str = "") -> str:
    """The text in a code block whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def closed(text: str) -> str:
    """The text with a code block that it left open closed."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not found:
            continue
        if not fence:
            fence = found[1]
        elif found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def _line(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")
