"""A session as one self-contained HTML file, without scripts or external resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ollm.domain.line_diff import compare_words, parse_diff
from ollm.domain.messages import PICTURE_TYPES, ImagePart, Message, TextPart, ThinkingPart, ToolCallPart
from ollm.domain.text import format_count, shorten_line
from ollm.domain.tools import ToolCallRecord, describe_call
from ollm.services.session_export.markdown import (
    ROLE_NAMES,
    ExportSource,
    describe_outcome,
    format_arguments,
    format_time,
    gather_pieces,
)
from ollm.system.terminal_text import escape_controls

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_COLOURED_CHARS = 60_000  # Colouring longer code takes seconds.


def render_code_as_html(code: str, language: str) -> str:
    """Render highlighted code. Code in an unknown language stays plain."""
    name = language.strip().split()[0].lower() if language.strip() else ""
    if not name or len(code) > MAX_COLOURED_CHARS:
        return escape(code, quote=False)
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return escape(code, quote=False)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


MAX_NESTING = 100  # The parser leaves out deeper parts.
TAGS = frozenset(
    "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul".split()  # noqa: SIM905 - a list of one line
)
ATTRIBUTES = {"a": {"href"}, "code": {"class"}, "span": {"class"}, "ol": {"start"}, "pre": {"class"}}
SCHEMES = frozenset({"http", "https", "mailto"})
_DEEP_QUOTE = r"(?:>[ \t]?){40}"


def render_markdown_as_html(text: str) -> str:
    """Render paragraphs, lists, tables, code and links. Text that cannot be parsed stays unchanged."""
    parsed = None if re.search(_DEEP_QUOTE, text) else _render_parsed(text)
    return f"<pre>{escape(text, quote=False)}</pre>" if parsed is None else parsed


def _render_parsed(text: str) -> str | None:
    """Render Markdown. Returns None if it cannot be parsed completely."""
    try:
        parser = _create_parser()
        tokens = parser.parse(text)
        if any(token.nesting > 0 and token.level >= MAX_NESTING - 1 for token in tokens):
            return None
        level_headings(tokens)
        return clean_html(str(parser.renderer.render(tokens, parser.options, {})))
    except (RecursionError, ValueError, IndexError):
        return None


def clean_html(html: str) -> str:
    """Remove all tags and attributes that are not on the lists above."""
    import nh3

    return nh3.clean(
        html,
        tags=set(TAGS),
        attributes=ATTRIBUTES,
        attribute_filter=_drop_relative_link,
        url_schemes=set(SCHEMES),
        link_rel="noreferrer noopener",
    )


def _drop_relative_link(_tag: str, name: str, value: str) -> str | None:
    return None if name == "href" and not value.startswith(("#", *(f"{scheme}:" for scheme in SCHEMES))) else value


@cache
def _create_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("fence", _render_fence)
    return parser


def _render_image(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """Render an image as its alternative text, since nothing is loaded from elsewhere."""
    return escape(f"[{tokens[index].content or 'image'}]")


def level_headings(tokens: Sequence[Token]) -> None:
    """Put headings below that of their message without skipping levels, which screen readers rely on."""
    above: list[int] = []
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1])
            above = [*(one for one in above if one < level), level]
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(2 + len(above), 6)}"


def _render_fence(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    token = tokens[index]
    return f"<pre><code>{render_code_as_html(token.content, token.info)}</code></pre>\n"


MAX_OPEN_CHARS = 2_000  # Longer attachments and failures are folded.
MAX_OPEN_LINES = 30
MAX_OPEN_TYPED_CHARS = 20_000  # Longer pasted text is folded.
MAX_RENDERED_CHARS = 100_000  # Rendering longer Markdown takes seconds.
FindCall = Callable[[str], ToolCallRecord | None]
_ATTACHED = re.compile(r"\n\n\[([^\n]{1,1000})\]\n")  # A text beside a message begins like this.
_DIFF_CLASSES = {"+": "add", "-": "del"}


def render_message_as_html(message: Message, find_call: FindCall, most_chars: int | None = None) -> Iterator[str]:
    """Render a message in pieces. Output beyond `most_chars` is only counted."""
    when = escape(message.timestamp)
    yield f'<section class="{message.role}" id="m{message.id}">\n'
    yield f'<h2><span class="number">{message.id}.</span> {ROLE_NAMES[message.role]}{escape(message.mark)} '
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
            yield _render_attached_image(part)
        elif isinstance(part, ToolCallPart) and (call := find_call(part.id)):
            yield from render_call_as_html(call, most_chars)
    yield "</section>\n"


def _render_typed(text: str, most_chars: int | None) -> Iterator[str]:
    """Render typed or attached text unchanged, folded under its name if long."""
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
    """Return True if attached text, or the output of a failed call, is short enough to show open."""
    return len(text) <= MAX_OPEN_CHARS and text.count("\n") <= MAX_OPEN_LINES


def _render_text(text: str, *, markdown: bool) -> Iterator[str]:
    """Render the model's text as Markdown, other text unchanged."""
    if markdown and len(text) <= MAX_RENDERED_CHARS:
        yield f'<div class="text">{render_markdown_as_html(text)}</div>\n'
    else:
        yield from _render_block(text, "said")


def _render_block(text: str, kind: str = "", most_chars: int | None = None) -> Iterator[str]:
    yield f'<pre class="{kind}">' if kind else "<pre>"
    yield escape(text[:most_chars], quote=False)
    yield "</pre>\n"
    yield from _render_rest(text, most_chars)


def _render_rest(text: str, most_chars: int | None) -> Iterator[str]:
    """Render the number of characters not shown."""
    if most_chars is not None and len(text) > most_chars:
        yield f'<p class="meta">{format_count(len(text) - most_chars, "more character")}; an export has them all.</p>\n'


def _render_attached_image(part: ImagePart) -> str:
    if part.media_type not in PICTURE_TYPES:
        return f"<p>(an image, {escape(part.media_type)})</p>\n"
    return f'<img alt="Attached image" src="data:{part.media_type};base64,{escape(part.data)}">\n'


def render_call_as_html(call: ToolCallRecord, most_chars: int | None = None) -> Iterator[str]:
    """Render a call. Changes and short failures are shown open, everything else folded."""
    outcome = describe_outcome(call)
    diff = call.result.diff if call.result else ""
    kind = outcome if outcome in ("ok", "running") else "failed"
    title = escape(describe_call(call.name, call.args, call.summary))
    summary = f'<b>{title}</b> <span class="outcome">{escape(outcome)}</span>'
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
        yield _render_attached_image(image)
    yield "</details>\n"


def render_diff_as_html(diff: str, most_chars: int | None = None) -> Iterator[str]:
    """Render a diff line by line with numbers. Changed words inside a line are marked."""
    yield '<pre class="diff">'
    come: list[str] = []
    for row in parse_diff(diff[:most_chars]):
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
    """Render a line. Its number is drawn beside it, so that it is not copied."""
    kind = _DIFF_CLASSES.get(mark, "")
    head = (f' class="{kind}"' if kind else "") + (f' data-line="{number}"' if number else "")
    parts, at = [], 0
    for start, end in spans:
        parts += [escape(text[at:start], quote=False), f"<mark>{escape(text[start:end], quote=False)}</mark>"]
        at = end
    return f"<span{head}>{mark}{''.join(parts)}{escape(text[at:], quote=False)}\n</span>"


*STYLE_FILES, EXPORT_STYLE, COMPARISON_STYLE, COMPARISON_PAGE = (
    files("ollm.services.session_export") / name
    for name in ("colours.css", "transcript.css", "export.css", "compare.css", "compare.html")
)
_PAGE_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
"""


def render_page_head(title: str, *styles: Traversable) -> str:
    """Render the page up to the body, with more styles. The title is already HTML."""
    style = "".join(found.read_text(encoding="utf-8") for found in (*STYLE_FILES, EXPORT_STYLE, *styles))
    return _PAGE_HEAD.replace("{title}", title).replace("{style}", style)


MAX_CONTENTS_ENTRIES = 2_000
MAX_ENTRY_CHARS = 70


def render_html(session: ExportSource) -> Iterator[str]:
    return map(escape_controls, gather_pieces(_render_pieces(session)))


def _render_pieces(source: ExportSource) -> Iterator[str]:
    """Render the pieces. The contents come last, when they are known, but the page shows them first."""
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
    line = next((line for line in message.text.splitlines() if line.strip()), "(no text)")
    return f'<li><a href="#m{message.id}">{escape(shorten_line(line, MAX_ENTRY_CHARS))}</a></li>\n'
