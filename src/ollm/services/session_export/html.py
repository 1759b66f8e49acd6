"""A session as one HTML file that needs nothing else and runs nothing: everything escaped, no script, no address."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape

from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart
from ollm.domain.session import Session
from ollm.domain.tools import ToolCallRecord
from ollm.services.session_export.markdown import NAMES, visible

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


def html(session: Session) -> Iterator[str]:
    """The file, piece by piece."""
    return (visible(piece) for piece in _pieces(session))


def _pieces(session: Session) -> Iterator[str]:
    title = escape(session.metadata.title or "Session")
    yield _HEAD.format(title=title)
    about = f"{session.model} ({session.provider}), {session.start_time} to {session.last_activity}"
    yield f'<h1>{title}</h1>\n<p class="meta">{escape(about)}<br>{escape(session.session_id)}</p>\n'
    calls = {call.id: call for call in session.tool_calls}
    for message in session.messages:
        if message.role != "tool":
            yield from _message(message, calls)
    yield "</body>\n</html>\n"


def _message(message: Message, calls: dict[str, ToolCallRecord]) -> Iterator[str]:
    mark = " (interrupted)" if message.interrupted else ""
    when = escape(message.timestamp)
    yield f'<section class="{message.role}" id="m{message.id}">\n'
    yield f"<h2>{message.id}. {NAMES[message.role]}{mark} <time>{when}</time></h2>\n"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield f"<pre>{escape(part.text)}</pre>\n"
        elif isinstance(part, ThinkingPart):
            yield f"<details><summary>Thinking</summary><pre>{escape(part.text)}</pre></details>\n"
        elif isinstance(part, ImagePart):
            yield _image(part)
        elif part.id in calls:
            yield from _call(calls[part.id])
    yield "</section>\n"


def _image(part: ImagePart) -> str:
    if part.media_type not in _IMAGES:
        return f"<p>(an image, {escape(part.media_type)})</p>\n"
    return f'<img alt="" src="data:{part.media_type};base64,{escape(part.data)}">\n'


def _call(call: ToolCallRecord) -> Iterator[str]:
    arguments = escape(json.dumps(call.args, ensure_ascii=False, indent=2))
    yield f"<details><summary>{escape(call.name)} ({call.status})</summary><pre>{arguments}</pre>"
    if call.result:
        yield f"<pre>{escape(call.result.full_output or call.result.llm_content)}</pre>"
    yield "</details>\n"
