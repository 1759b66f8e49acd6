"""A request that does not arrive is not waited for: connections are no one's to keep."""

import asyncio
from typing import Any

import pytest
from uvicorn.server import ServerState

from ollm.daemon import connections
from ollm.daemon.server import build_server_config

HEAD = b"POST / HTTP/1.1\r\nhost: localhost\r\n"


async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
    del scope
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(0.5)  # longer than a client may take to ask
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize(
    ("pieces", "answered"),
    [
        ([], False),
        ([b"GET / HT"], False),
        ([HEAD], False),
        ([HEAD, b"a: b\r\n", b"c: d\r\n", b"e: f\r\n", b"g: h\r\n"], False),
        ([HEAD + b"content-length: 9\r\n\r\n", b"{"], False),
        ([HEAD + b"content-length: 2\r\n\r\n", b"{}"], True),
    ],
)
async def test_a_request_arrives_in_time_or_its_connection_is_closed(
    monkeypatch: pytest.MonkeyPatch, pieces: list[bytes], answered: bool
) -> None:
    monkeypatch.setattr(connections, "RECEIVE_SECONDS", 0.3)
    config = build_server_config(answer)
    config.load()
    state = ServerState()
    listening = await asyncio.get_running_loop().create_server(
        lambda: connections.DaemonHttpProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
    found = b""
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.1)
        found = await asyncio.wait_for(reader.read(100), 10)
    except ConnectionError:
        pass
    finally:
        writer.close()
        listening.close()

    assert found.startswith(b"HTTP/1.1 204") is answered
