"""Addresses that may be fetched, and documents made into text."""

import codecs
import io
import ipaddress
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter

from ollm.domain.errors import ToolFailure
from ollm.tools import web_fetch
from ollm.tools.web.address import is_public, parse_url, refuse_private
from ollm.tools.web.client import WebResponse
from ollm.tools.web.page_text import convert_html, convert_pdf
from ollm.tools.web_fetch import decode_body, extract_text
from tests.covers import covers

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
    monkeypatch.setattr(web_fetch, "CONVERSION_TIMEOUT_SECONDS", 0)

    with pytest.raises(ToolFailure) as caught:
        await text_of(b"<p>a</p>", "text/html")
    assert (caught.value.kind, caught.value.message) == (
        "Timeout",
        f"{URL} took more than 0 seconds to convert to text.",
    )


def test_a_page_that_converts_to_nothing_is_stripped_of_its_tags() -> None:
    assert convert_html("", "", "") == ""
    assert convert_html("<template>only here</template>", "", "").strip() == "only here"


def make_pdf(pages: int) -> bytes:
    writer, out = PdfWriter(), io.BytesIO()
    for _ in range(pages):
        writer.add_blank_page(100, 100)
    writer.write(out)
    return out.getvalue()


def test_a_pdf_without_text_is_said_to_be_pictures() -> None:
    with pytest.raises(ToolFailure) as caught:
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


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "javascript:alert(1)",
        "data:text/html,x",
        "//example.com/",
        "example.com",
        "",
        " ",
        "http://",
        "http:///path",
        "http://user@example.com/",
        "http://user:pass@example.com/",
        "http://example.com\\@evil.com/",
        "http://exa mple.com/",
        "http://example.com/\r\nHost: evil",
        "http://example.com/\x00",
        "http://example.com/a\tb",
        "http://exam\u200bple.com/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://256.1.1.1/",
        "http://1.2.3.4.5/",
        "http://[::1/",
        "http://[::1%25eth0]/",
        "http://[v1.x]/",
        "http://example.com:99999/",
        "http://example.com:0/",
        "http://example.com:x/",
        "http://%31%32%37.0.0.1/",
        "http://-x-.com:80:80/",
        "http://a..b/",
        "http://" + "a" * 300 + ".com/",
        "http://①②⑦.0.0.1.5/",
    ],
)
def test_what_two_programs_might_read_differently_is_no_url(url: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        parse_url(url)

    assert caught.value.kind == "InvalidUrl"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://Example.COM", "http://example.com/"),
        ("https://example.com:443/a?b=c#frag", "https://example.com/a?b=c"),
        ("http://example.com:8080/ä ö".replace(" ", ""), "http://example.com:8080/%C3%A4%C3%B6"),
        ("http://bücher.de/", "http://xn--bcher-kva.de/"),
        ("http://[2001:4860:4860:0::8888]:81/", "http://[2001:4860:4860::8888]:81/"),
        ("http://①②⑦.0.0.1/", "http://127.0.0.1/"),
        ("HTTP://example.com/%20x", "http://example.com/%20x"),
        (" https://example.com/ ", "https://example.com/"),
    ],
)
def test_a_url_is_taken_apart_and_put_together(url: str, expected: str) -> None:
    assert parse_url(url).url == expected


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "169.254.169.254",
        "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
        "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
        "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "100::1", "2001::1",
        "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_unicast_are_refused(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.128.0.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)  # fmt: skip
def test_public_addresses_are_not(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@given(number=st.integers(0, 2**32 - 1))
def test_whatever_python_calls_private_is_refused(number: int) -> None:
    address = ipaddress.IPv4Address(number)

    if address.is_private or address.is_multicast or address.is_reserved or address.is_link_local:
        assert not is_public(address)


@covers("T6.8")
def test_one_private_answer_among_public_ones_is_enough() -> None:
    target = parse_url("http://rebind.example/")
    answers = [ipaddress.ip_address("93.184.216.34"), ipaddress.ip_address("127.0.0.1")]

    with pytest.raises(ToolFailure) as caught:
        refuse_private(target, answers, ())

    assert caught.value.kind == "AddressRefused"
    assert "allowPrivate: [rebind.example:80]" in caught.value.message


def test_a_place_opened_by_name_is_that_host_and_port_only() -> None:
    loopback = [ipaddress.ip_address("127.0.0.1")]

    refuse_private(parse_url("http://localhost:8080/x"), loopback, ("LOCALHOST:8080",))
    for url in ("http://localhost:8081/", "http://127.0.0.1:8080/", "http://localhost/"):
        with pytest.raises(ToolFailure):
            refuse_private(parse_url(url), loopback, ("localhost:8080",))


@given(url=st.text(max_size=60) | st.text(max_size=40).map(lambda rest: f"http://{rest}"))
def test_any_text_is_a_url_or_refused_as_one(url: str) -> None:
    try:
        target = parse_url(url)
    except ToolFailure as failure:
        kind = failure.kind
    else:
        kind = "InvalidUrl"
        assert parse_url(target.url) == target
        assert target.url.isascii()
    assert kind == "InvalidUrl"
