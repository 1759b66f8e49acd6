"""Code as HTML: the words of a language marked by class, for a style sheet to colour."""

from __future__ import annotations

from html import escape

MAX_COLOURED_CHARS = 60_000  # longer code is shown in one colour


def render_code_as_html(code: str, language: str) -> str:
    """The code in spans; as it is where the language is not known."""
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
