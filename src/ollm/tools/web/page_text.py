"""Conversion of untrusted documents to text, in a separate process with little memory and time (T6.1, T6.2).

Run as `python -m ollm.tools.web.page_text KIND [BASE_URL [SELECTOR]]` with the document on stdin. The output is one
JSON object: {text} or {error, message}. Of ollm it imports only what errors and texts need.
"""

from __future__ import annotations

import json
import re
import sys

from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count

MAX_CPU_SECONDS = 20
MAX_MEMORY_BYTES = 2 * 1024**3
MAX_PDF_PAGES = 200


def main(arguments: list[str]) -> int:
    _limit_resources()
    kind, base, selector = (*arguments, "", "")[:3]
    data = sys.stdin.buffer.read()
    try:
        text = convert_pdf(data) if kind == "pdf" else convert_html(data.decode("utf-8", "replace"), base, selector)
        answer = {"text": text}
    except ToolFailure as refused:
        answer = {"error": refused.kind, "message": refused.message}
    sys.stdout.buffer.write(json.dumps(answer).encode("ascii"))
    return 0


def convert_html(page: str, base: str, selector: str) -> str:
    """Convert a page, or the elements matching a CSS selector, to Markdown."""
    from html_to_markdown import ConversionOptions, convert

    if selector:
        page = select_elements(page, selector)
    options = ConversionOptions(
        base_url=base or None, extract_metadata=False, strip_tags=["script", "style", "noscript", "template", "svg"]
    )
    text = convert(page, options).content or ""
    return text if text.strip() else remove_tags(page)


def select_elements(page: str, selector: str) -> str:
    """Select the outermost matching elements, in order."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    tree = LexborHTMLParser(page)
    try:
        found = tree.css(selector)
    except SelectolaxError as error:
        raise ToolFailure("InvalidPattern", f"{selector!r} is not a CSS selector") from error
    if not found:
        raise ToolFailure("NotFound", f"nothing on the page matches {selector!r}")
    inner = {node.mem_id for node in tree.css(f":is({selector}) :is({selector})")}
    return "\n".join(node.html or "" for node in found if node.mem_id not in inner)


def remove_tags(page: str) -> str:
    """Extract plain text from a page too deep or too odd to convert."""
    from html import unescape

    bare = re.sub(r"<(script|style)\b[^>]*>.*?</\1\s*>", " ", page, flags=re.IGNORECASE | re.DOTALL)
    return re.sub(r"[ \t]+", " ", unescape(re.sub(r"<[^>]*>", " ", bare))).strip()


def convert_pdf(data: bytes) -> str:
    """Extract the text of a PDF, page by page."""
    import io
    import logging

    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL + 1)
    try:
        reader = PdfReader(io.BytesIO(data))
        pages = [page.extract_text() for page in reader.pages[:MAX_PDF_PAGES]]
        count = len(reader.pages)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError, NotImplementedError) as error:
        # the last is what pypdf raises for a way of writing text that it does not know
        raise ToolFailure("BinaryFile", f"it is a PDF that cannot be read ({type(error).__name__})") from error
    if not any(text.strip() for text in pages):
        raise ToolFailure(
            "BinaryFile", f"it is a PDF of {format_count(count, 'page')} without text (pictures of pages)"
        )
    note = f"\n\n[pages 1 to {MAX_PDF_PAGES} of {count}]" if count > MAX_PDF_PAGES else ""
    return "\n\n".join(f"[page {number}]\n{text.strip()}" for number, text in enumerate(pages, 1)) + note


def _limit_resources() -> None:
    try:
        import resource
    except ImportError:  # Some systems have no such limits; the parent's time limit holds.
        return
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
