"""A session as one HTML file that needs nothing else and runs nothing: everything escaped, no script, no address."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart
from ollm.domain.tools import ToolCallRecord
from ollm.services.session_export.markdown import ROLE_NAMES, describe_outcome, format_arguments
from ollm.services.session_export.source import ExportSource
from ollm.services.session_export.text import gather_pieces, slice_text
from ollm.system.terminal_text import escape_controls

_IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #222; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .3rem 0; }}
details pre {{ font: 13px/1.4 ui-monospace, monospace; background: #f4f4f4; padding: .6rem; }}
section {{ border-left: 4px solid #ccc; padding-left: 1rem; margin: 1.2rem 0; }}
section.user {{ border-color: #2a6; }} section.assistant {{ border-color: #26a; }}
h2 {{ font-size: 1rem; margin: 0; }} time, .meta {{ color: #777; font-size: .85rem; }}
@media (prefers-color-scheme: dark) {{
  body {{ background: #181818; color: #ddd; }} details pre {{ background: #222; }}
}}
</style>
</head>
<body>
"""


def render_html(session: ExportSource) -> Iterator[str]:
    """The file, piece by piece."""
    return map(escape_controls, gather_pieces(_render_pieces(session)))


def _render_pieces(source: ExportSource) -> Iterator[str]:
    session = source.session
    title = escape(session.metadata.title or "Session")
    yield _HEAD.format(title=title)
    about = f"{session.model} ({session.provider}), {session.start_time} to {session.last_activity}"
    yield f'<h1>{title}</h1>\n<p class="meta">{escape(about)}<br>{escape(session.session_id)}</p>\n'
    for message in source.iter_messages():
        if message.role != "tool" or message.text:
            yield from _render_message(message, source)
    for call in source.iter_other_calls():
        yield from _render_call(call)
    yield "</body>\n</html>\n"


def _render_message(message: Message, source: ExportSource) -> Iterator[str]:
    mark = " (interrupted)" if message.interrupted else ""
    when = escape(message.timestamp)
    yield f'<section class="{message.role}" id="m{message.id}">\n'
    yield f"<h2>{message.id}. {ROLE_NAMES[message.role]}{mark} <time>{when}</time></h2>\n"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield from _render_block(part.text)
        elif isinstance(part, ThinkingPart):
            yield "<details><summary>Thinking</summary>"
            yield from _render_block(part.text)
            yield "</details>\n"
        elif isinstance(part, ImagePart):
            yield _render_image(part)
        elif isinstance(part, ToolCallPart) and (call := source.find_call(part.id)):
            yield from _render_call(call)
    yield "</section>\n"


def _render_block(text: str) -> Iterator[str]:
    yield "<pre>"
    for piece in slice_text(text):
        yield escape(piece, quote=False)
    yield "</pre>\n"


def _render_image(part: ImagePart) -> str:
    if part.media_type not in _IMAGES:
        return f"<p>(an image, {escape(part.media_type)})</p>\n"
    return f'<img alt="" src="data:{part.media_type};base64,{escape(part.data)}">\n'


def _render_call(call: ToolCallRecord) -> Iterator[str]:
    yield f"<details><summary>{escape(call.name)} ({describe_outcome(call)})</summary>"
    yield from _render_block(format_arguments(call))
    if call.result:
        yield from _render_block(call.result.full_output or call.result.llm_content)
    yield "</details>\n"
