"""Where a server is: a base URL taken apart."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from ollm.domain.struct import Data


class Address(Data, frozen=True):
    """`places` are tried in order: host and port, or the path of a Unix socket."""

    secure: bool
    authority: str
    prefix: str
    places: tuple[tuple[str, int] | str, ...]

    @property
    def local(self) -> bool:
        """On this machine: no proxy is asked to reach it."""
        return all(isinstance(place, str) or _is_loopback(place[0]) for place in self.places)

    @property
    def url(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.prefix}"


def parse_address(url: str, socket_path: str | None = None) -> Address:
    """Raises ValueError with the reason when the URL cannot be a server's."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{parts.scheme}:// is not http:// or https://")
    if not parts.hostname or any(ord(c) < 33 for c in url):
        raise ValueError("it has no host")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("it must not contain a user name, query or fragment")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Address(
        secure=parts.scheme == "https",
        authority=host if parts.port is None else f"{host}:{port}",
        prefix=parts.path.rstrip("/"),
        places=(socket_path,) if socket_path else _list_endpoints(parts.hostname, port),
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _list_endpoints(host: str, port: int) -> tuple[tuple[str, int], ...]:
    """`localhost` is known without asking anybody, and the one of its two addresses that listens is taken."""
    if host == "localhost":
        return (("127.0.0.1", port), ("::1", port))
    return ((host, port),)
