"""Fetch a web page as text (T6.1-6.5, T6.8)."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, ClassVar

from msgspec import Meta

from ollm.config.settings import OutputSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.text import format_count
from ollm.domain.tools import FileChange, Location, Risk, ToolResult
from ollm.system.sandbox.confined import start_confined
from ollm.tools.files.file_text import describe_kind, detect_encoding
from ollm.tools.framework.base import Count, SmallForm, Text, Tool, ToolContext
from ollm.tools.framework.output import clean_text, disarm_template_marks, trim_output
from ollm.tools.web.address import parse_url, refuse_private
from ollm.tools.web.client import WebResponse, fetch_url

ACCEPTED_TYPES = "text/html, application/xhtml+xml, text/markdown, text/plain, application/json, */*;q=0.5"


class WebFetch(Tool[None], frozen=True):
    """Fetch a web page as Markdown, or the parts of it a CSS selector picks. JSON, plain text and PDFs work too."""

    name: ClassVar = "web_fetch"
    category: ClassVar = "web"
    risk: ClassVar = Risk.MEDIUM
    aliases: ClassVar = {"uri": "url", "link": "url", "max_length": "maxLength"}
    priority: ClassVar = {"plan": 10, "assistant": 5}
    small: ClassVar = SmallForm(description="Read a web page.")

    url: Annotated[str, Meta(min_length=1, description="Address, http or https.")]
    selector: Annotated[Text | None, Meta(description="CSS selector.")] = None
    max_length: Annotated[Count | None, Meta(description="Most characters to return.")] = None

    def summary(self) -> str:
        return f"Fetch {self.url}"

    def locations(self) -> list[Location]:
        return [Location(target=self.url)]

    async def list_changes(self, context: ToolContext, needs: None) -> tuple[FileChange, ...]:
        """List no changes, but raise for a refused address before the person is asked."""
        target = parse_url(self.url)
        if literal := target.literal_address:
            refuse_private(target, [literal], context.settings.web_fetch.allow_private)
        return ()

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        settings = context.settings.web_fetch
        answer = await fetch_url(self.url, settings, headers={"Accept": ACCEPTED_TYPES}, same_host=True)
        if answer.status >= 400:
            raise ToolFailure("HttpError", f"{answer.url} answered {answer.reason}.")
        text = disarm_template_marks(clean_text(await extract_text(answer, self.selector, context.environment)))
        limit = self.max_length or settings.max_length
        way_back = "ask for a part with selector, or for more with maxLength"
        short = trim_output(text, OutputSettings(max_chars=limit, max_lines=len(text) + 1), way_back=way_back)
        moved = f"[redirected to {answer.url}]\n" if answer.url != parse_url(self.url).url else ""
        display = f"{answer.url}: {format_count(len(text), 'character')}"
        return ToolResult(llm_content=moved + short.text, return_display=display, full_output=short.full)


CONVERSION_TIMEOUT_SECONDS = 25
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_TEXT = re.compile(r"text/|application/(?:[\w.+-]*(?:json|xml|javascript|yaml|toml|x-sh|sql)\b|x-ndjson|ecmascript)")


async def extract_text(answer: WebResponse, selector: str | None, environment: Mapping[str, str]) -> str:
    """Extract the text. Raises ToolFailure: BinaryFile if not text, InvalidPattern and NotFound for a selector."""
    media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media == "application/pdf" or answer.body.startswith(b"%PDF-"):
        return await _convert_in_child(answer, answer.body, ["pdf"], environment)
    if _is_page(answer.body, media):
        page = decode_body(answer).encode("utf-8", "replace")
        return await _convert_in_child(answer, page, ["html", answer.url, selector or ""], environment)
    if selector:
        raise ToolFailure(
            "ValidationError", f"selector: {answer.url} is {media or 'not a page'}; a selector needs HTML."
        )
    if not _TEXT.match(media) and detect_encoding(answer.body) is None:
        what = media or describe_kind(answer.body)
        raise ToolFailure("BinaryFile", f"{answer.url} is not text: it is {what} of {len(answer.body):,} bytes.")
    return decode_body(answer)


def decode_body(answer: WebResponse) -> str:
    """Decode the body by its byte order mark, the header's charset, the page's own charset, or detection."""
    body = answer.body
    marked = body.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    named = re.search(r"charset\s*=\s*[\"']?([\w:.-]+)", answer.headers.get("content-type", ""), re.IGNORECASE)
    inside = _META.search(body[:4096])
    for name in () if marked else (named and named[1], inside and inside[1].decode("ascii")):
        with suppress(LookupError, UnicodeError):  # The charset may be unknown, or not be one of text.
            if name:
                return body.decode(name, "replace")
    encoding = detect_encoding(body)
    return encoding.decode(body) if encoding else body.decode("utf-8", "replace")


def _is_page(body: bytes, media: str) -> bool:
    if media in ("text/html", "application/xhtml+xml"):
        return True
    start = body[:1024].lstrip().lower()
    return media in ("", "application/octet-stream") and start.startswith((b"<!doctype html", b"<html"))


async def _convert_in_child(
    answer: WebResponse, data: bytes, arguments: list[str], environment: Mapping[str, str]
) -> str:
    command = [sys.executable, "-I", "-m", "ollm.tools.web.page_text", *arguments]
    process = start_confined(
        lambda: subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        ),
        sys.executable,
    )
    try:
        async with asyncio.timeout(CONVERSION_TIMEOUT_SECONDS):
            out, _ = await asyncio.to_thread(process.communicate, data)
    except TimeoutError as error:
        raise ToolFailure(
            "Timeout", f"{answer.url} took more than {CONVERSION_TIMEOUT_SECONDS} seconds to convert to text."
        ) from error
    finally:
        if process.poll() is None:
            process.kill()
    return _read_child_answer(answer, out)


def _read_child_answer(answer: WebResponse, out: bytes) -> str:
    try:
        parsed = json.loads(out)
    except ValueError as error:
        raise ToolFailure(
            "TooLarge", f"{answer.url} is too malformed or too deeply nested to convert to text."
        ) from error
    if "error" in parsed:
        raise ToolFailure(parsed["error"], f"{answer.url}: {parsed['message']}.")
    return str(parsed["text"])
