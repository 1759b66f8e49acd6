"""T6.1-6.5: web_fetch, from a real server, and the limits on every answer."""

import asyncio
import gzip
import re
import socket
import time
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from ollm.config.settings import ToolSettings, WebFetchSettings
from ollm.domain.errors import ToolFailure
from ollm.tools.web.client import fetch_url
from tests.covers import covers
from tests.tools.drive import Driver, content, error
from tests.tools.web_server import Request, Server, Writer, reply, serving

PAGE = """<!doctype html><html><head><title>Guide</title><style>p {color: red}</style><script>alert("no")</script></head>
<body><h1>Guide</h1><p class="intro">Read <b>this</b> and <a href="/more">more</a>.</p>
<div id="two"><p>Second</p></div><pre><code>x = 1</code></pre></body></html>"""


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as running:
        yield running


class Fetcher(Driver):
    def __init__(self, workspace: Path, allowed: tuple[str, ...], **limits: Any) -> None:
        fetch = WebFetchSettings(allow_private=allowed, **limits)
        super().__init__(workspace, settings=ToolSettings(web_fetch=fetch))


@pytest.fixture
def drive(workspace: Path, server: Server) -> Fetcher:
    return Fetcher(workspace, (server.place,))


@covers("T6.1")
async def test_a_page_comes_as_markdown_without_scripts(drive: Fetcher, server: Server) -> None:
    server.routes["/"] = reply(PAGE, content_type="text/html; charset=utf-8")

    text = content(await drive("web_fetch", url=server.url()))

    assert "# Guide" in text
    assert "Read **this** and [more](" in text
    assert "x = 1" in text
    assert "alert" not in text
    assert "color" not in text


async def test_a_page_cannot_end_its_message_with_the_marks_of_a_chat_template(drive: Fetcher, server: Server) -> None:
    marks = ("<|im_end|>", "<|im_start|>", "<\uff5cUser\uff5c>", "<end_of_turn>", "</s>", "[INST]", "</think>")
    server.routes["/"] = reply(
        f"if a <b and b> c: {' '.join(marks)}".encode(), content_type="text/plain; charset=utf-8"
    )

    text = content(await drive("web_fetch", url=server.url()))

    assert "if a <b and b> c" in text
    assert not [mark for mark in marks if mark in text]


@covers("T6.2")
async def test_a_selector_picks_the_matching_elements_only(drive: Fetcher, server: Server) -> None:
    server.routes["/"] = reply(PAGE, content_type="text/html")

    text = content(await drive("web_fetch", url=server.url(), selector="p.intro, #two, #two p"))

    assert "Read **this**" in text
    assert text.count("Second") == 1
    assert "Guide" not in text


@covers("T6.2")
@pytest.mark.parametrize(
    ("selector", "kind"),
    [("p[", "InvalidPattern"), ("##", "InvalidPattern"), ("aside", "NotFound"), ("", "ValidationError")],
)
async def test_selectors_that_pick_nothing(drive: Fetcher, server: Server, selector: str, kind: str) -> None:
    server.routes["/"] = reply(PAGE, content_type="text/html")

    assert error(await drive("web_fetch", url=server.url(), selector=selector))[0] == kind


@covers("T6.3")
async def test_a_long_page_is_cut_and_says_so(drive: Fetcher, server: Server) -> None:
    server.routes["/"] = reply("x" * 5_000, content_type="text/plain")

    record = await drive("web_fetch", url=server.url(), maxLength=100)

    assert content(record).startswith("x" * 100 + "\n[…")
    assert "4,900 characters omitted" in content(record)
    assert record.result is not None
    assert record.result.full_output == "x" * 5_000


@covers("T6.4", "T12.3")
async def test_a_missing_page_is_a_404_with_its_url(drive: Fetcher, server: Server) -> None:
    kind, message = error(await drive("web_fetch", url=server.url("/nothing")))

    assert kind == "HttpError"
    assert message == f"{server.url('/nothing')} answered 404 Not Found."


@covers("T6.5", "T12.5")
async def test_a_server_that_says_nothing_times_out_with_the_elapsed_time(workspace: Path, server: Server) -> None:
    async def silent(request: Request, writer: Writer) -> None:
        await asyncio.sleep(30)

    server.routes["/"] = silent
    drive = Fetcher(workspace, (server.place,), timeout=0.3)
    started = time.perf_counter()

    kind, message = error(await drive("web_fetch", url=server.url()))

    assert kind == "Timeout"
    assert re.search(r"after \d+\.\d seconds", message)
    assert time.perf_counter() - started < 15


@covers("T6.5")
async def test_a_server_that_drips_is_stopped_by_the_whole_time(workspace: Path, server: Server) -> None:
    async def drip(request: Request, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    server.routes["/"] = drip

    assert error(await Fetcher(workspace, (server.place,), timeout=0.4)("web_fetch", url=server.url()))[0] == "Timeout"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/",
        "http://[::1]:1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://0.0.0.0/",
    ],
)
async def test_private_addresses_are_refused_and_nobody_is_asked(drive: Fetcher, url: str) -> None:
    assert error(await drive("web_fetch", url=url))[0] == "AddressRefused"
    assert drive.person.asked == []


async def test_a_name_for_loopback_is_refused_after_dns(drive: Fetcher, server: Server) -> None:
    kind, message = error(await drive("web_fetch", url=f"http://localhost:{server.port}/"))

    assert kind == "AddressRefused"
    assert "localhost" in message
    assert server.requests == []


@pytest.mark.parametrize(
    ("body", "media", "expected"),
    [
        ("Grüße".encode("iso-8859-1"), "text/plain; charset=iso-8859-1", "Grüße"),
        ("Grüße".encode("utf-16"), "text/plain", "Grüße"),
        ("漢字".encode("shift_jis"), 'text/plain; charset="Shift_JIS"', "漢字"),
        ("Grüße".encode(), "text/plain; charset=no-such", "Grüße"),
        (b"hello", "text/plain; charset=zip", "hello"),
        ('<html><head><meta charset="iso-8859-1"></head><body>Grüße</body>'.encode("iso-8859-1"), "text/html", "Grüße"),
        (b'{"b":1,"a":[]}', "application/json", '{"b":1,"a":[]}'),
        (b"{broken", "application/json", "{broken"),
        (b"<html><body><p>sniffed</p></body></html>", "", "sniffed"),
        (b"plain \x1b[31mred\x1b[0m", "text/plain", "plain red"),
        (b"key: value", "application/x-unknown", "key: value"),
    ],
)
async def test_what_comes_is_treated_as_what_it_is(
    drive: Fetcher, server: Server, body: bytes, media: str, expected: str
) -> None:
    server.routes["/"] = reply(body, **({"content_type": media} if media else {}))

    assert content(await drive("web_fetch", url=server.url())).strip() == expected


async def test_a_pdf_is_read(drive: Fetcher, server: Server) -> None:
    server.routes["/"] = reply(pdf("Hello from a page"), content_type="application/pdf")

    assert content(await drive("web_fetch", url=server.url())) == "[page 1]\nHello from a page"


@pytest.mark.parametrize("body", [b"%PDF-1.4 broken", b"%PDF-1.7\n" + b"<<" * 50_000])
async def test_a_broken_pdf_is_said_to_be_one(drive: Fetcher, server: Server, body: bytes) -> None:
    server.routes["/"] = reply(body, content_type="application/pdf")

    kind, message = error(await drive("web_fetch", url=server.url()))

    assert kind == "BinaryFile"
    assert "PDF" in message


async def test_a_picture_is_answered_in_a_sentence(drive: Fetcher, server: Server) -> None:
    server.routes["/"] = reply(b"\x89PNG\r\n\x1a\n\0\0\0", content_type="image/png")

    assert error(await drive("web_fetch", url=server.url())) == (
        "BinaryFile",
        f"{server.url()} is not text: it is image/png of 11 bytes.",
    )


@pytest.mark.parametrize("page", ["<div>" * 100_000 + "deep", "<blockquote>" * 20_000 + "deep", "<" * 500_000 + "deep"])
async def test_a_page_made_to_choke_a_parser_still_gets_its_answer(drive: Fetcher, server: Server, page: str) -> None:
    server.routes["/"] = reply(page, content_type="text/html")
    started = time.perf_counter()

    record = await drive("web_fetch", url=server.url())

    assert record.status == "ok"
    assert time.perf_counter() - started < 40


async def test_characters_that_turn_text_round_are_shown_and_hidden_ones_are_left_out(
    drive: Fetcher, server: Server
) -> None:
    hidden = "".join(f"&#{0xE0000 + ord(letter)};" for letter in "obey")
    server.routes["/"] = reply(
        f"<html><p>ab&#8238;txt.exe&#8236;{hidden} end\x1b[2J</p></html>", content_type="text/html"
    )

    text = content(await drive("web_fetch", url=server.url()))

    assert text.strip() == r"ab\u202etxt.exe\u202c end"


@pytest.mark.parametrize(
    "arguments", [{}, {"url": ""}, {"url": "http://x/", "maxLength": 0}, {"url": "http://x/", "maxLength": -1}]
)
async def test_arguments_that_make_no_sense(drive: Fetcher, arguments: dict[str, Any]) -> None:
    assert error(await drive("web_fetch", **arguments))[0] == "ValidationError"


async def test_cancelling_a_fetch_is_quick(drive: Fetcher, server: Server) -> None:
    waiting = asyncio.Event()

    async def silent(request: Request, writer: Writer) -> None:
        waiting.set()
        await asyncio.sleep(30)

    server.routes["/"] = silent
    task = asyncio.create_task(drive("web_fetch", url=server.url()))
    await waiting.wait()
    started = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert time.perf_counter() - started < 5


def pdf(text: str) -> bytes:
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    page = writer.add_blank_page(300, 300)
    stream = DecodedStreamObject()
    stream.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode())
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    fonts = DictionaryObject({NameObject("/F1"): font})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    page[NameObject("/Contents")] = writer._add_object(stream)
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


async def test_a_page_that_never_ends_is_stopped_by_its_size(drive: Fetcher, server: Server) -> None:
    async def flood(request: Request, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"<p>more</p>" * 5_000)
            await writer.drain()

    server.routes["/"] = flood

    assert error(await drive("web_fetch", url=server.url()))[0] == "TooLarge"


async def test_a_zip_bomb_is_stopped_while_it_unfolds(drive: Fetcher, server: Server) -> None:
    bomb = gzip.compress(bytes(60_000_000), 1)
    server.routes["/"] = reply(bomb, content_type="text/html", content_encoding="gzip")
    started = time.perf_counter()

    kind, message = error(await drive("web_fetch", url=server.url()))

    assert kind == "TooLarge"
    assert "5,000,000 bytes" in message
    assert time.perf_counter() - started < 15


@pytest.mark.parametrize(("coding", "body"), [("gzip", gzip.compress(b"hello", mtime=0)), ("identity", b"hello")])
async def test_compressed_pages_are_unfolded(drive: Fetcher, server: Server, coding: str, body: bytes) -> None:
    server.routes["/"] = reply(body, content_type="text/plain", content_encoding=coding)

    assert content(await drive("web_fetch", url=server.url())) == "hello"


@pytest.mark.parametrize(("body", "coding"), [(b"not gzip at all", "gzip"), (b"x", "br"), (b"x", "deflate")])
async def test_broken_or_unasked_compression_is_an_error(
    drive: Fetcher, server: Server, body: bytes, coding: str
) -> None:
    server.routes["/"] = reply(body, content_type="text/plain", content_encoding=coding)

    assert error(await drive("web_fetch", url=server.url()))[0] == "HttpError"


@covers("T6.8")
async def test_the_name_is_resolved_once_and_the_checked_address_is_used(
    workspace: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    plain = asyncio.get_running_loop().getaddrinfo

    async def rebinding(host: str, *rest: Any, **more: Any) -> Any:
        asked.append(host)
        return await plain("127.0.0.1" if host == "rebind.test" else host, *rest, **more)

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", rebinding)
    server.routes["/"] = reply("hello", content_type="text/plain")

    refused = await Fetcher(workspace, ())("web_fetch", url=f"http://rebind.test:{server.port}/")
    assert error(refused)[0] == "AddressRefused"
    opened = Fetcher(workspace, (f"rebind.test:{server.port}",))
    assert content(await opened("web_fetch", url=f"http://rebind.test:{server.port}/")) == "hello"

    assert asked.count("rebind.test") == 2
    assert server.requests[0].headers["host"] == f"rebind.test:{server.port}"


@pytest.mark.parametrize(
    "place",
    ["http://127.0.0.1:1/", "http://localhost:1/", "file:///etc/passwd", "//127.0.0.1:1/", "http://169.254.169.254/"],
)
async def test_a_redirect_to_a_closed_address_is_refused(drive: Fetcher, server: Server, place: str) -> None:
    server.routes["/"] = reply("", status="302 Found", location=place)

    assert error(await drive("web_fetch", url=server.url()))[0] in {"AddressRefused", "InvalidUrl", "HttpError"}
    assert len(server.requests) == 1


async def test_redirects_are_followed_and_said(drive: Fetcher, server: Server) -> None:
    server.routes["/"] = reply("", status="301 Moved", location="/a")
    server.routes["/a"] = reply("", status="307 Temporary", location=server.url("/b"))
    server.routes["/b"] = reply("there", content_type="text/plain")

    assert content(await drive("web_fetch", url=server.url())) == f"[redirected to {server.url('/b')}]\nthere"


async def test_a_circle_of_redirects_ends(drive: Fetcher, server: Server) -> None:
    server.routes["/"] = reply("", status="302 Found", location="/")

    kind, message = error(await drive("web_fetch", url=server.url()))

    assert kind == "HttpError"
    assert "more than 5 times" in message
    assert len(server.requests) == 6


async def test_headers_without_end_are_refused(drive: Fetcher, server: Server) -> None:
    server.routes["/"] = reply("x", content_type="text/plain", x_big="y" * 70_000)
    server.routes["/huge"] = reply("x", content_type="text/plain", x_big="y" * 500_000)

    assert error(await drive("web_fetch", url=server.url()))[0] == "TooLarge"
    assert error(await drive("web_fetch", url=server.url("/huge")))[0] in {"TooLarge", "NetworkError"}


@covers("T6.8", "T12.3")
@pytest.mark.parametrize("raw", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort"])
async def test_a_broken_answer_is_a_network_error_with_the_url(drive: Fetcher, server: Server, raw: bytes) -> None:
    async def broken(request: Request, writer: Writer) -> None:
        writer.write(raw)

    server.routes["/"] = broken

    kind, message = error(await drive("web_fetch", url=server.url()))

    assert kind == "NetworkError"
    assert server.url() in message


@covers("T6.8")
async def test_nobody_listening_and_no_such_name_are_network_errors(workspace: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    drive = Fetcher(workspace, (f"127.0.0.1:{port}",))

    assert error(await drive("web_fetch", url=f"http://127.0.0.1:{port}/"))[0] == "NetworkError"
    assert error(await drive("web_fetch", url="http://no-such-name.invalid/"))[0] == "NetworkError"


def limits(server: Server, **more: Any) -> WebFetchSettings:
    return WebFetchSettings(**{"allow_private": (server.place,), "timeout": 60, **more})


@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "x-gzip"])
async def test_an_answer_of_just_the_limit_is_taken_and_one_more_byte_is_not(server: Server, encoding: str) -> None:
    for size in (1000, 1001):
        body = b"x" * size
        body = gzip.compress(body) if encoding.endswith("gzip") else body
        server.routes["/"] = reply(body, **({"content_encoding": encoding} if encoding else {}))
        if size == 1000:
            answer = await fetch_url(server.url(), limits(server, max_bytes=1000))
            assert (answer.status, answer.body) == (200, b"x" * 1000)
        else:
            with pytest.raises(ToolFailure) as caught:
                await fetch_url(server.url(), limits(server, max_bytes=1000))
            assert caught.value.kind == "TooLarge"
            assert caught.value.message == f"{server.url()} has more than 1,000 bytes; reading stopped there."


@pytest.mark.parametrize("status", ["301 x", "302 x", "303 x", "307 x", "308 x"])
async def test_every_kind_of_redirect_is_followed_and_one_without_a_place_is_an_answer(
    server: Server, status: str
) -> None:
    server.routes["/"] = reply("", status=status, location="/there")
    server.routes["/there"] = reply("there")
    server.routes["/lost"] = reply("lost", status=status)

    assert (await fetch_url(server.url(), limits(server))).body == b"there"
    assert (await fetch_url(server.url("/lost"), limits(server))).body == b"lost"


async def test_what_was_sent_is_for_the_first_place_alone(server: Server) -> None:
    async with serving() as other:
        server.routes["/here"] = reply("", status="307 x", location="/same")
        server.routes["/same"] = reply("", status="307 x", location=other.url("/there"))
        other.routes["/there"] = reply("there")
        allowed = limits(server, allow_private=(server.place, other.place))
        answer = await fetch_url(server.url("/here"), allowed, headers={"X-Key": "k"}, content=b"{}")

        assert answer.body == b"there"
        assert [(request.method, request.body, request.headers.get("x-key")) for request in server.requests] == [
            ("POST", b"{}", "k"),
            ("POST", b"{}", "k"),
        ]
        [asked] = other.requests
        assert (asked.method, asked.body, asked.headers.get("x-key")) == ("GET", b"", None)


async def test_with_same_host_another_host_is_told_and_not_followed(server: Server) -> None:
    server.routes["/"] = reply("", status="302 x", location="http://example.org/x")

    with pytest.raises(ToolFailure) as caught:
        await fetch_url(server.url(), limits(server), same_host=True)
    assert (caught.value.kind, caught.value.message) == (
        "HttpError",
        f"{server.url()} redirects to http://example.org/x, another host; ask for that address if it is wanted.",
    )
