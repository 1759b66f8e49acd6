"""A session as one HTML file that needs nothing else and runs nothing: no script, and nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ollm.domain.call_summary import summarize_call
from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart
from ollm.domain.tools import ToolCallRecord
from ollm.services.session_export.html_markdown import render_markdown_as_html
from ollm.services.session_export.html_page import PAGE_HEAD
from ollm.services.session_export.markdown import ROLE_NAMES, describe_outcome, format_arguments
from ollm.services.session_export.source import ExportSource
from ollm.services.session_export.text import gather_pieces, slice_text
from ollm.system.terminal_text import escape_controls

MAX_RENDERED_CHARS = 100_000  # of Markdown; a longer text is shown as it is
MAX_CONTENTS_ENTRIES = 2_000
MAX_ENTRY_CHARS = 70
_IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_DIFF_CLASSES = {"+": "add", "-": "del", "@": "hunk"}


def render_html(session: ExportSource) -> Iterator[str]:
    """The file, piece by piece."""
    return map(escape_controls, gather_pieces(_render_pieces(session)))


def _render_pieces(source: ExportSource) -> Iterator[str]:
    """The contents come last, when they are known; the page shows them first."""
    session = source.session
    title = escape(session.metadata.title or "Session")
    yield PAGE_HEAD.replace("{title}", title)
    about = f"{session.model} ({session.provider}), {session.start_time} to {session.last_activity}"
    meta = f'<p class="meta">{escape(about)}<br>{escape(session.session_id)}</p>'
    yield f"<header><h1>{title}</h1>\n{meta}</header>\n<main>\n"
    contents: list[str] = []
    for message in source.iter_messages():
        if message.role == "user" and len(contents) < MAX_CONTENTS_ENTRIES:
            contents.append(_render_entry(message))
        if message.role != "tool" or message.text:
            yield from _render_message(message, source)
    for call in source.iter_other_calls():
        yield from _render_call(call)
    yield f"</main>\n<nav><h2>Contents</h2>\n<ol>\n{''.join(contents)}</ol></nav>\n</body>\n</html>\n"


def _render_entry(message: Message) -> str:
    line = next((line.strip() for line in message.text.splitlines() if line.strip()), "(no text)")
    short = line if len(line) <= MAX_ENTRY_CHARS else f"{line[: MAX_ENTRY_CHARS - 1]}…"
    return f'<li><a href="#m{message.id}">{escape(short)}</a></li>\n'


def _render_message(message: Message, source: ExportSource) -> Iterator[str]:
    mark = " (interrupted)" if message.interrupted else ""
    when = escape(message.timestamp)
    yield f'<section class="{message.role}" id="m{message.id}">\n'
    yield f"<h2>{message.id}. {ROLE_NAMES[message.role]}{mark} <time>{when}</time></h2>\n"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield from _render_text(part.text, markdown=message.role == "assistant")
        elif isinstance(part, ThinkingPart):
            yield "<details><summary>Thinking</summary>"
            yield from _render_text(part.text, markdown=True)
            yield "</details>\n"
        elif isinstance(part, ImagePart):
            yield _render_image(part)
        elif isinstance(part, ToolCallPart) and (call := source.find_call(part.id)):
            yield from _render_call(call)
    yield "</section>\n"


def _render_text(text: str, *, markdown: bool) -> Iterator[str]:
    """What a person typed is shown as it is."""
    if markdown and len(text) <= MAX_RENDERED_CHARS:
        yield f'<div class="text">{render_markdown_as_html(text)}</div>\n'
    else:
        yield from _render_block(text, "said")


def _render_block(text: str, kind: str = "") -> Iterator[str]:
    yield f'<pre class="{kind}">' if kind else "<pre>"
    for piece in slice_text(text):
        yield escape(piece, quote=False)
    yield "</pre>\n"


def _render_image(part: ImagePart) -> str:
    if part.media_type not in _IMAGES:
        return f"<p>(an image, {escape(part.media_type)})</p>\n"
    return f'<img alt="" src="data:{part.media_type};base64,{escape(part.data)}">\n'


def _render_call(call: ToolCallRecord) -> Iterator[str]:
    """A change stands open, everything else is folded."""
    outcome = describe_outcome(call)
    diff = call.result.diff if call.result else ""
    kind = "ok" if outcome == "ok" else "failed"
    summary = f"<b>{escape(summarize_call(call.name, call.args))}</b> {escape(outcome)}"
    yield f'<details class="call {kind}"{" open" if diff else ""}><summary>{summary}</summary>\n'
    if diff:
        yield from _render_diff(diff)
    else:
        yield from _render_block(f"{call.name} {format_arguments(call)}", "arguments")
    if call.result and not diff:
        yield from _render_block(call.result.full_output or call.result.llm_content)
    yield "</details>\n"


def _render_diff(diff: str) -> Iterator[str]:
    yield '<pre class="diff">'
    for line in diff.splitlines():
        kind = "head" if line.startswith(("--- ", "+++ ")) else _DIFF_CLASSES.get(line[:1], "")
        yield f'<span class="{kind}">{escape(line, quote=False)}\n</span>' if kind else f"{escape(line, quote=False)}\n"
    yield "</pre>\n"
