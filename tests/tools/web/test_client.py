"""HTTP for the web tools: checked addresses, redirects, and limits on every answer."""

import asyncio
import gzip
import socket
import time
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ollm.config.settings import ToolSettings, WebFetchSettings
from ollm.domain.errors import ToolFailure
from ollm.tools.web.client import MAX_REDIRECTS, fetch_url
from ollm.tools.web_fetch import PageCache, WebFetch
from tests.covers import covers
from tests.tools.drive import Driver, content, error
from tests.tools.web_server import Request, Server, Writer, reply, serving


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as running:
        yield running


class Fetcher(Driver):
    def __init__(self, workspace: Path, allowed: tuple[str, ...], **limits: Any) -> None:
        fetch = WebFetchSettings(allow_private=allowed, **limits)
        super().__init__(workspace, settings=ToolSettings(web_fetch=fetch))
        self.cache = PageCache()
        self.registry.register(WebFetch, self.cache)


@pytest.fixture
def drive(workspace: Path, server: Server) -> Fetcher:
    return Fetcher(workspace, (server.place,))


async def test_a_page_that_never_ends_is_stopped_by_its_size(drive: Fetcher, server: Server) -> None:
    async def flood(request: Request, writer: Writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"<p>more</p>" * 5_000)
            await writer.drain()

    server.routes["/"] = flood

    assert error(await drive("web_fetch", url=server.url()))[0] == "TooLarge"


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_zip_bomb_is_stopped_while_it_unfolds(drive: Fetcher, server: Server, coding: str) -> None:
    bomb = gzip.compress(bytes(60_000_000), 1) if coding == "gzip" else zlib.compress(bytes(60_000_000), 1)
    server.routes["/"] = reply(bomb, content_type="text/html", content_encoding=coding)
    started = time.perf_counter()

    kind, message = error(await drive("web_fetch", url=server.url()))

    assert kind == "TooLarge"
    assert "5,000,000 bytes" in message
    assert time.perf_counter() - started < 15


@pytest.mark.parametrize("coding", ["gzip", "deflate", "raw deflate", "identity"])
async def test_compressed_pages_are_unfolded(drive: Fetcher, server: Server, coding: str) -> None:
    raw = zlib.compressobj(wbits=-15)
    bodies = {
        "gzip": gzip.compress(b"hello"),
        "deflate": zlib.compress(b"hello"),
        "raw deflate": raw.compress(b"hello") + raw.flush(),
        "identity": b"hello",
    }
    server.routes["/"] = reply(bodies[coding], content_type="text/plain", content_encoding=coding.removeprefix("raw "))

    assert content(await drive("web_fetch", url=server.url())) == "hello"


@pytest.mark.parametrize(("body", "coding"), [(b"not gzip at all", "gzip"), (b"x", "br")])
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


@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "x-gzip", "deflate", "bare deflate"])
async def test_an_answer_of_just_the_limit_is_taken_and_one_more_byte_is_not(server: Server, encoding: str) -> None:
    for size in (1000, 1001):
        body = b"x" * size
        packer = {"gzip": 31, "x-gzip": 31, "deflate": 15, "bare deflate": -15}.get(encoding)
        if packer:
            squeeze = zlib.compressobj(wbits=packer)
            body = squeeze.compress(body) + squeeze.flush()
        server.routes["/"] = reply(body, **({"content_encoding": encoding.rsplit(maxsplit=1)[-1]} if encoding else {}))
        if size == 1000:
            answer = await fetch_url(server.url(), limits(server, max_bytes=1000))
            assert (answer.status, answer.body, answer.redirected) == (200, b"x" * 1000, False)
        else:
            with pytest.raises(ToolFailure) as caught:
                await fetch_url(server.url(), limits(server, max_bytes=1000))
            assert caught.value.kind == "TooLarge"
            assert caught.value.message == f"{server.url()} has more than 1,000 bytes; reading stopped there."


@pytest.mark.parametrize(("hops", "followed"), [(MAX_REDIRECTS, True), (MAX_REDIRECTS + 1, False)])
async def test_so_many_redirects_are_followed(server: Server, hops: int, followed: bool) -> None:
    for hop in range(hops):
        server.routes[f"/{hop}"] = reply("", status="302 Found", location=f"/{hop + 1}")
    server.routes[f"/{hops}"] = reply("there")

    if followed:
        answer = await fetch_url(server.url("/0"), limits(server))
        assert (answer.body, answer.url, answer.redirected) == (b"there", server.url(f"/{hops}"), True)
    else:
        with pytest.raises(ToolFailure) as caught:
            await fetch_url(server.url("/0"), limits(server))
        assert (caught.value.kind, caught.value.message) == (
            "HttpError",
            f"{server.url('/0')} redirects more than 5 times.",
        )


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
        answer = await fetch_url(server.url("/here"), allowed, method="POST", headers={"X-Key": "k"}, content=b"{}")

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
