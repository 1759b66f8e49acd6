"""A session as one HTML file that needs nothing else and runs nothing: no script, and nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ollm.domain.messages import Message
from ollm.services.session_export.html_message import render_call_as_html, render_message_as_html
from ollm.services.session_export.html_page import render_page_head
from ollm.services.session_export.source import ExportSource
from ollm.services.session_export.text import format_time, gather_pieces
from ollm.system.terminal_text import escape_controls

MAX_CONTENTS_ENTRIES = 2_000
MAX_ENTRY_CHARS = 70


def render_html(session: ExportSource) -> Iterator[str]:
    """The file, piece by piece."""
    return map(escape_controls, gather_pieces(_render_pieces(session)))


def _render_pieces(source: ExportSource) -> Iterator[str]:
    """The contents come last, when they are known; the page shows them first."""
    session = source.session
    title = escape(session.metadata.title or "Session")
    yield render_page_head(title)
    begun, ended = format_time(session.start_time), format_time(session.last_activity)
    about = f"{session.model} ({session.provider}), {begun} to {ended}"
    meta = f'<p class="meta">{escape(about)}<br>{escape(session.session_id)}</p>'
    yield f'<header><h1>{title}</h1>\n{meta}</header>\n<main class="transcript">\n'
    contents: list[str] = []
    for message in source.iter_messages():
        if message.role == "user" and len(contents) < MAX_CONTENTS_ENTRIES:
            contents.append(_render_entry(message))
        if message.role != "tool" or message.text:
            yield from render_message_as_html(message, source.find_call)
    for call in source.iter_other_calls():
        yield from render_call_as_html(call)
    yield f"</main>\n<nav><h2>Contents</h2>\n<ol>\n{''.join(contents)}</ol></nav>\n</body>\n</html>\n"


def _render_entry(message: Message) -> str:
    line = next((line.strip() for line in message.text.splitlines() if line.strip()), "(no text)")
    short = line if len(line) <= MAX_ENTRY_CHARS else f"{line[: MAX_ENTRY_CHARS - 1]}…"
    return f'<li><a href="#m{message.id}">{escape(short)}</a></li>\n'
