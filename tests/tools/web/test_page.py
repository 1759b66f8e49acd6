"""What an answer from the web says, as text."""

import codecs
import io
import json
import os
import subprocess
import sys

import pytest
from pypdf import PdfWriter

from ollm.domain.errors import ToolFailure
from ollm.tools.web import page
from ollm.tools.web.client import WebResponse
from ollm.tools.web.page import decode_body, extract_text
from ollm.tools.web.page_text import DocumentRefused, convert_html, convert_pdf, remove_tags, select_elements

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


def test_a_page_that_converts_to_nothing_is_stripped_of_its_tags() -> None:
    assert convert_html("", "", "") == ""
    assert convert_html("<template>only here</template>", "", "").strip() == "only here"


@pytest.mark.parametrize(
    ("page", "selector", "found"),
    [
        ("<p>a</p><p>b</p>", "p", "<p>a</p>\n<p>b</p>"),
        ("<div><div>in</div></div>", "div", "<div><div>in</div></div>"),
        ("<ul><li>x<ul><li>y</li></ul></li></ul>", "li", "<li>x<ul><li>y</li></ul></li>"),
    ],
)
def test_the_outermost_elements_that_match(page: str, selector: str, found: str) -> None:
    assert select_elements(page, selector) == found


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>a &amp; b</p>", "a & b"),
        ("a<SCRIPT type=x>bad\n</script >b", "a b"),
        ("<style>x</style>y", "y"),
        ("a \t  b", "a b"),
        ("no tags", "no tags"),
    ],
)
def test_tags_are_taken_out(page: str, text: str) -> None:
    assert remove_tags(page) == text


def make_pdf(pages: int) -> bytes:
    writer, out = PdfWriter(), io.BytesIO()
    for _ in range(pages):
        writer.add_blank_page(100, 100)
    writer.write(out)
    return out.getvalue()


def test_a_pdf_without_text_is_said_to_be_pictures() -> None:
    with pytest.raises(DocumentRefused) as caught:
        convert_pdf(make_pdf(2))
    assert (caught.value.kind, str(caught.value)) == (
        "BinaryFile",
        "it is a PDF of 2 pages without text (pictures of pages)",
    )


def run_child(*arguments: str, data: bytes) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "ollm.tools.web.page_text", *arguments], input=data, capture_output=True, check=True
    )
    answer: dict[str, str] = json.loads(done.stdout)
    return answer


def test_as_a_process_it_answers_in_json() -> None:
    assert run_child("html", data="<p>grüße</p>\xff".encode("latin-1")).keys() == {"text"}
    assert run_child("html", "", "table", data=b"<p>a</p>") == {
        "error": "NotFound",
        "message": "nothing on the page matches 'table'",
    }
    assert run_child("pdf", data=make_pdf(1))["error"] == "BinaryFile"
