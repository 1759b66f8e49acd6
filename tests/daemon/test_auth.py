"""Access to the daemon: tokens, tickets, logins, the port, other users."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from ollm.daemon.auth import (
    MAX_LOGINS,
    MAX_TICKETS,
    TICKET_SECONDS,
    Guard,
    WebAccess,
    WebState,
    get_cookie_name,
    read_cookie,
    read_state,
    write_state,
)
from ollm.daemon.devices import BadTicketError
from ollm.daemon.server import OWN_PORTS, bind_tcp
from tests.daemon.running import Daemon, daemon, listing
from tests.servers.openai import ScriptedServer


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
        ((b"origin", b""), False),
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


STRANGER = 65_534

ASK = """
import os, socket, sys
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
found = socket.socket(socket.AF_UNIX)
found.connect(sys.argv[1])
try:
    found.sendall(b"GET /health HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n")
    print(found.recv(100))
except ConnectionError as error:
    print(b"")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_gets_no_answer_even_if_the_directory_is_open() -> None:
    directory = Path(tempfile.mkdtemp(prefix="ollm-open-"))
    try:
        async with ScriptedServer() as server:
            daemon = Daemon(directory, server)
            await daemon.start()
            for place, mode in ((directory, 0o755), (daemon.home, 0o755), (daemon.socket.parent, 0o777)):
                place.chmod(mode)
            daemon.socket.chmod(0o666)
            line = [sys.executable, "-c", ASK, str(daemon.socket)]
            own = subprocess.run([*line, "0"], capture_output=True, text=True, check=True)
            other = subprocess.run([*line, str(STRANGER)], capture_output=True, text=True, check=False)
            await daemon.end()
    finally:
        shutil.rmtree(directory)

    assert "200 OK" in own.stdout
    assert other.returncode == 0, f"it could not even connect: {other.stderr}"
    assert other.stdout.strip() == "b''"


LOG_IN = """
import encodings.idna, json, os, sys, urllib.error, urllib.request
url, ticket, user = sys.argv[1:]
os.setuid(int(user))
own = {"origin": url, "content-type": "application/json"}
request = urllib.request.Request(url + "/web/login", json.dumps({"ticket": ticket}).encode(), own)
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_a_link_that_another_user_of_the_machine_reads_is_of_no_use_to_them(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        url, _, ticket = (await found.ask("POST", "/web/ticket")).json["url"].partition("/#ticket=")
        codes = []
        for user in (str(STRANGER), "0"):
            line = (sys.executable, "-c", LOG_IN, url, ticket, user)
            process = await asyncio.create_subprocess_exec(*line, stdout=subprocess.PIPE)
            codes.append((await process.communicate())[0].strip())
    assert codes == [b"403", b"200"]


def test_a_port_that_is_taken_is_given_up() -> None:
    with bind_tcp() as first:
        first.listen()
        with bind_tcp(first.getsockname()[1]) as second:
            assert second.getsockname()[1] != first.getsockname()[1]
            assert {first.getsockname()[1], second.getsockname()[1]} <= set(OWN_PORTS)


def test_a_port_that_is_about_to_be_free_is_waited_for() -> None:
    first = bind_tcp()
    first.listen()
    wanted = first.getsockname()[1]
    freeing = threading.Timer(0.3, first.close)
    freeing.start()
    with bind_tcp(wanted, 60) as second:
        assert second.getsockname()[1] == wanted
    freeing.join()


async def test_a_killed_daemon_comes_back_at_its_port_and_a_stopped_one_logs_all_pages_out(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        url = (await found.ask("POST", "/web/ticket")).json["url"].partition("/#")[0]
        ticket = (await found.ask("POST", "/web/ticket")).json["url"].partition("=")[2]
        own = {"origin": url, "content-type": "application/json"}
        reply = await found.ask("POST", "/web/login", {"ticket": ticket}, url=url, headers=own)
        page = {"cookie": reply.headers["set-cookie"].partition(";")[0], "x-ollm-page": reply.json["token"]}
        assert (await found.ask("GET", "/health", url=url, headers=page)).status == 200

        await found.end(signal.SIGKILL)
        await found.start()
        assert (await found.ask("GET", "/health", url=url, headers=page)).status == 200

        await found.end(signal.SIGTERM)
        await found.start()
        assert json.loads((found.home / "run" / "daemon.pid").read_text())["port"] is None, "nobody waits for it"
        await found.end(signal.SIGTERM)
        await found.start("--tcp")
        port = json.loads((found.home / "run" / "daemon.pid").read_text())["port"]  # another one, if somebody took it
        assert (await found.ask("GET", "/health", url=f"http://127.0.0.1:{port}", headers=page)).status == 401


PORT = 8181


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def get_port() -> int:
    return PORT


def make_headers(login: tuple[str, str], port: int = PORT) -> dict[str, str]:
    return {"cookie": f"other=1; {get_cookie_name(port)}={login[0]}", "x-ollm-page": login[1]}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(tmp_path: Path, clock: Clock) -> WebAccess:
    return WebAccess(tmp_path / "web.json", get_port, clock)


async def take_ticket(access: WebAccess) -> str:
    address, _, ticket = (await access.create_link()).partition("/#ticket=")
    assert address == f"http://127.0.0.1:{PORT}"
    return ticket


async def test_a_ticket_expires_after_a_minute(access: WebAccess, clock: Clock) -> None:
    ticket = await take_ticket(access)
    clock.now += TICKET_SECONDS
    with pytest.raises(BadTicketError):
        access.log_in(ticket, PORT)


async def test_only_the_newest_tickets_are_kept(access: WebAccess) -> None:
    first = await take_ticket(access)
    for _ in range(MAX_TICKETS):
        last = await take_ticket(access)
    with pytest.raises(BadTicketError):
        access.log_in(first, PORT)
    assert access.log_in(last, PORT)


async def test_a_daemon_that_was_killed_knows_its_pages_again_but_not_their_secrets(
    access: WebAccess, tmp_path: Path, clock: Clock
) -> None:
    login = access.log_in(await take_ticket(access), PORT)
    file = tmp_path / "web.json"

    assert file.stat().st_mode & 0o777 == 0o600
    assert login[0] not in file.read_text()
    assert login[1] not in file.read_text()
    assert json.loads(file.read_text())["port"] == PORT
    assert WebAccess(file, get_port, clock).is_logged_in(PORT, make_headers(login))


async def test_logins_are_bounded(access: WebAccess) -> None:
    first = access.log_in(await take_ticket(access), PORT)
    for _ in range(MAX_LOGINS):
        access.log_in(await take_ticket(access), PORT)

    assert not access.is_logged_in(PORT, make_headers(first))


def test_what_cannot_be_read_is_nothing(tmp_path: Path) -> None:
    file = tmp_path / "web.json"
    assert read_state(file) == WebState()
    file.write_bytes(b"\x00garbage")
    assert read_state(file) == WebState()
    write_state(file, WebState(port=7))
    assert read_state(file).port == 7


@pytest.mark.parametrize("header", ["", ";;;", "a", "ollm-81", "ollm-8=x", '\x00"', "ollm-81=\u00e9\u2028"])
def test_a_broken_cookie_is_none_of_ours(header: str) -> None:
    assert read_cookie(header, "ollm-81") in ("", "\u00e9\u2028")


JSON = {"content-type": "application/json"}


async def log_in(found: Daemon) -> tuple[str, dict[str, str], str]:
    """The address, the headers of a page that is logged in, and what set its cookie."""
    link = (await found.ask("POST", "/web/ticket")).json["url"]
    url, _, ticket = link.partition("/#ticket=")
    reply = await found.ask("POST", "/web/login", {"ticket": ticket}, url=url, headers={**JSON, "origin": url})
    assert reply.status == 200, reply.body
    cookie = reply.headers["set-cookie"]
    return url, {"cookie": cookie.partition(";")[0], "x-ollm-page": reply.json["token"]}, cookie


async def test_a_link_is_made_over_the_socket_alone_and_works_once(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        assert not (found.home / "run" / "token").exists(), "no port before it is asked for"
        link = (await found.ask("POST", "/web/ticket")).json
        url, _, ticket = link["url"].partition("/#ticket=")
        own = {**JSON, "origin": url}
        body = {"ticket": ticket}
        token = (found.home / "run" / "token").read_text()
        bearer = {"authorization": f"Bearer {token}"}

        for path in ("/web/ticket", "/web/ticket/", "//web/ticket", "/web//ticket", "/web%2fticket", "/web/%74icket"):
            assert (await found.ask("POST", path, url=url, headers=bearer)).status in (403, 404), path
        for headers in ({**own, "origin": "http://evil.example"}, {**own, "origin": "null"}, {**own, "host": "evil"}):
            assert (await found.ask("POST", "/web/login", body, url=url, headers=headers)).status == 403
        assert (await found.ask("POST", "/web/login", body, url=url, headers=JSON)).status == 401
        assert (await found.ask("POST", "/web/login", {"ticket": "x"}, url=url, headers=own)).status == 401
        good = await found.ask("POST", "/web/login", body, url=url, headers=own)
        again = await found.ask("POST", "/web/login", body, url=url, headers=own)

    assert link["expiresInSeconds"] == 60
    assert good.status == 200
    flags = good.headers["set-cookie"].lower()
    assert flags.startswith(f"ollm-{url.rpartition(':')[2]}=")
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in flags.split(";")}
    assert again.status == 401
    assert again.json["action"] == "Run `ollm web` for a new one."


async def test_the_api_wants_cookie_and_page_token_and_our_own_origin(tmp_path: Path) -> None:
    async with daemon(tmp_path) as found:
        url, page, _ = await log_in(found)
        _, other, _ = await log_in(found)

        async def ask(headers: dict[str, str], **more: Any) -> int:
            return (await found.ask("GET", "/sessions", url=url, headers=headers, **more)).status

        assert await ask(page) == 200
        assert await ask({**page, "origin": url}) == 200
        assert await ask({**page, "sec-fetch-site": "same-origin"}) == 200
        assert await ask({"cookie": page["cookie"]}) == 401
        assert await ask({"x-ollm-page": page["x-ollm-page"]}) == 401
        assert await ask({**page, "x-ollm-page": other["x-ollm-page"]}) == 401
        assert await ask({**page, "sec-fetch-site": "same-site"}) == 403
        assert await ask({**page, "sec-fetch-site": "cross-site"}) == 403
        assert await ask({**page, "origin": "http://127.0.0.1:1"}) == 403
        assert await ask({"cookie": page["cookie"], "origin": url}) == 403
        assert await ask({**page, "host": "evil.example"}) == 403
        assert (await found.ask("POST", "/web/logout", url=url, headers={**page, "origin": url})).status == 200
        assert await ask(page) == 401
        assert await ask(other) == 200
