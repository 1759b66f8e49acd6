"""Session export (H): Markdown, one HTML file, or the JSON document with its secrets redacted."""

from collections.abc import Iterator

from ollm.services.session_export.html import render_html
from ollm.services.session_export.markdown import render_markdown
from ollm.services.session_export.redacted import RedactedSession
from ollm.store.session_files.loading import SessionStream

__all__ = ["FORMATS", "RedactedSession", "render_export", "render_html", "render_markdown"]

FORMATS = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".json": "json"}  # by suffix


def render_export(source: SessionStream | RedactedSession, form: str) -> Iterator[bytes]:
    """Render a session in one of the formats, chunk by chunk."""
    if form == "json":
        return source.iter_document()
    chunks = render_markdown(source) if form == "markdown" else render_html(source)
    return (chunk.encode("utf-8", "replace") for chunk in chunks)
