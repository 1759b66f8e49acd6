"""What an answer from the web says, as text."""

import codecs
import os

import pytest

from ollm.domain.errors import ToolFailure
from ollm.tools.web import page
from ollm.tools.web.client import WebResponse
from ollm.tools.web.page import decode_body, extract_text

URL = "https://example.org/x"


def answer(body: bytes, media: str = "") -> WebResponse:
    return WebResponse(url=URL, status=200, headers={"content-type": media} if media else {}, body=body)


async def text_of(body: bytes, media: str = "", selector: str | None = None) -> str:
    return await extract_text(answer(body, media), selector, os.environ)


@pytest.mark.parametrize(
    ("body", "media", "text"),
    [
        ("ä".encode(), "", "ä"),
        ("ä".encode("latin-1"), "text/plain; charset=iso-8859-1", "ä"),
        ("ä".encode("latin-1"), 'text/plain; Charset = "ISO-8859-1"', "ä"),
        (codecs.BOM_UTF8 + b"x", "text/plain; charset=latin-1", "x"),
        (codecs.BOM_UTF16_LE + "ä".encode("utf-16-le"), "", "ä"),
        (b'<meta charset="koi8-r">' + "да".encode("koi8-r"), "text/html", '<meta charset="koi8-r">да'),
        ("ä".encode(), "text/plain; charset=nonsense", "ä"),
        ("ä".encode(), "text/plain; charset=zip", "ä"),
        (b"\xff\xfe\xff", "", "\ufffd"),
    ],
)
def test_the_body_as_text(body: bytes, media: str, text: str) -> None:
    assert decode_body(answer(body, media)) == text


@pytest.mark.parametrize(
    ("body", "media", "text"),
    [
        (b"plain", "text/plain", "plain"),
        (b"plain", "", "plain"),
        (b'{"a":"\xc3\xa4"}', "application/json", '{\n  "a": "ä"\n}'),
        (b'{"a":', "application/json", '{"a":'),
        (b'{"a":1}', "application/ld+json; charset=utf-8", '{\n  "a": 1\n}'),
        (b"<a/>", "application/xml", "<a/>"),
        (b"x\x00y", "text/plain", "x\x00y"),
    ],
)
async def test_text_comes_as_it_is_and_json_indented(body: bytes, media: str, text: str) -> None:
    assert await text_of(body, media) == text


@pytest.mark.parametrize(
    ("body", "media"),
    [
        (b"<h1>Title</h1>", "text/html"),
        (b"<h1>Title</h1>", "application/xhtml+xml; charset=utf-8"),
        (b"  <!DOCTYPE HTML><h1>Title</h1>", ""),
        (b"<html><h1>Title</h1>", "application/octet-stream"),
    ],
)
async def test_a_page_becomes_markdown(body: bytes, media: str) -> None:
    assert (await text_of(body, media)).strip() == "# Title"


async def test_a_page_sent_as_text_stays_as_it_is() -> None:
    assert await text_of(b"<html><h1>Title</h1>", "text/plain") == "<html><h1>Title</h1>"


@pytest.mark.parametrize(
    ("body", "media", "selector", "kind", "message"),
    [
        (b"plain", "text/plain", "p", "ValidationError", f"selector: {URL} is text/plain; a selector needs HTML."),
        (b"plain", "", "p", "ValidationError", f"selector: {URL} is not a page; a selector needs HTML."),
        (b"\x89PNG\r\n\x1a\n\0", "image/png", None, "BinaryFile", f"{URL} is not text: it is image/png of 9 bytes."),
        (b"\x89PNG\r\n\x1a\n\0", "", None, "BinaryFile", f"{URL} is not text: it is a PNG picture of 9 bytes."),
        (b"<p>a</p>", "text/html", "table", "NotFound", f"{URL}: nothing on the page matches 'table'."),
        (b"%PDF-1.4 nonsense", "", None, "BinaryFile", None),
        (b"nonsense", "application/pdf", None, "BinaryFile", None),
    ],
)
async def test_what_cannot_be_shown_is_said(
    body: bytes, media: str, selector: str | None, kind: str, message: str | None
) -> None:
    with pytest.raises(ToolFailure) as caught:
        await text_of(body, media, selector)
    assert caught.value.kind == kind
    if message:
        assert caught.value.message == message


async def test_a_conversion_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "CONVERSION_TIMEOUT_SECONDS", 0)

    with pytest.raises(ToolFailure) as caught:
        await text_of(b"<p>a</p>", "text/html")
    assert (caught.value.kind, caught.value.message) == (
        "Timeout",
        f"{URL} took more than 0 seconds to convert to text.",
    )


def test_a_child_that_died_means_it_was_too_much() -> None:
    with pytest.raises(ToolFailure) as caught:
        page._read_child_answer(answer(b""), b"")
    assert (caught.value.kind, caught.value.message) == (
        "TooLarge",
        f"{URL} is too malformed or too deeply nested to convert to text.",
    )
