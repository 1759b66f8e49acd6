"""Access to the daemon."""

import json
from pathlib import Path
from typing import Any

import pytest

from ollm.daemon.auth import Guard, WebAccess
from tests.daemon.running import daemon, listing


async def test_over_tcp_every_route_wants_the_token_and_our_own_host(tmp_path: Path) -> None:
    async with daemon(tmp_path, ["hi"], "--tcp") as found:
        running = json.loads((found.home / "run" / "daemon.pid").read_text())
        token = (found.home / "run" / "token").read_text()
        url = f"http://127.0.0.1:{running['port']}"
        good = {"authorization": f"Bearer {token}"}

        assert len(token) >= 43
        assert (await found.ask("GET", "/health", url=url, headers=good)).status == 200
        for path in ("/health", "/schema/openapi.json", "/search?q=x", listing(found.workspace), "/nothing"):
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": token}):
                assert (await found.ask("GET", path, url=url, headers=headers)).status == 401
        assert (
            await found.ask("GET", "/health", url=f"http://localhost:{running['port']}", headers=good)
        ).status == 200
        rebound = await found.ask("GET", "/health", url=url, headers={**good, "host": "evil.example"})
        assert rebound.status == 403
        crossing = await found.ask("GET", "/health", url=url, headers={**good, "origin": url})
        assert crossing.status == 403
    assert not (found.home / "run" / "token").exists()


SOCKET: dict[str, Any] = {"type": "http", "method": "GET", "path": "/health", "headers": [], "server": None}


async def get_no_port() -> int:
    raise AssertionError("no port is opened here")


WEB = WebAccess(Path("/nowhere/web.json"), get_no_port)
TCP: dict[str, Any] = {
    "type": "http",
    "method": "GET",
    "path": "/health",
    "headers": [(b"host", b"127.0.0.1:81"), (b"authorization", b"Bearer secret")],
    "server": ("127.0.0.1", 81),
}


async def ask(scope: dict[str, Any], *headers: tuple[bytes, bytes], closing: bool = False, **more: Any) -> Any:
    """The problem that a request gets; None when it is let through."""
    sent: list[Any] = []

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        await send("through")

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    guard = Guard(application, "secret", WEB, lambda: closing)
    await guard({**scope, "headers": [*scope["headers"], *headers], **more}, receive, send)
    if sent == ["through"]:
        return None
    assert dict(sent[0]["headers"])[b"content-type"] == b"application/problem+json"
    assert int(dict(sent[0]["headers"])[b"content-length"]) == len(sent[1]["body"])
    problem = json.loads(sent[1]["body"])
    assert sent[0]["status"] == problem["status"]
    return {**problem, "headers": dict(sent[0]["headers"])}


async def test_a_plain_request_passes() -> None:
    assert await ask(SOCKET) is None
    assert await ask(TCP) is None
    assert await ask({**SOCKET, "type": "lifespan"}, (b"origin", b"http://x")) is None


@pytest.mark.parametrize("host", [b"127.0.0.1:81", b"LOCALHOST:81", b"[::1]:81"])
async def test_over_tcp_this_machine_has_three_names(host: bytes) -> None:
    scope = {**TCP, "headers": [(b"host", host), (b"Authorization", b"bearer secret")]}

    assert await ask(scope) is None


@pytest.mark.parametrize("host", [b"127.0.0.1", b"127.0.0.1:82", b"evil.example:81", b""])
async def test_any_other_host_is_refused(host: bytes) -> None:
    found = await ask({**TCP, "headers": [(b"host", host), (b"authorization", b"Bearer secret")]})

    assert (found["status"], found["title"]) == (403, "Forbidden")
    assert found["detail"] == "The Host header must name this machine and the daemon's port."


@pytest.mark.parametrize(
    ("header", "passes"),
    [
        ((b"origin", b"http://127.0.0.1:81"), False),
        ((b"sec-fetch-site", b"cross-site"), False),
        ((b"sec-fetch-site", b"same-site"), False),
        ((b"sec-fetch-site", b"same-origin"), True),
        ((b"sec-fetch-site", b"none"), True),
    ],
)
async def test_web_pages_are_kept_out(header: tuple[bytes, bytes], passes: bool) -> None:
    found = await ask(SOCKET, header)

    assert (found is None) is passes
    assert passes or (found["status"], found["detail"]) == (403, "Requests from web pages are not allowed.")


async def test_a_daemon_that_ends_takes_nothing() -> None:
    found = await ask(SOCKET, closing=True)

    assert (found["status"], found["detail"]) == (503, "The daemon is shutting down.")
    assert b"connection" not in found["headers"]
    assert b"www-authenticate" not in found["headers"]


@pytest.mark.parametrize(
    ("method", "headers", "passes"),
    [
        ("POST", [(b"content-length", b"2"), (b"content-type", b"application/json; charset=utf-8")], True),
        ("POST", [(b"content-length", b"2"), (b"content-type", b"text/plain")], False),
        ("PATCH", [(b"content-length", b"2")], False),
        ("PUT", [(b"transfer-encoding", b"chunked")], False),
        ("POST", [], True),
        ("POST", [(b"content-length", b"0")], True),
        ("GET", [(b"content-length", b"2"), (b"content-type", b"text/plain")], True),
    ],
)
async def test_a_body_is_json(method: str, headers: list[tuple[bytes, bytes]], passes: bool) -> None:
    found = await ask(SOCKET, *headers, method=method)

    assert (found is None) is passes
    assert passes or found["status"] == 415


@pytest.mark.parametrize(
    ("length", "passes"), [(b"1048576", True), (b"1048577", False), (b"-1", False), (b"x", False), (b"0", True)]
)
async def test_a_body_has_its_limit(length: bytes, passes: bool) -> None:
    found = await ask(SOCKET, (b"content-length", length), (b"content-type", b"application/json"), method="POST")

    assert (found is None) is passes
    assert passes or (found["status"], found["detail"]) == (413, "The body may be at most 1 MiB.")
