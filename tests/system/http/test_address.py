"""Where a server is: a base URL taken apart."""

from __future__ import annotations

import pytest

from ollm.system import http
from ollm.system.http import address
from ollm.system.http.address import parse_address


@pytest.mark.parametrize(
    ("url", "authority", "prefix", "places"),
    [
        ("http://localhost:11434/", "localhost:11434", "", (("127.0.0.1", 11434), ("::1", 11434))),
        ("http://[::1]:8080/v1", "[::1]:8080", "/v1", (("::1", 8080),)),
        ("box.lan", "box.lan", "", (("box.lan", 80),)),
        ("https://host/api/v1/", "host", "/api/v1", (("host", 443),)),
    ],
)
def test_a_base_url_is_taken_apart(url: str, authority: str, prefix: str, places: tuple[object, ...]) -> None:
    found = address.parse_address(url)

    assert (found.authority, found.prefix, found.places) == (authority, prefix, places)


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://a:99999", "http://u:p@h", "http://h/?q=1", "http://a b/"]
)
def test_what_is_no_servers_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        http.open_client(url)


@pytest.mark.parametrize(
    ("url", "secure", "authority", "prefix", "places", "local", "shown"),
    [
        ("http://h", False, "h", "", (("h", 80),), False, "http://h"),
        ("https://h/", True, "h", "", (("h", 443),), False, "https://h"),
        ("h:8080/a/", False, "h:8080", "/a", (("h", 8080),), False, "http://h:8080/a"),
        ("http://localhost:1", False, "localhost:1", "", (("127.0.0.1", 1), ("::1", 1)), True, "http://localhost:1"),
        ("http://[::1]:5", False, "[::1]:5", "", (("::1", 5),), True, "http://[::1]:5"),
        ("http://127.0.0.9", False, "127.0.0.9", "", (("127.0.0.9", 80),), True, "http://127.0.0.9"),
        ("http://10.0.0.1", False, "10.0.0.1", "", (("10.0.0.1", 80),), False, "http://10.0.0.1"),
    ],
)
def test_every_part_of_a_base_url(
    url: str, secure: bool, authority: str, prefix: str, places: tuple, local: bool, shown: str
) -> None:
    found = parse_address(url)

    assert (found.secure, found.authority, found.prefix, found.places) == (secure, authority, prefix, places)
    assert (found.local, found.url) == (local, shown)


def test_a_socket_is_on_this_machine() -> None:
    found = parse_address("http://ollm", "/run/x.sock")

    assert (found.places, found.local) == (("/run/x.sock",), True)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://h", "ftp:// is not http:// or https://"),
        ("http://", "it has no host"),
        ("http://a b", "it has no host"),
        ("http://me@h", "it must not contain a user name, query or fragment"),
        ("http://h?x=1", "it must not contain a user name, query or fragment"),
        ("http://h#x", "it must not contain a user name, query or fragment"),
    ],
)
def test_the_reason_why_it_cannot_be_a_servers(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        parse_address(url)
