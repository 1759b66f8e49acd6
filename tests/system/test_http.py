"""The HTTP exchange: connections, time-outs, limits, and lines out of chunks cut anywhere."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.system import http
from ollm.system.http import address
from tests.servers import Answer, OllamaServer, ScriptedServer

QUICK = http.Timeouts(connect=1, first=2, stall=2)


async def chunked(data: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        yield data[start:end]


async def collected(source: AsyncIterator[object]) -> list[object]:
    return [item async for item in source]


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=20)


@given(values=st.lists(texts), cuts=st.lists(st.integers(0, 500)), end=st.sampled_from([b"\n", b"\r\n"]))
def test_lines_come_whole_wherever_the_chunks_are_cut(values: list[str], cuts: list[int], end: bytes) -> None:
    data = b"".join(json.dumps(value, ensure_ascii=False).encode() + end for value in values)

    found = asyncio.run(collected(http.iter_lines(chunked(data, cuts))))

    assert [json.loads(line) for line in found] == values  # type: ignore[arg-type]


@given(values=st.lists(texts.filter(bool)), cuts=st.lists(st.integers(0, 500)))
def test_events_come_whole_wherever_the_chunks_are_cut(values: list[str], cuts: list[int]) -> None:
    data = b": a comment\n\n" + b"".join(f"data: {value}\n\n".encode() for value in values)

    found = asyncio.run(collected(http.iter_server_events(chunked(data, cuts))))

    assert [event.data for event in found] == values  # type: ignore[attr-defined]


async def test_an_event_has_a_name_an_id_and_lines_of_data() -> None:
    data = b"\xef\xbb\xbfid: 7\r\nevent: note\r\ndata: one\r\ndata:two\r\nretry: 5\r\n\r\ndata: last"

    found = await collected(http.iter_server_events(chunked(data, [])))

    assert found == [http.ServerEvent("one\ntwo", "note", "7"), http.ServerEvent("last", "message", "7")]


async def test_a_line_over_the_limit_is_refused() -> None:
    for data in (b"x" * 100, b"x" * 100 + b"\n", b"data: x\n" * 100):
        with pytest.raises(http.TooLarge):
            await collected(http.iter_server_events(chunked(data, list(range(0, 800, 7))), limit=50))


async def test_only_the_new_line_character_ends_a_line() -> None:
    data = "a\u2028b\u2029c\x85d\x0be\x0cf\rg\n".encode()

    assert await collected(http.iter_lines(chunked(data, []))) == [data[:-1]]


@pytest.mark.parametrize(
    ("url", "authority", "prefix", "places"),
    [
        ("http://localhost:11434/", "localhost:11434", "", (("127.0.0.1", 11434), ("::1", 11434))),
        ("http://[::1]:8080/v1", "[::1]:8080", "/v1", (("::1", 8080),)),
        ("box.lan", "box.lan", "", (("box.lan", 80),)),
        ("https://host/api/v1/", "host", "/api/v1", (("host", 443),)),
    ],
)
def test_a_base_url_is_taken_apart(url: str, authority: str, prefix: str, places: tuple[object, ...]) -> None:
    found = address.parse_address(url)

    assert (found.authority, found.prefix, found.places) == (authority, prefix, places)


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://a:99999", "http://u:p@h", "http://h/?q=1", "http://a b/"]
)
def test_what_is_no_servers_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        http.open_client(url)


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

    server = await asyncio.start_unix_server(answer, tmp_path / "s")
    async with server:
        client = http.open_client("http://daemon", socket_path=str(tmp_path / "s"), timeouts=QUICK)
        assert (await client.fetch("GET", "/")).body == b"ok"
        await client.close()


async def test_connections_are_kept_and_used_again() -> None:
    async with OllamaServer() as server:
        client = http.open_client(server.base_url, timeouts=QUICK)
        for _ in range(5):
            await client.fetch("GET", "/api/version")
        await client.close()

    assert server.connections == 1


async def test_a_redirect_is_handed_back_not_followed() -> None:
    raw = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with ScriptedServer([Answer(raw=raw)]) as server:
        answer = await http.open_client(server.base_url, timeouts=QUICK).fetch("POST", "/v1/chat/completions", b"{}")

    assert answer.status == 302


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


async def test_a_body_without_end_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 1024 + b"\r\n"
    async with ScriptedServer([Answer(raw=raw)]) as server:
        client = http.open_client(server.base_url, timeouts=QUICK)
        async with client.stream("POST", "/v1/chat/completions", b"{}") as response:
            with pytest.raises(http.TooLarge):
                await http.response.read_full_response(response, limit=1000)


def test_a_plain_server_needs_neither_httpx_nor_pydantic_nor_stamina() -> None:
    script = """if True:
        import asyncio, sys
        from tests.providers.conftest import ask, openai, said
        for name in [name for name in sys.modules if name.startswith(("_pytest", "pytest", "hypothesis"))]:
            del sys.modules[name]
        from tests.servers import ScriptedServer
        async def main():
            async with ScriptedServer(["ok"]) as server:
                await said(openai(server.base_url))
        asyncio.run(main())
        heavy = {"pydantic", "httpx2", "httpx", "stamina", "tenacity", "anyio", "click", "rich", "xllamacpp"}
        print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
    """
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"
