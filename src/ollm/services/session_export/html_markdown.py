"""Markdown of a model as HTML that can do no harm: its own tags are text, pictures are words, links only lead out."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_NESTING = 100  # what is deeper would be left out
_DEEP_QUOTE = r"(?:>[ \t]?){40}"


def render_markdown_as_html(text: str) -> str:
    """Paragraphs, lists, tables, code and links; the text itself where it cannot be parsed."""
    if re.search(_DEEP_QUOTE, text):
        return f"<pre>{escape(text, quote=False)}</pre>"
    try:
        return str(_create_parser().render(text))
    except (RecursionError, ValueError, IndexError):
        return f"<pre>{escape(text, quote=False)}</pre>"


@cache
def _create_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("link_open", _render_link)
    return parser


def _render_image(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """Nothing is loaded from elsewhere: the words that stand for the picture are shown."""
    return escape(f"[{tokens[index].content or 'image'}]")


def _render_link(renderer: Any, tokens: Sequence[Token], index: int, options: Any, _: MutableMapping[str, Any]) -> str:
    address = str(tokens[index].attrs.get("href", ""))
    if not address.startswith(("http://", "https://", "#", "mailto:")):
        tokens[index].attrs = {}
    else:
        tokens[index].attrs = {"href": address, "rel": "noreferrer noopener"}
    return str(renderer.renderToken(tokens, index, options, {}))
