"""Session export (H): Markdown, one HTML file, or the JSON document with its secrets redacted."""

from ollm.services.session_export.html import render_html
from ollm.services.session_export.markdown import render_markdown
from ollm.services.session_export.redacted import RedactedSession

__all__ = ["RedactedSession", "render_html", "render_markdown"]
