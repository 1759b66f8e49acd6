"""Session export (H): Markdown, one HTML file, or the JSON document with its secrets redacted."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ollm.services.session_export.html import render_html
from ollm.services.session_export.markdown import render_markdown
from ollm.services.session_export.redacted import RedactedSession
from ollm.store.session_files.loading import SessionStream
from ollm.system.atomic import replace_file

__all__ = ["FORMATS", "RedactedSession", "note_export", "render_export", "render_html", "render_markdown"]

FORMATS = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".json": "json"}  # by suffix


def note_export(record: Path, target: Path) -> None:
    """Remember where a session was exported to, so that a scrub can name the file."""
    with suppress(OSError):
        lines = record.read_bytes() if record.exists() else b""
        line = json.dumps(str(target.absolute())).encode() + b"\n"
        if line not in lines.splitlines(keepends=True):
            replace_file(record, lines + line)


def read_export_paths(record: Path) -> list[Path]:
    try:
        return [Path(json.loads(line)) for line in record.read_bytes().splitlines()]
    except (OSError, ValueError, TypeError):
        return []


def render_export(source: SessionStream | RedactedSession, form: str) -> Iterator[bytes]:
    """Render a session in one of the formats, chunk by chunk."""
    if form == "json":
        return source.iter_document()
    chunks = render_markdown(source) if form == "markdown" else render_html(source)
    return (chunk.encode("utf-8", "replace") for chunk in chunks)
