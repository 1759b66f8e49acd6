"""One message as HTML, the same in an exported file and on the page: its text, thoughts, pictures, calls and diffs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from html import escape

from ollm.domain.call_summary import summarize_call
from ollm.domain.counting import format_count
from ollm.domain.line_diff import compare_words, parse_diff
from ollm.domain.messages import ImagePart, Message, TextPart, ThinkingPart, ToolCallPart
from ollm.domain.tools import ToolCallRecord
from ollm.services.session_export.html_markdown import render_markdown_as_html
from ollm.services.session_export.markdown import ROLE_NAMES, describe_outcome, format_arguments
from ollm.services.session_export.text import format_time, slice_text

MAX_OPEN_CHARS = 2_000  # of an attachment or a failure; a longer one is folded
MAX_OPEN_LINES = 30
MAX_OPEN_TYPED_CHARS = 20_000  # of what a person typed or pasted
MAX_RENDERED_CHARS = 100_000  # of Markdown; a longer text is shown as it is
FindCall = Callable[[str], ToolCallRecord | None]
_ATTACHED = re.compile(r"\n\n\[([^\n]{1,1000})\]\n")  # as a text beside a message begins
_IMAGES = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_DIFF_CLASSES = {"+": "add", "-": "del"}


def render_message_as_html(message: Message, find_call: FindCall, most_chars: int | None = None) -> Iterator[str]:
    """The message in pieces. Of a longer output than `most_chars` the rest is only counted."""
    mark = " (interrupted)" if message.interrupted else ""
    when = escape(message.timestamp)
    yield f'<section class="{message.role}" id="m{message.id}">\n'
    yield f'<h2><span class="number">{message.id}.</span> {ROLE_NAMES[message.role]}{mark} '
    yield f'<time datetime="{when}">{escape(format_time(message.timestamp))}</time></h2>\n'
    for part in message.parts:
        if isinstance(part, TextPart) and message.role == "user":
            yield from _render_typed(part.text, most_chars)
        elif isinstance(part, TextPart):
            yield from _render_text(part.text, markdown=message.role == "assistant")
        elif isinstance(part, ThinkingPart):
            yield '<details class="thinking"><summary>Thinking</summary>'
            yield from _render_text(part.text, markdown=True)
            yield "</details>\n"
        elif isinstance(part, ImagePart):
            yield _render_image(part)
        elif isinstance(part, ToolCallPart) and (call := find_call(part.id)):
            yield from render_call_as_html(call, most_chars)
    yield "</section>\n"


def _render_typed(text: str, most_chars: int | None) -> Iterator[str]:
    """What a person typed or attached is shown as it is; what is long is folded under its name."""
    attached = _ATTACHED.match(text)
    body = text[attached.end() :] if attached else text
    long = not is_short(body) if attached else len(body) > MAX_OPEN_TYPED_CHARS
    if not long and not attached:
        yield from _render_block(text, "said")
        return
    name, state = escape(attached[1]) if attached else "Long text", "" if long else " open"
    size = format_count(len(body), "character")
    yield f'<details class="attachment"{state}><summary><b>{name}</b> {size}</summary>\n'
    yield from _render_block(body, "" if attached else "said", most_chars)
    yield "</details>\n"


def is_short(text: str) -> bool:
    """Whether what was attached, or what a failed call printed, is read at a glance."""
    return len(text) <= MAX_OPEN_CHARS and text.count("\n") <= MAX_OPEN_LINES


def _render_text(text: str, *, markdown: bool) -> Iterator[str]:
    """Words of the model as Markdown, all others as they are."""
    if markdown and len(text) <= MAX_RENDERED_CHARS:
        yield f'<div class="text">{render_markdown_as_html(text)}</div>\n'
    else:
        yield from _render_block(text, "said")


def _render_block(text: str, kind: str = "", most_chars: int | None = None) -> Iterator[str]:
    yield f'<pre class="{kind}">' if kind else "<pre>"
    for piece in slice_text(text if most_chars is None else text[:most_chars]):
        yield escape(piece, quote=False)
    yield "</pre>\n"
    yield from _render_rest(text, most_chars)


def _render_rest(text: str, most_chars: int | None) -> Iterator[str]:
    """How much of a text is not shown."""
    if most_chars is not None and len(text) > most_chars:
        yield f'<p class="meta">{format_count(len(text) - most_chars, "more character")}; an export has them all.</p>\n'


def _render_image(part: ImagePart) -> str:
    if part.media_type not in _IMAGES:
        return f"<p>(an image, {escape(part.media_type)})</p>\n"
    return f'<img alt="Attached image" src="data:{part.media_type};base64,{escape(part.data)}">\n'


def render_call_as_html(call: ToolCallRecord, most_chars: int | None = None) -> Iterator[str]:
    """A change is open, and a failure that is short; everything else is folded."""
    outcome = describe_outcome(call)
    diff = call.result.diff if call.result else ""
    kind = outcome if outcome in ("ok", "running") else "failed"
    summary = f'<b>{escape(summarize_call(call.name, call.args))}</b> <span class="outcome">{escape(outcome)}</span>'
    output = (call.result.full_output or call.result.llm_content) if call.result else ""
    state = " open" if diff or (kind == "failed" and output and is_short(output)) else ""
    yield f'<details class="call {kind}" data-call="{escape(call.id)}"{state}><summary>{summary}</summary>\n'
    for asked in call.result.questions if call.result else ():
        yield f'<p class="asked">? {escape(asked.question)}<br>› {escape(asked.answer)}</p>\n'
    if diff:
        yield from render_diff_as_html(diff, most_chars)
    else:
        yield from _render_block(f"{call.name} {format_arguments(call)}", "arguments", most_chars)
    if call.result and not diff:
        yield from _render_block(output, "output", most_chars)
    for image in call.result.images if call.result else ():
        yield _render_image(image)
    yield "</details>\n"


def render_diff_as_html(diff: str, most_chars: int | None = None) -> Iterator[str]:
    """One line under the other with its number; the words that changed inside a line are marked."""
    yield '<pre class="diff">'
    come: list[str] = []
    for row in parse_diff(diff if most_chars is None else diff[:most_chars]):
        if row.kind == "change":
            both = row.before is not None and row.after is not None
            gone, added = compare_words(row.before or "", row.after or "") if both else ([], [])
            if row.before is not None:
                yield _render_diff_line("-", row.before, row.old, gone)
            if row.after is not None:
                come.append(_render_diff_line("+", row.after, row.new, added))
            continue
        yield from come
        come = []
        if row.kind == "same":
            yield _render_diff_line(" ", row.after or "", row.new)
        else:
            kind = "hunk" if row.kind == "gap" else "head"
            yield f'<span class="{kind}">{escape(row.before or "", quote=False)}\n</span>'
    yield from come
    yield "</pre>\n"
    yield from _render_rest(diff, most_chars)


def _render_diff_line(mark: str, text: str, number: int, spans: Iterable[tuple[int, int]] = ()) -> str:
    """The number is drawn beside the line: it is not copied with it."""
    kind = _DIFF_CLASSES.get(mark, "")
    head = (f' class="{kind}"' if kind else "") + (f' data-line="{number}"' if number else "")
    parts, at = [], 0
    for start, end in spans:
        parts += [escape(text[at:start], quote=False), f"<mark>{escape(text[start:end], quote=False)}</mark>"]
        at = end
    return f"<span{head}>{mark}{''.join(parts)}{escape(text[at:], quote=False)}\n</span>"
