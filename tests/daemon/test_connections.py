"""Any number of silent connections keeps nobody out, and as many clients listen as may."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

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


async def test_what_is_no_http_gets_a_problem_document(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        reader, writer = await asyncio.open_unix_connection(str(found.socket))
        writer.write(b"\x16\x03\x01 hello\r\n\r\n")
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    assert head.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in head
    assert json.loads(body)["status"] == 400
