"""One connection to a plain server."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from ollm.system import http
from tests.servers import Answer, OllamaServer, ScriptedServer
from tests.servers.handled import serve_with

QUICK = http.Timeouts(connect=1, first=2, stall=2)


async def test_ipv6_is_spoken() -> None:
    async with OllamaServer(host="::1") as server:
        answer = await http.open_client(server.base_url, timeouts=QUICK).fetch("GET", "/api/version")

    assert answer.status == 200
    assert server.requests[0].headers["host"] == f"[::1]:{server.port}"


async def test_localhost_finds_whichever_address_listens() -> None:
    for host in ("127.0.0.1", "::1"):
        async with OllamaServer(host=host) as server:
            client = http.open_client(f"http://localhost:{server.port}", timeouts=QUICK)
            assert (await client.fetch("GET", "/api/version")).status == 200
            await client.close()


async def test_a_unix_socket_is_spoken(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with serve_with(answer, tmp_path / "s"):
        client = http.open_client("http://daemon", socket_path=str(tmp_path / "s"), timeouts=QUICK)
        assert (await client.fetch("GET", "/")).body == b"ok"
        await client.close()


async def test_a_word_before_the_answer_is_passed_over() -> None:
    raw = b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    async with ScriptedServer([Answer(raw=raw)]) as server:
        answer = await http.open_client(server.base_url, timeouts=QUICK).fetch("POST", "/v1/chat/completions", b"{}")

    assert (answer.status, answer.body) == (200, b"ok")


@pytest.mark.parametrize(
    ("raw", "failure"),
    [
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000, http.BadResponse),
        (b"\x00\x01\x02 nonsense\r\n\r\n", http.BadResponse),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", http.ConnectionBroken),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", http.BadResponse),
    ],
)
async def test_what_is_not_http_is_named(raw: bytes, failure: type[http.HttpFailure]) -> None:
    async with ScriptedServer([Answer(raw=raw)]) as server:
        with pytest.raises(failure) as caught:
            await http.open_client(server.base_url, timeouts=QUICK).fetch("POST", "/v1/chat/completions", b"{}")

    assert caught.value.started


async def test_connecting_to_nobody_and_to_silence_are_told_apart() -> None:
    with pytest.raises(http.ConnectFailed, match="Connection refused"):
        await http.open_client("http://127.0.0.1:1", timeouts=QUICK).fetch("GET", "/")
    async with ScriptedServer([Answer(delay=9)]) as server:
        client = http.open_client(server.base_url, timeouts=http.Timeouts(connect=1, first=0.1, stall=9))
        with pytest.raises(http.FirstByteTimeout):
            await client.fetch("POST", "/v1/chat/completions", b"{}")


async def test_a_server_too_busy_to_accept_is_no_connection_in_time() -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for client in (first, second):
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        with pytest.raises(http.ConnectFailed, match=r"within 0.2 s"):
            await http.open_client(url, timeouts=http.Timeouts(connect=0.2)).fetch("GET", "/")


async def test_an_unknown_name_is_no_connection() -> None:
    with pytest.raises(http.ConnectFailed):
        await http.open_client("http://no-such-host.invalid", timeouts=QUICK).fetch("GET", "/")
