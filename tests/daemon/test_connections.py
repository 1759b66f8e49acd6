"""Limits of connections and clients."""

import asyncio
import contextlib
import json
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from uvicorn.server import ServerState

from ollm.daemon import server
from ollm.daemon.server import build_server_config
from tests.daemon.running import Daemon, daemon
from tests.servers.answers import Answer
from tests.sizes import SOAK

PIECES = {
    "silent": b"",
    "half a head": b"GET /health HTTP/1.1\r\nhost:",
    "half a body": b"POST /init HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"content-length: 100\r\n\r\n{",
}
MANY = 300


def port_of(found: Daemon) -> int:
    return int(json.loads((found.home / "run" / "daemon.pid").read_text())["port"])


@contextlib.contextmanager
def crowd(found: Daemon, kind: str, piece: bytes) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        opened = []
        for _ in range(MANY):
            family = socket.AF_UNIX if kind == "unix" else socket.AF_INET
            one = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            one.connect(str(found.socket) if kind == "unix" else ("127.0.0.1", port_of(found)))
            with contextlib.suppress(ConnectionError):  # it was the oldest already
                one.sendall(piece)
            opened.append(one)
        yield opened


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
async def test_connections_that_say_nothing_keep_nobody_out(tmp_path: Path, piece: bytes) -> None:
    async with daemon(tmp_path, ["hi there"], "--tcp") as found:
        session = await found.open()
        token = (found.home / "run" / "token").read_text()
        async with found.stream("GET", f"/sessions/{session}/events") as events:
            for kind in ("unix", "tcp"):
                with crowd(found, kind, piece):
                    near = await asyncio.wait_for(found.ask("GET", "/health"), 10)
                    url, headers = f"http://127.0.0.1:{port_of(found)}", {"authorization": f"Bearer {token}"}
                    far = await asyncio.wait_for(found.ask("GET", "/health", url=url, headers=headers), 10)
                    assert (near.status, far.status) == (200, 200)
            said = await found.say(session, "hello")
            heard = [event async for event in until_finished(events)]
    assert [event["seq"] for event in heard] == [event["seq"] for event in said]


async def until_finished(events):
    async for event in events:
        yield event
        if event["type"] == "turn-finished":
            return


async def test_as_many_clients_listen_as_the_settings_say(tmp_path: Path) -> None:
    (tmp_path / ".ollm").mkdir()
    (tmp_path / ".ollm" / "config.yaml").write_text("daemon:\n  maxClients: 2\n")
    async with daemon(tmp_path, [Answer(text="a b c d e f", pace=0.3)]) as found, contextlib.AsyncExitStack() as stack:
        session = await found.open()
        await stack.enter_async_context(found.stream("GET", f"/sessions/{session}/events"))
        await stack.enter_async_context(found.stream("POST", f"/sessions/{session}/messages", {"text": "x"}))

        reply = await found.ask("GET", f"/sessions/{session}/events")
        assert reply.status == 503, "in a session where a turn runs nobody is sent away"
        assert "maxClients" in reply.json["action"]
        assert (await found.ask("POST", f"/sessions/{session}/cancel")).json == {"accepted": True}


SLOW = Answer(text="one two three four five six seven eight", pace=0.2)
UNLIMITED = resource.RLIM_INFINITY


def configure(directory: Path, text: str) -> None:
    (directory / ".ollm").mkdir()
    (directory / ".ollm" / "config.yaml").write_text(text)


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes long: make soak")
async def test_no_more_clients_than_the_settings_say_even_when_they_come_at_once(tmp_path: Path) -> None:
    configure(tmp_path, "daemon:\n  maxClients: 5\n")
    async with daemon(tmp_path, [SLOW]) as found:
        session = await found.open()
        listening = [asyncio.create_task(read_status(found, session)) for _ in range(20)]
        ended, open_still = await asyncio.wait(listening, timeout=3)
        assert len(open_still) == 5, "the others made room, the oldest first"
        said = await found.say(session, "count")
        assert said[-1]["reason"] == "answered", "who sends takes the place of one that only waits"
        for task in open_still:
            task.cancel()
        await asyncio.gather(*open_still, return_exceptions=True)
    assert all(task.result() == 200 for task in ended)


async def read_status(found: Daemon, session: str) -> int:
    reply = await found.ask("GET", f"/sessions/{session}/events")
    return reply.status


async def test_what_cannot_be_saved_keeps_its_session_open_and_is_said(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["One.", "Two.", "Three."]) as found:
        assert found.process
        session = await found.open()
        await found.say(session, "first")
        resource.prlimit(found.process.pid, resource.RLIMIT_FSIZE, (1, UNLIMITED))
        await found.say(session, "second")
        refused = await found.ask("DELETE", f"/sessions/{session}")
        resource.prlimit(found.process.pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
        assert refused.status == 507
        assert "2 messages" in refused.json["detail"]
        assert (await found.ask("DELETE", f"/sessions/{session}")).status == 204
        history = (await found.ask("GET", f"/sessions/{session}/history")).json
    assert [message["parts"][0]["text"] for message in history] == ["first", "One.", "second", "Two."]


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
    monkeypatch.setattr(server, "RECEIVE_SECONDS", 0.3)
    config = build_server_config(answer)
    config.load()
    state = ServerState()
    listening = await asyncio.get_running_loop().create_server(
        lambda: server.DaemonHttpProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
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
