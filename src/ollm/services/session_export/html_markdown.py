"""Markdown of a model as HTML that can do no harm: its own tags are text, pictures are words, links only lead out.

What the parser wrote is cleaned once more, so that a mistake of its or ours lets nothing through.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

from ollm.services.session_export.html_code import render_code_as_html

MAX_NESTING = 100  # what is deeper the parser leaves out
TAGS = frozenset(
    "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul".split()  # noqa: SIM905 - a list of one line
)
ATTRIBUTES = {"a": {"href"}, "code": {"class"}, "span": {"class"}, "ol": {"start"}, "pre": {"class"}}
SCHEMES = frozenset({"http", "https", "mailto"})
_DEEP_QUOTE = r"(?:>[ \t]?){40}"


def render_markdown_as_html(text: str) -> str:
    """Paragraphs, lists, tables, code and links; the text itself where it cannot be parsed."""
    parsed = None if re.search(_DEEP_QUOTE, text) else _render_parsed(text)
    return f"<pre>{escape(text, quote=False)}</pre>" if parsed is None else parsed


def _render_parsed(text: str) -> str | None:
    """None where it cannot be parsed, or only without its innermost part."""
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
    """Without anything that is not on the lists above."""
    import nh3

    return nh3.clean(
        html, tags=set(TAGS), attributes=ATTRIBUTES, url_schemes=set(SCHEMES), link_rel="noreferrer noopener"
    )


@cache
def _create_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("link_open", _render_link)
    parser.add_render_rule("fence", _render_fence)
    return parser


def _render_image(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """Nothing is loaded from elsewhere: the words that stand for the picture are shown."""
    return escape(f"[{tokens[index].content or 'image'}]")


def level_headings(tokens: Sequence[Token]) -> None:
    """Put them below the heading of their message, one step at a time: readers of the screen go by levels."""
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


def _render_link(renderer: Any, tokens: Sequence[Token], index: int, options: Any, _: MutableMapping[str, Any]) -> str:
    address = str(tokens[index].attrs.get("href", ""))
    if not address.startswith(("http://", "https://", "#", "mailto:")):
        tokens[index].attrs = {}
    else:
        tokens[index].attrs = {"href": address, "rel": "noreferrer noopener"}
    return str(renderer.renderToken(tokens, index, options, {}))
