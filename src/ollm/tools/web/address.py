"""Addresses allowed for web_fetch: public unicast by a list of networks, and places allowed by name."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote, urlsplit

from ollm.domain.errors import ToolFailure
from ollm.domain.lazy import compile_late
from ollm.domain.struct import Data

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# IANA's special-purpose registries, less what is reachable for everybody; 168.63.129.16 is a cloud's metadata service.
_CLOSED_IPV4 = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
)
_OPEN_IPV6 = ("2000::/3",)
_CLOSED_IPV6 = ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
_NAT64 = ("64:ff9b::/96",)
_FORBIDDEN_CHARACTERS = compile_late(r"[\x00-\x20\x7f-\xa0\\\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_NUMERIC = compile_late(r"(?:0x[0-9a-f]*|[0-9]+)", re.IGNORECASE)
_HOST_NAME = compile_late(
    r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*\.?", re.IGNORECASE
)
_PORTS = {"http": 80, "https": 443}


class WebTarget(Data, frozen=True):
    """A parsed address. `host` is ASCII, an IPv6 address without its brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_and_port(self) -> str:
        """host:port, as written in `allowPrivate`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"

    @property
    def literal_address(self) -> Address | None:
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None


def parse_url(url: str) -> WebTarget:
    """Parse a URL. Raises ToolFailure("InvalidUrl") for anything that two programs might read differently."""
    url = url.strip(" ")
    if not url or _FORBIDDEN_CHARACTERS.search(url):
        raise _make_failure(url, "it is empty or contains spaces, control or invisible characters, or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _make_failure(url, str(error)) from error
    if parts.scheme not in _PORTS:
        hint = f"; write https://{url}" if not parts.scheme or "://" not in url else ""
        raise _make_failure(url, f"only http and https are fetched{hint}")
    if "@" in parts.netloc:
        raise _make_failure(url, "it contains a user name or password")
    host = _parse_host(parts.netloc, parts.hostname or "", url)
    if port == 0:
        raise _make_failure(url, "port 0 is invalid")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~-._?") if parts.query else ""
    return WebTarget(scheme=parts.scheme, host=host, port=port or _PORTS[parts.scheme], path=path + query)


def is_public(address: Address) -> bool:
    """Return True if an address is public unicast."""
    if isinstance(address, ipaddress.IPv4Address):
        return not is_within(address, _CLOSED_IPV4)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if is_within(address, _NAT64):
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return is_within(address, _OPEN_IPV6) and not is_within(address, _CLOSED_IPV6)


def is_within(address: Address, networks: tuple[str, ...]) -> bool:
    return any(address in ipaddress.ip_network(network) for network in networks)


def refuse_private(target: WebTarget, addresses: list[Address], allowed: tuple[str, ...]) -> None:
    """Raise ToolFailure("AddressRefused") if any address is not public, unless the place is allowed by name."""
    if target.host_and_port.lower() in {place.lower() for place in allowed}:
        return
    closed = next((address for address in addresses if not is_public(address)), None)
    if closed is not None:
        named = "" if str(closed) == target.host else f" ({target.host} is {closed})"
        raise ToolFailure(
            "AddressRefused",
            f"{target.url} was not fetched: its address is not a public one{named}. "
            f"The user can allow it: tools.webFetch.allowPrivate: [{target.host_and_port}]",
        )


def _parse_host(netloc: str, host: str, url: str) -> str:
    if netloc.startswith("["):
        try:
            return str(ipaddress.IPv6Address("" if "%" in host else host))
        except ValueError as error:
            raise _make_failure(url, "its host is not an IPv6 address") from error
    ascii_host = _encode_ascii(host, url)
    if not _HOST_NAME.fullmatch(ascii_host) or len(ascii_host) > 253:
        raise _make_failure(url, "its host is not a valid name" if ascii_host else "it has no host")
    last = ascii_host.rstrip(".").rpartition(".")[2]
    if _NUMERIC.fullmatch(last):
        try:
            return str(ipaddress.IPv4Address(ascii_host))
        except ValueError as error:
            raise _make_failure(url, "its host is a number but not a plain IPv4 address") from error
    return ascii_host.lower()


def _encode_ascii(host: str, url: str) -> str:
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise _make_failure(url, "its host is not a valid name") from error


def _make_failure(url: str, why: str) -> ToolFailure:
    return ToolFailure("InvalidUrl", f"{url[:200]!r} is not fetched: {why}.")
