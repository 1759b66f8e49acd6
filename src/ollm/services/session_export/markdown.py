"""A session as Markdown, and helpers shared by all export formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart, put_in_fence
from ollm.domain.session import Session
from ollm.domain.tools import ToolCallRecord, describe_call
from ollm.system.terminal_text import escape_controls


class ExportSource(Protocol):
    """The part of the store's `SessionReader` used here. `session` holds neither messages nor calls."""

    @property
    def session(self) -> Session: ...

    def iter_messages(self) -> Iterator[Message]: ...

    def find_call(self, call_id: str) -> ToolCallRecord | None: ...

    def iter_other_calls(self) -> Iterator[ToolCallRecord]: ...


MAX_FOLDED_CHARS = 80
MIN_GATHERED_CHARS = 1 << 15
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?Z")


def format_time(stamp: str) -> str:
    """Format a session timestamp for people. Any other text stays unchanged."""
    found = _STAMP.fullmatch(stamp)
    return f"{found[1]} {found[2]} UTC" if found else stamp


def gather_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """Join small pieces, so that later steps run less often."""
    waiting: list[str] = []
    held = 0
    for piece in pieces:
        waiting.append(piece)
        held += len(piece)
        if held >= MIN_GATHERED_CHARS:
            yield "".join(waiting)
            waiting, held = [], 0
    yield "".join(waiting)


_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
ROLE_NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}


def render_markdown(session: ExportSource, *, folded: bool = False) -> Iterator[str]:
    """Render the document in pieces, with a line for each call if `folded`. Control characters, which affect
    terminals, are made visible."""
    pieces = _render_pieces(session, folded=folded)
    return map(escape_controls, gather_pieces(pieces))


def _render_pieces(source: ExportSource, *, folded: bool) -> Iterator[str]:
    session = source.session
    yield f"# {_flatten_line(session.metadata.title or 'Session')}\n\n"
    yield f"- Session: `{session.session_id}`\n"
    yield f"- Model: {_flatten_line(session.model)} ({_flatten_line(session.provider)})\n"
    yield f"- From {format_time(session.start_time)} to {format_time(session.last_activity)}\n"
    if session.metadata.workspace:
        yield f"- Workspace: {_flatten_line(session.metadata.workspace)}\n"
    for message in source.iter_messages():
        if message.role != "tool" or message.text:
            yield from _render_message(message, source, folded=folded)
    for call in source.iter_other_calls():
        yield from _render_call(call, folded=folded)


def _render_message(message: Message, source: ExportSource, *, folded: bool) -> Iterator[str]:
    yield f"\n## {message.id}. {_flatten_line(ROLE_NAMES[message.role] + message.mark)}\n\n"
    yield f"*{_flatten_line(format_time(message.timestamp))}*\n"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield f"\n{close_fence(part.text)}\n"
        elif isinstance(part, ThinkingPart):
            quoted = "\n".join(f"> {line}" for line in close_fence(part.text).splitlines())
            yield f"\n> *Thinking*\n>\n{quoted}\n"
        elif isinstance(part, ImagePart):
            yield f"\n*(an image, {_flatten_line(part.media_type)})*\n"
        elif isinstance(part, ToolCallPart) and (call := source.find_call(part.id)):
            yield from _render_call(call, folded=folded)


def _render_call(call: ToolCallRecord, *, folded: bool) -> Iterator[str]:
    outcome = describe_outcome(call)
    if folded:
        failure = f": {_flatten_line(call.error.message)[:MAX_FOLDED_CHARS]}" if call.error else ""
        summary = _flatten_line(describe_call(call.name, call.args, call.summary))
        yield f"\n▸ {summary[:MAX_FOLDED_CHARS]} → {outcome}{failure}\n"
    else:
        arguments = put_in_fence(format_arguments(call), "json")
        yield f"\n**Tool call: {_flatten_line(call.name)}** ({outcome})\n\n{arguments}\n"
    for asked in call.result.questions if call.result else ():
        yield f"\n> {_flatten_line(asked.question)}\n>\n> **{_flatten_line(asked.answer)}**\n"
    if call.result and not folded:
        yield f"\n{put_in_fence(call.result.full_output or call.result.llm_content)}\n"


def describe_outcome(call: ToolCallRecord) -> str:
    """Describe the outcome of a call. A command with a non-zero exit code is not ok."""
    failed = call.result is not None and call.result.exit_code
    return f"exit {call.result.exit_code}" if failed and call.result else call.status


def format_arguments(call: ToolCallRecord) -> str:
    return msgspec.json.format(msgspec.json.encode(call.args), indent=2).decode("utf-8", "replace")


def close_fence(text: str) -> str:
    """Close a code block that the text left open."""
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
