"""Tickets and logins of the pages."""

import json
from pathlib import Path

import pytest

from ollm.daemon.auth import (
    MAX_LOGINS,
    MAX_TICKETS,
    TICKET_SECONDS,
    BadTicketError,
    NewLogin,
    WebAccess,
    WebState,
    get_cookie_name,
    read_cookie,
    read_state,
    write_state,
)

PORT = 8181


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def get_port() -> int:
    return PORT


def make_headers(login: NewLogin, port: int = PORT) -> dict[str, str]:
    return {"cookie": f"other=1; {get_cookie_name(port)}={login.cookie}", "x-ollm-page": login.page_token}


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
    assert login.cookie not in file.read_text()
    assert login.page_token not in file.read_text()
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
