"""Access to the daemon: by user over the Unix socket; by token, or page cookie plus token, over loopback TCP; by device
key at `daemon.publicUrl`.

The guard runs before the application, so a rejected request never reaches application code.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ollm.daemon.bodies import Problem, make_problem
from ollm.daemon.devices import DEVICE_COOKIE, READING, BadTicketError, Device, DeviceKeys, find_address, hash_key
from ollm.domain.errors import DeniedError
from ollm.domain.struct import Data
from ollm.system.atomic import read_json, replace_file

TICKET_SECONDS = 60
LOGIN_SECONDS = 7 * 24 * 3600
MAX_TICKETS = 20
MAX_LOGINS = 50
T = TypeVar("T")
PAGE_TOKEN_HEADER = "x-ollm-page"  # noqa: S105 - the header, not a secret


class WebLogin(Data, frozen=True):
    """A logged-in page: hashes of its two secrets, its port and its expiry."""

    cookie: str
    page: str
    port: int
    expires: float


class WebState(Data, frozen=True):
    """State that survives a killed daemon."""

    port: int | None = None
    logins: tuple[WebLogin, ...] = ()
    devices: tuple[Device, ...] = ()


class WebAccess:
    """One per daemon. `open_port` opens the loopback port if needed and returns its number; `public` is the origin of
    the page at `daemon.publicUrl`."""

    def __init__(
        self,
        file: Path,
        open_port: Callable[[], Awaitable[int]],
        clock: Callable[[], float] = time.time,
        public: str = "",
    ) -> None:
        self._file = file
        self._open_port = open_port
        self._clock = clock
        self._tickets: dict[str, float] = {}
        state = read_state(file)
        self._logins = state.logins
        self.devices = DeviceKeys(state.devices, public, clock, lambda: self.save(read_state(file).port))

    async def create_link(self) -> str:
        """Create an address that logs in whoever opens it first, within a minute. What follows # is never sent."""
        port = await self._open_port()
        now = self._clock()
        live = {found: until for found, until in self._tickets.items() if until > now}
        self._tickets = dict(list(live.items())[1 - MAX_TICKETS :])
        ticket = secrets.token_urlsafe(32)
        self._tickets[ticket] = now + TICKET_SECONDS
        return f"http://127.0.0.1:{port}/#ticket={ticket}"

    def log_in(self, ticket: str, port: int) -> tuple[str, str]:
        """Trade a ticket for a login, once: the secrets of its cookie and its page."""
        found = next((one for one in self._tickets if hmac.compare_digest(one.encode(), ticket.encode())), "")
        until = self._tickets.pop(found, 0.0)
        if until <= self._clock():
            raise BadTicketError("This link was used or has expired.", action="Run `ollm web` for a new one.")
        cookie, page = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        login = WebLogin(
            cookie=hash_key(cookie),
            page=hash_key(page),
            port=port,
            expires=self._clock() + LOGIN_SECONDS,
        )
        live = [one for one in self._logins if one.expires > self._clock()]
        self._logins = (*live[1 - MAX_LOGINS :], login)
        self.save(port)
        return cookie, page

    def log_out(self, port: int, headers: dict[str, str]) -> None:
        self._logins = tuple(one for one in self._logins if not self._fits(one, port, headers))
        self.save(port)

    def is_logged_in(self, port: int, headers: dict[str, str]) -> bool:
        """True if a request has the cookie and the token of the same login at this port."""
        return any(self._fits(one, port, headers) for one in self._logins)

    def _fits(self, login: WebLogin, port: int, headers: dict[str, str]) -> bool:
        cookie = hash_key(read_cookie(headers.get("cookie", ""), get_cookie_name(port)))
        page = hash_key(headers.get(PAGE_TOKEN_HEADER, ""))
        same = hmac.compare_digest(login.cookie, cookie) & hmac.compare_digest(login.page, page)
        return same and login.port == port and login.expires > self._clock()

    def save(self, port: int | None) -> None:
        write_state(self._file, WebState(port=port, logins=self._logins, devices=self.devices.all))


def get_cookie_name(port: int) -> str:
    """Name the cookie after its port: browsers send cookies to every port of a host."""
    return f"ollm-{port}"


def read_cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def read_state(file: Path) -> WebState:
    """Read the saved state; empty if it cannot be read."""
    return read_json(file, WebState, WebState())


def write_state(file: Path, state: WebState) -> None:
    """Write the state to a file that only this user can read."""
    replace_file(file, msgspec.json.encode(state), mode=0o600)


MAX_BODY_BYTES = 1024 * 1024
MAX_DRAIN_SECONDS = 2.0
MAX_DRAINED_BYTES = 16 * MAX_BODY_BYTES
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
METHODS_WITH_BODY = ("POST", "PUT", "PATCH")
LOGIN_PATH, PAIR_PATH, PAGE_FILES = "/web/login", "/web/pair", "/web/files/"
Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Guard:
    """Pass valid requests on, each with the paired device it came from. `closing` tells if the daemon is shutting
    down."""

    def __init__(self, application: Application, token: str, web: WebAccess, closing: Callable[[], bool]) -> None:
        self._application = application
        self._token = token
        self._web = web
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (problem := self._find_problem(scope)) is not None:
            await drain(receive)
            await send_problem(send, problem)
        else:
            with contextlib.suppress(DeniedError):
                await self._application(scope, self._end_revoked(scope, receive), self._end_revoked(scope, send))

    def _end_revoked(self, scope: Scope, pass_on: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        """Take nothing more from a device that is revoked, not even the rest of a request, and send it nothing more."""

        def require_paired() -> None:
            device: Device | None = scope.get("device")
            if device and not self._web.devices.holds(device):
                raise DeniedError(f"{device.name} was revoked.")

        async def pass_while_paired(*message: MutableMapping[str, Any]) -> T:
            require_paired()
            found = await pass_on(*message)
            require_paired()  # The device may be revoked while the rest of its request is on the way.
            return found

        return pass_while_paired if scope.get("device") else pass_on

    def _find_problem(self, scope: Scope) -> Problem | None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        own = find_own_origin(scope, headers, self._web.devices.public)
        if own and own == self._web.devices.public and (key := read_cookie(headers.get("cookie", ""), DEVICE_COOKIE)):
            scope["device"] = self._web.devices.find(key, find_address(scope, headers))
        return (
            self._check_framing(scope)
            or self._check_origin(scope, headers, own)
            or self._check_token(scope, headers, own)
            or self._check_closing()
            or self._check_content_type(scope["method"], headers)
            or self._check_length(headers)
        )

    def _check_framing(self, scope: Scope) -> Problem | None:
        """Refuse two lengths: a proxy could read the request differently."""
        lengths = [name for name, _ in scope["headers"] if name.lower() in (b"content-length", b"transfer-encoding")]
        return make_problem(400, "The request gives its length twice.") if len(lengths) > 1 else None

    def _check_origin(self, scope: Scope, headers: dict[str, str], own: str | None) -> Problem | None:
        # A page without a key reaches the application and is told to pair.
        paired = own and own == self._web.devices.public
        trusted = headers.get("origin", "").lower() == own and (paired or self._is_page(scope, headers, own))
        foreign = "origin" in headers and not trusted
        if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return make_problem(403, "Requests from web pages are not allowed.")
        if own is None:
            return make_problem(
                403,
                "The Host header must name this machine and the daemon's port.",
                "To reach the page by another name, set daemon.publicUrl and start the daemon again.",
            )
        return None

    def _is_page(self, scope: Scope, headers: dict[str, str], own: str | None) -> bool:
        """True for a page that is logged in, for the files of the page, which hold no data, and for a login."""
        port, method, path, paired = get_port(scope), scope["method"], scope["path"], own == self._web.devices.public
        is_file = method in ("GET", "HEAD") and (path == "/" or path.startswith(PAGE_FILES))
        is_login = method == "POST" and path == (PAIR_PATH if paired else LOGIN_PATH) and "origin" in headers
        is_known = scope.get("device") or (not paired and self._web.is_logged_in(port or 0, headers))
        return port is not None and bool(is_file or is_login or is_known)

    def _check_token(self, scope: Scope, headers: dict[str, str], own: str | None) -> Problem | None:
        device: Device | None = scope.get("device")
        if device and device.read_only and not {scope["method"], scope["path"]} & READING:
            return make_problem(403, f"{device.name} may only read.", "Pair it again without --read-only.")
        if get_port(scope) is None or self._is_page(scope, headers, own):
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if (
            # Other machines need the key of a device; the token does not count for them.
            own != self._web.devices.public
            and scheme.lower() == "bearer"
            and hmac.compare_digest(given.encode(), self._token.encode())
        ):
            return None
        return make_problem(401, "The token is missing or wrong.", "`ollm daemon status` shows the token file.")

    def _check_closing(self) -> Problem | None:
        return make_problem(503, "The daemon is shutting down.") if self._closing() else None

    def _check_content_type(self, method: str, headers: dict[str, str]) -> Problem | None:
        given = headers.get("content-type", "").partition(";")[0].strip().lower()
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if method in METHODS_WITH_BODY and has_body and given != "application/json":
            return make_problem(415, "The body must be application/json.")
        return None

    def _check_length(self, headers: dict[str, str]) -> Problem | None:
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length) <= MAX_BODY_BYTES:
            return None
        return make_problem(413, "The body may be at most 1 MiB.")


async def drain(receive: Receive) -> None:
    """Read the rest of the request, within limits: an early answer is lost with the connection."""
    left = MAX_DRAINED_BYTES
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MAX_DRAIN_SECONDS):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return


def get_port(scope: Mapping[str, Any]) -> int | None:
    """The TCP port a request came in by; None on the Unix socket."""
    server = scope.get("server")
    return server[1] if server else None


def belongs_to_user(scope: Mapping[str, Any]) -> bool:
    """False if a loopback connection is another user's. Systems without /proc do not say."""
    ends = [f":{(scope.get(end) or ('', 0))[1]:04X}" for end in ("client", "server")]
    lines = [line.split() for name in ("tcp", "tcp6") for line in read_lines(Path("/proc/net", name))]
    users = {int(line[7]) for line in lines if line[1].endswith(ends[0]) and line[2].endswith(ends[1])}
    return not lines or (bool(users) and users <= {os.getuid(), 0})


def read_lines(file: Path) -> list[str]:
    """Read the lines of a file; none if it cannot be read."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def find_own_origin(scope: Scope, headers: Mapping[str, str], public: str) -> str | None:
    """Find the origin of our page at the host that a request names; "" on the Unix socket, None for a foreign host."""
    port, host = get_port(scope), headers.get("host", "").lower()
    if port is None:
        return ""
    if scope.get("scheme") != "https" and host in {f"{name}:{port}" for name in LOOPBACK}:
        return f"http://{host}"
    return public if public and host == public.partition("://")[2] else None


def parse_origin(url: str | None) -> str:
    """Return the origin of an address as browsers send it: in small letters, without the default port."""
    scheme, _, rest = (url or "").lower().rstrip("/").partition("://")
    return f"{scheme}://{rest.removesuffix({'https': ':443', 'http': ':80'}[scheme])}" if rest else ""


async def send_problem(send: Send, found: Problem) -> None:
    body = msgspec.json.encode(found)
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    if found.status == 400:
        headers.append((b"connection", b"close"))  # It is unknown where the next request begins.
    if found.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": found.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
