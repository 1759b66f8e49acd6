"""The client for https behaves like the plain one. What TLS adds is httpx2's; the rest is held to here, without it."""

from __future__ import annotations

import asyncio

import pytest

from ollm.system import http
from ollm.system.http.client import parse_address
from ollm.system.http.secure import SecureClient
from tests.servers import Answer, OllamaServer, ScriptedServer

PATH = "/v1/chat/completions"
QUICK = http.Timeouts(connect=1, first=0.5, stall=0.3)


PATIENT = http.Timeouts(connect=20, first=20, stall=20)


def client(url: str, timeouts: http.Timeouts = QUICK) -> http.Client:
    return SecureClient(parse_address(url), {"Authorization": "Bearer k"}, timeouts)


async def test_answers_headers_and_events_come_as_from_the_plain_one() -> None:
    async with ScriptedServer([Answer(text="ä b", piece_bytes=1)]) as server:
        async with client(server.base_url, PATIENT).stream("POST", PATH, b"{}") as response:
            events = [event.data async for event in http.iter_server_events(response.iter_chunks())]

    assert events[-1] == "[DONE]"
    assert "ä" in events[0]
    assert server.requests[0].headers["authorization"] == "Bearer k"
    assert server.requests[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("answer", "timeouts", "failure"),
    [
        (Answer(delay=9), QUICK, http.FirstByteTimeout),
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
                    response.patience.reset()


async def test_nobody_there_and_no_tls_there_are_no_connection() -> None:
    with pytest.raises(http.ConnectFailed):
        await client("https://127.0.0.1:1").fetch("GET", "/")
    async with OllamaServer() as server:
        with pytest.raises(http.ConnectFailed):
            await http.open_client(server.base_url.replace("http:", "https:"), timeouts=QUICK).fetch("GET", "/")


async def test_cancelling_closes_the_connection_and_a_redirect_is_handed_back() -> None:
    async with ScriptedServer([Answer(delay=9), Answer(status=302, body={})]) as server:
        speaker = client(server.base_url)
        task = asyncio.create_task(speaker.fetch("POST", PATH, b"{}"))
        while not server.requests:
            await asyncio.sleep(0.005)
        task.cancel()
        async with asyncio.timeout(1):
            await server.left.wait()
        assert (await speaker.fetch("POST", PATH, b"{}")).status == 302
        await speaker.close()
