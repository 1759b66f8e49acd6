"""A session as people read it in a terminal: roles, times, thinking marked, calls folded or not, all made harmless."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ollm.domain.clock import format_age
from ollm.domain.counting import format_count
from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart
from ollm.domain.tools import ToolCallRecord
from ollm.services.session_export.markdown import describe_outcome
from ollm.services.session_export.markdown import format_arguments as arguments_of
from ollm.services.session_export.text import is_plain, slice_text
from ollm.store.session_files import SessionStream
from ollm.system.terminal_text import make_printable

COLOURS = {"user": "green", "assistant": "blue", "system": "magenta", "tool": "yellow"}


Style = Callable[..., str]
FormatMoment = Callable[[str], str]  # a stamp as it is shown


def skip_style(text: str, **_style: Any) -> str:
    """No style at all, for what is no terminal."""
    return text


def format_past(stamp: str) -> str:
    """How long ago that was; a stamp that makes no sense stays as it is."""
    return format_age(stamp) or make_printable(stamp)


def render_session(
    stream: SessionStream, *, unfold: bool, style: Style, moment: FormatMoment = make_printable
) -> Iterator[str]:
    """Piece by piece as it is read, each with its line end; what could not be read is told at the end."""
    session, count = stream.session, 0
    yield style(make_printable(session.metadata.title or "(no title)"), bold=True) + "\n"
    yield f"{session.session_id}  {make_printable(session.model)} ({make_printable(session.provider)})\n"
    yield " to ".join(dict.fromkeys((moment(session.start_time), moment(session.last_activity)))) + "\n"
    for message in stream.iter_messages():
        count += 1
        if message.role != "tool" or message.text:
            yield from _render_message(message, stream, unfold, style, moment)
    for call in stream.iter_other_calls():
        yield from _render_call(call, unfold, style)
    yield f"\n{format_count(count, 'message')}\n"


def render_text(text: str, prefix: str = "") -> Iterator[str]:
    """Several lines made harmless: what is not printable is written as an escape."""
    for piece in slice_text(text.expandtabs(4) if "\t" in text else text):
        if not prefix and is_plain(piece):
            yield piece
        else:
            lines = piece.removesuffix("\n").split("\n")
            yield "\n".join(prefix + make_printable(line) for line in lines) + ("\n" if piece.endswith("\n") else "")
    yield "\n"


def _render_message(
    message: Message, stream: SessionStream, unfold: bool, style: Style, moment: FormatMoment
) -> Iterator[str]:
    mark = style(" (interrupted)", fg="red") if message.interrupted else ""
    name = style(message.role, fg=COLOURS[message.role], bold=True)
    yield f"\n#{message.id} {name}{mark}  {moment(message.timestamp)}\n"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield from render_text(part.text)
        elif isinstance(part, ThinkingPart):
            yield from (style(piece, dim=True) for piece in render_text(part.text, "  ~ "))
        elif isinstance(part, ImagePart):
            yield f"  (an image, {make_printable(part.media_type)})\n"
        elif isinstance(part, ToolCallPart) and (call := stream.find_call(part.id)):
            yield from _render_call(call, unfold, style)


def _render_call(call: ToolCallRecord, unfold: bool, style: Style) -> Iterator[str]:
    lines = count_lines(call.result.llm_content) if call.result else 0
    size = "1 line" if lines == 1 else f"{lines:,} lines"
    arguments = ", ".join(f"{name}={str(value)[:80]}" for name, value in call.args.items())
    folded = make_printable(arguments if len(arguments) <= 70 else arguments[:69] + "…")
    outcome = describe_outcome(call)
    outcome = outcome if call.error is None else f"{outcome}: {make_printable(call.error.message)[:80]}"
    yield f"  {'▾' if unfold else '▸'} {style(make_printable(call.name), bold=True)}({folded}) → {outcome}, {size}\n"
    for asked in call.result.questions if call.result else ():
        yield f"    ? {make_printable(asked.question)}\n    › {make_printable(asked.answer)}\n"
    if unfold:
        yield from render_text(arguments_of(call), "    ")
        if call.result:
            yield from render_text(call.result.full_output or call.result.llm_content, "    │ ")


def count_lines(text: str) -> int:
    return text.count("\n") + bool(text and not text.endswith("\n"))
