"""Text of a web answer (T6.1, T6.2): pages as Markdown, PDFs as text, other text unchanged."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import subprocess
import sys
from collections.abc import Mapping

from ollm.domain.errors import ToolFailure
from ollm.system.sandbox.confined import start_confined
from ollm.tools.files.file_text import describe_kind, detect_encoding
from ollm.tools.web.client import WebResponse

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
    text = decode_body(answer)
    return _format_json(text) if media.endswith("json") else text


def decode_body(answer: WebResponse) -> str:
    """Decode the body by its byte order mark, the header's charset, the page's own charset, or detection."""
    body = answer.body
    if body.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        found = detect_encoding(body)
        return found.decode(body) if found else body.decode("utf-8", "replace")
    named = re.search(r"charset\s*=\s*[\"']?([\w:.-]+)", answer.headers.get("content-type", ""), re.IGNORECASE)
    inside = _META.search(body[:4096])
    for name in (named and named[1], inside and inside[1].decode("ascii")):
        if name and _is_charset(name):
            return body.decode(name, "replace")
    encoding = detect_encoding(body)
    return encoding.decode(body) if encoding else body.decode("utf-8", "replace")


def _is_charset(name: str) -> bool:
    """Return True for a text encoding Python supports, but not for its other codecs (`zip`, `rot13`)."""
    try:
        return bool(codecs.lookup(name)._is_text_encoding)  # noqa: SLF001 - the only place this is said
    except LookupError:
        return False


def _is_page(body: bytes, media: str) -> bool:
    if media in ("text/html", "application/xhtml+xml"):
        return True
    start = body[:1024].lstrip().lower()
    return media in ("", "application/octet-stream") and start.startswith((b"<!doctype html", b"<html"))


def _format_json(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


async def _convert_in_child(
    answer: WebResponse, data: bytes, arguments: list[str], environment: Mapping[str, str]
) -> str:
    process = start_confined(lambda: _start_converter(arguments, environment), sys.executable)
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


def _start_converter(arguments: list[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-m", "ollm.tools.web.page_text", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(environment),
        start_new_session=True,
    )


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
