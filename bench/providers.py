"""One request and its streamed answer on a kept connection, against the standard library's own client; and lines."""

from __future__ import annotations

import asyncio
import http.client
import json
import statistics
import time
from collections.abc import AsyncIterator, Iterable
from urllib.parse import urlsplit

from bench.row import Row, pair
from bench.servers import InstantServer
from ollm.config.settings import ProviderTimeouts
from ollm.domain.messages import PromptMessage
from ollm.providers.base import ChatRequest
from ollm.providers.exchange import Exchange
from ollm.providers.openai_compatible import OpenAICompatible
from ollm.providers.server_kind import split_base_url
from ollm.system.http import iter_server_events

TIMES = 200
EVENTS = b"".join(f'data: {{"choices":[{{"delta":{{"content":"word {n}"}}}}]}}\n\n'.encode() for n in range(5000))


def rows() -> Iterable[Row]:
    with InstantServer() as server:
        ours = asyncio.run(_ours(server.base_url))
        baseline = _baseline(server.base_url)
    yield Row("request and answer on a kept connection", ours * 1000, baseline * 1000, 3, "ms")
    reading, parsing = pair(lambda: asyncio.run(_read()), _parse)
    yield Row("5,000 events read", reading * 1000, parsing * 1000, 4, "ms", note="baseline: parse in memory")


async def _ours(url: str) -> float:
    root, api = split_base_url(url)
    provider = OpenAICompatible(Exchange(root, ProviderTimeouts()), api)
    request = ChatRequest(model="instant", messages=(PromptMessage(role="user", content="hi"),), window=4096)
    times = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        async for _piece in provider.stream(request):
            pass
        times.append(time.perf_counter() - begin)
    await provider.close()
    return statistics.median(times)


def _baseline(url: str) -> float:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    body = json.dumps({"model": "instant", "messages": [{"role": "user", "content": "hi"}], "stream": True})
    times = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        connection.getresponse().read()
        times.append(time.perf_counter() - begin)
    connection.close()
    return statistics.median(times)


def _parse() -> None:
    for event in EVENTS.split(b"\n\n")[:-1]:
        json.loads(event[6:])


async def _read() -> int:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(EVENTS), 1400):
            yield EVENTS[at : at + 1400]

    count = 0
    async for event in iter_server_events(chunks()):
        json.loads(event)
        count += 1
    return count
