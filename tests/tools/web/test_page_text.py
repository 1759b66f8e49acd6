"""Documents from strangers made into text."""

import io
import json
import subprocess
import sys

import pytest
from pypdf import PdfWriter

from ollm.tools.web.page_text import DocumentRefused, convert_html, convert_pdf, remove_tags, select_elements

PAGE = "<html><body><h1>Title</h1><p>Hello <a href='/x'>link</a></p><script>bad()</script></body></html>"


def test_a_page_becomes_markdown_without_scripts() -> None:
    text = convert_html(PAGE, "https://example.org/a", "")

    assert "# Title" in text
    assert "bad()" not in text
    assert "link" in text


def test_a_selector_narrows_the_page() -> None:
    text = convert_html("<div><p class=a>one</p><p class=b>two</p></div>", "", "p.b")

    assert "two" in text
    assert "one" not in text


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
    ("selector", "kind", "message"),
    [
        ("table", "NotFound", "nothing on the page matches 'table'"),
        ("p[[", "InvalidPattern", "'p[[' is not a CSS selector"),
    ],
)
def test_selectors_that_pick_nothing(selector: str, kind: str, message: str) -> None:
    with pytest.raises(DocumentRefused) as caught:
        select_elements("<p>a</p>", selector)
    assert (caught.value.kind, str(caught.value)) == (kind, message)


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


def test_a_broken_pdf_is_said_to_be_one() -> None:
    with pytest.raises(DocumentRefused) as caught:
        convert_pdf(b"%PDF-1.4 nonsense")
    assert caught.value.kind == "BinaryFile"
    assert str(caught.value).startswith("it is a PDF that cannot be read (")


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
