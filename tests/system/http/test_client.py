"""HTTP on asyncio streams: exchanges, lines, TLS."""

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
from ollm.system.http import (
    FirstByteTimeout,
    SilenceTimer,
    StreamStalled,
    Timeouts,
    parse_address,
    read_full_response,
)
from ollm.system.http.secure import SecureClient
from tests.servers import Answer, OllamaServer, ScriptedServer
from tests.servers.handled import serve_with

QUICK = http.Timeouts(connect=1, first=2, stall=2)


async def test_connections_are_kept_and_used_again() -> None:
    async with OllamaServer() as server:
        client = http.open_client(server.base_url, timeouts=QUICK)
        for _ in range(5):
            await client.fetch("GET", "/api/version")
        await client.close()

    assert server.connections == 1


async def test_a_connection_with_data_nobody_asked_for_is_not_used_again() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await asyncio.sleep(0.05)
        writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")

    async with serve_with(answer) as port:
        client = http.open_client(f"http://127.0.0.1:{port}", timeouts=QUICK)
        for _ in range(3):
            assert (await client.fetch("GET", "/")).status == 200
            await asyncio.sleep(0.2)
        await client.close()


async def test_a_redirect_is_handed_back_not_followed() -> None:
    raw = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with ScriptedServer([Answer(raw=raw)]) as server:
        answer = await http.open_client(server.base_url, timeouts=QUICK).fetch("POST", "/v1/chat/completions", b"{}")

    assert answer.status == 302


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
    root = Path(__file__).parents[3]
    run = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"


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
    async with ScriptedServer([Answer(delay=60)]) as server:
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
                await read_full_response(response, limit=1000)


@pytest.mark.parametrize(
    ("url", "secure", "authority", "prefix", "endpoints", "local", "shown"),
    [
        ("http://h", False, "h", "", (("h", 80),), False, "http://h"),
        ("https://h/", True, "h", "", (("h", 443),), False, "https://h"),
        ("h:8080/a/", False, "h:8080", "/a", (("h", 8080),), False, "http://h:8080/a"),
        ("http://localhost:1", False, "localhost:1", "", (("127.0.0.1", 1), ("::1", 1)), True, "http://localhost:1"),
        ("http://[::1]:5", False, "[::1]:5", "", (("::1", 5),), True, "http://[::1]:5"),
        ("http://127.0.0.9", False, "127.0.0.9", "", (("127.0.0.9", 80),), True, "http://127.0.0.9"),
        ("http://10.0.0.1", False, "10.0.0.1", "", (("10.0.0.1", 80),), False, "http://10.0.0.1"),
    ],
)
def test_every_part_of_a_base_url(
    url: str, secure: bool, authority: str, prefix: str, endpoints: tuple, local: bool, shown: str
) -> None:
    found = parse_address(url)

    assert (found.secure, found.authority, found.prefix, found.endpoints) == (secure, authority, prefix, endpoints)
    assert (found.local, found.url) == (local, shown)


def test_a_socket_is_on_this_machine() -> None:
    found = parse_address("http://ollm", "/run/x.sock")

    assert (found.endpoints, found.local) == (("/run/x.sock",), True)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://h", "ftp:// is not http:// or https://"),
        ("http://", "it has no host"),
        ("http://a b", "it has no host"),
        ("http://me@h", "it must not contain a user name, query or fragment"),
        ("http://h?x=1", "it must not contain a user name, query or fragment"),
        ("http://h#x", "it must not contain a user name, query or fragment"),
    ],
)
def test_the_reason_why_it_cannot_be_a_servers(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        parse_address(url)


async def wait(timer: SilenceTimer, seconds: float) -> None:
    await timer.limit_wait(asyncio.sleep(seconds))


@pytest.mark.parametrize(
    ("signs", "failure", "said"),
    [
        ([], FirstByteTimeout, "no answer within 0.02 s"),
        ([True], StreamStalled, "no data for 0.03 s"),
        ([False], FirstByteTimeout, "no answer within 0.02 s"),
        ([True, False], StreamStalled, "no data for 0.03 s"),
    ],
)
async def test_the_first_limit_counts_until_an_answer_has_begun(
    signs: list[bool], failure: type[Exception], said: str
) -> None:
    timer = SilenceTimer(Timeouts(first=0.02, stall=0.03))
    for begun in signs:
        timer.reset(begun=begun)

    with pytest.raises(failure, match=said):
        await wait(timer, 60)


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

    assert found == values


async def test_an_event_has_lines_of_data() -> None:
    data = b"\xef\xbb\xbfid: 7\r\nevent: note\r\ndata: one\r\ndata:two\r\nretry: 5\r\n\r\ndata: last"

    found = await collected(http.iter_server_events(chunked(data, [])))

    assert found == ["one\ntwo", "last"]


async def test_a_line_over_the_limit_is_refused() -> None:
    for data in (b"x" * 100, b"x" * 100 + b"\n", b"data: x\n" * 100):
        with pytest.raises(http.TooLarge):
            await collected(http.iter_server_events(chunked(data, list(range(0, 800, 7))), limit=50))


async def test_only_the_new_line_character_ends_a_line() -> None:
    data = "a\u2028b\u2029c\x85d\x0be\x0cf\rg\n".encode()

    assert await collected(http.iter_lines(chunked(data, []))) == [data[:-1]]


PATH = "/v1/chat/completions"

QUICK_TLS = http.Timeouts(connect=1, first=0.5, stall=0.3)

PATIENT = http.Timeouts(connect=20, first=20, stall=20)


def client(url: str, timeouts: http.Timeouts = QUICK_TLS) -> http.Client:
    return SecureClient(parse_address(url), {"Authorization": "Bearer k"}, timeouts)


async def test_answers_headers_and_events_come_as_from_the_plain_one() -> None:
    async with ScriptedServer([Answer(text="ä b", piece_bytes=1)]) as server:
        async with client(server.base_url, PATIENT).stream("POST", PATH, b"{}") as response:
            events = await collected(http.iter_server_events(response.iter_chunks()))

    assert events[-1] == "[DONE]"
    assert "ä" in events[0]
    assert server.requests[0].headers["authorization"] == "Bearer k"
    assert server.requests[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("answer", "timeouts", "failure"),
    [
        (Answer(delay=9), QUICK_TLS, http.FirstByteTimeout),
        (Answer(text="a b", stall_after=1), http.Timeouts(connect=20, first=20, stall=0.3), http.StreamStalled),
        (Answer(text="a b", reset_after=1), PATIENT, http.ConnectionBroken),
        (Answer(raw=b"nonsense\r\n\r\n"), PATIENT, http.BadResponse),
    ],
)
async def test_failures_are_told_apart(
    answer: Answer, timeouts: http.Timeouts, failure: type[http.HttpFailure]
) -> None:
    async with ScriptedServer([answer]) as server:
        with pytest.raises(failure):
            async with client(server.base_url, timeouts).stream("POST", PATH, b"{}") as response:
                async for _ in response.iter_chunks():
                    response.timer.reset()


async def test_nobody_there_and_no_tls_there_are_no_connection() -> None:
    with pytest.raises(http.ConnectFailed):
        await client("https://127.0.0.1:1").fetch("GET", "/")
    async with OllamaServer() as server:
        with pytest.raises(http.ConnectFailed):
            await http.open_client(server.base_url.replace("http:", "https:"), timeouts=QUICK_TLS).fetch("GET", "/")


async def test_cancelling_closes_the_connection_and_a_redirect_is_handed_back() -> None:
    async with ScriptedServer([Answer(delay=60), Answer(status=302, body={})]) as server:
        speaker = client(server.base_url)
        task = asyncio.create_task(speaker.fetch("POST", PATH, b"{}"))
        while not server.requests:
            await asyncio.sleep(0.005)
        task.cancel()
        async with asyncio.timeout(20):
            await server.left.wait()
        assert (await speaker.fetch("POST", PATH, b"{}")).status == 302
        await speaker.close()
