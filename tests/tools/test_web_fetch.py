"""T6.1-6.5: web_fetch, through dispatch, from a real server."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from ollm.config.settings import ToolSettings, WebFetchSettings
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
        self.cache = self.services.pages.get()


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
        (b'{"b":1,"a":[]}', "application/json", '{\n  "b": 1,\n  "a": []\n}'),
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


async def test_the_second_look_in_a_turn_asks_no_server(drive: Fetcher, server: Server) -> None:
    server.routes["/"] = reply(PAGE, content_type="text/html")

    await drive("web_fetch", url=server.url())
    await drive("web_fetch", url=server.url(), selector="#two")
    assert len(server.requests) == 1

    drive.cache.forget()
    await drive("web_fetch", url=server.url())
    assert len(server.requests) == 2


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
