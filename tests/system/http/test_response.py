"""An answer: whole, or as it comes."""

from __future__ import annotations

import pytest

from ollm.system import http
from tests.servers import Answer, ScriptedServer

QUICK = http.Timeouts(connect=1, first=2, stall=2)


async def test_a_body_without_end_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 1024 + b"\r\n"
    async with ScriptedServer([Answer(raw=raw)]) as server:
        client = http.open_client(server.base_url, timeouts=QUICK)
        async with client.stream("POST", "/v1/chat/completions", b"{}") as response:
            with pytest.raises(http.TooLarge):
                await http.response.read_full_response(response, limit=1000)
