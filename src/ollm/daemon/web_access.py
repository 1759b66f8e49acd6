"""Who may use the pages: one-time tickets, made over the Unix socket alone, and the logins they were traded for.

A login is two secrets: a cookie, which the browser sends to every port of this machine, and a token that only the page
holds. Neither is kept, only what can be compared with them; after a crash the pages that were open stay logged in.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

import msgspec

from ollm.domain.errors import OllmError
from ollm.domain.struct import Data

TICKET_SECONDS = 60
LOGIN_SECONDS = 7 * 24 * 3600
MAX_TICKETS = 20
MAX_LOGINS = 50
PAGE_TOKEN_HEADER = "x-ollm-page"  # noqa: S105 - the header, not a secret


class BadTicketError(OllmError):
    """A ticket that was used, is too old or never was one."""


class WebLogin(Data, frozen=True):
    """A page that is logged in: hashes of its two secrets, at which port, and until when."""

    cookie: str
    page: str
    port: int
    expires: float


class WebState(Data, frozen=True):
    """What outlives a daemon that was killed."""

    port: int | None = None
    logins: tuple[WebLogin, ...] = ()


class NewLogin(Data, frozen=True):
    """The secrets of a login, known only here and to the page."""

    cookie: str
    page_token: str


class WebAccess:
    """One per daemon. `open_port` opens the loopback port when it is not open yet and gives its number."""

    def __init__(
        self, file: Path, open_port: Callable[[], Awaitable[int]], clock: Callable[[], float] = time.time
    ) -> None:
        self._file = file
        self._open_port = open_port
        self._clock = clock
        self._tickets: dict[str, float] = {}
        self._logins = read_state(file).logins

    async def create_link(self) -> str:
        """An address that logs in whoever opens it first, within a minute. What follows # is never sent."""
        port = await self._open_port()
        now = self._clock()
        live = {found: until for found, until in self._tickets.items() if until > now}
        self._tickets = dict(list(live.items())[1 - MAX_TICKETS :])
        ticket = secrets.token_urlsafe(32)
        self._tickets[ticket] = now + TICKET_SECONDS
        return f"http://127.0.0.1:{port}/#ticket={ticket}"

    def log_in(self, ticket: str, port: int) -> NewLogin:
        """Trade a ticket, once."""
        found = next((one for one in self._tickets if hmac.compare_digest(one.encode(), ticket.encode())), "")
        until = self._tickets.pop(found, 0.0)
        if until <= self._clock():
            raise BadTicketError("This link was used or has expired.", action="Run `ollm web` for a new one.")
        made = NewLogin(cookie=secrets.token_urlsafe(32), page_token=secrets.token_urlsafe(32))
        login = WebLogin(
            cookie=_hash(made.cookie), page=_hash(made.page_token), port=port, expires=self._clock() + LOGIN_SECONDS
        )
        live = [one for one in self._logins if one.expires > self._clock()]
        self._logins = (*live[1 - MAX_LOGINS :], login)
        self.save(port)
        return made

    def log_out(self, port: int, headers: dict[str, str]) -> None:
        self._logins = tuple(one for one in self._logins if not self._fits(one, port, headers))
        self.save(port)

    def is_logged_in(self, port: int, headers: dict[str, str]) -> bool:
        """Whether a request has the cookie and the token of one and the same login at this port."""
        return any(self._fits(one, port, headers) for one in self._logins)

    def _fits(self, login: WebLogin, port: int, headers: dict[str, str]) -> bool:
        cookie = _hash(read_cookie(headers.get("cookie", ""), get_cookie_name(port)))
        page = _hash(headers.get(PAGE_TOKEN_HEADER, ""))
        same = hmac.compare_digest(login.cookie, cookie) & hmac.compare_digest(login.page, page)
        return same and login.port == port and login.expires > self._clock()

    def save(self, port: int | None) -> None:
        write_state(self._file, WebState(port=port, logins=self._logins))


def get_cookie_name(port: int) -> str:
    """Cookies reach every port of a host, so ours says which it is for."""
    return f"ollm-{port}"


def read_cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_state(file: Path) -> WebState:
    """What was left; nothing where it cannot be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=WebState)
    except (OSError, msgspec.MsgspecError):
        return WebState()


def write_state(file: Path, state: WebState) -> None:
    """In a file that only this user can read."""
    temporary = file.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(msgspec.json.encode(state))
    temporary.replace(file)
