"""HTTP for the web tools (T6): every connection goes to an address that was checked, every answer has its limits."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urljoin

import httpcore2
import msgspec

from ollm.config.settings import WebFetchSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.tools.web.address import Address, Target, refuse_private, target_of

REDIRECTS = 5
HEADER_BYTES = 64 * 1024
_MOVED = (301, 302, 303, 307, 308)
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class Answer(Data, frozen=True):
    """A whole answer. Header names are lower case; `url` is where the redirects led."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    redirected: bool = False

    @property
    def reason(self) -> str:
        from http import HTTPStatus

        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)


class CheckedConnections(httpcore2.AsyncNetworkBackend):
    """Resolves a name once, refuses it if any answer is not public, and connects to an address it has checked."""

    def __init__(self, target: Target, allowed: tuple[str, ...]) -> None:
        self._target = target
        self._allowed = allowed
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        addresses = await _resolved(self._target, host, port)
        refuse_private(self._target, addresses, self._allowed)
        failure: Exception | None = None
        for address in addresses[:4]:
            try:
                return await self._inner.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError("no address")


async def _resolved(target: Target, host: str, port: int) -> list[Address]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = f"the name {host} was not found ({error})"
        raise ToolFailure("NetworkError", f"{target.url} could not be fetched: {why}.") from error
    return [ipaddress.ip_address(str(answer[4][0]).partition("%")[0]) for answer in dict.fromkeys(found)]


async def fetch(
    url: str,
    settings: WebFetchSettings,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> Answer:
    """The answer after redirects, within the limits of the settings.

    Raises ToolFailure: InvalidUrl, AddressRefused, Timeout, NetworkError, TooLarge, HttpError (odd answers only;
    the caller judges the status).
    """
    began = time.monotonic()
    try:
        async with asyncio.timeout(settings.timeout):
            return await _followed(url, settings, _Sent(method=method, headers=headers or {}, content=content))
    except (TimeoutError, httpcore2.TimeoutException) as error:
        spent = time.monotonic() - began
        raise ToolFailure("Timeout", f"{url} was not there within {spent:.1f} seconds.") from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
        raise ToolFailure("NetworkError", f"{url} could not be fetched: {_said(error)}.") from error


class _Sent(Data, frozen=True):
    method: str
    headers: Mapping[str, str]
    content: bytes | None


async def _followed(url: str, settings: WebFetchSettings, sent: _Sent) -> Answer:
    target = target_of(url)
    for hop in range(REDIRECTS + 1):
        answer = await _asked(target, settings, sent)
        location = answer.headers.get("location")
        if answer.status not in _MOVED or not location:
            return msgspec.structs.replace(answer, redirected=hop > 0)
        following = target_of(urljoin(target.url, location))
        if following.place != target.place:  # keys and what was sent are for the first place alone
            sent = _Sent(method="GET", headers={}, content=None)
        target = following
    raise ToolFailure("HttpError", f"{url} redirects more than {REDIRECTS} times.")


async def _asked(target: Target, settings: WebFetchSettings, sent: _Sent) -> Answer:
    if literal := target.literal:
        refuse_private(target, [literal], settings.allow_private)
    backend = CheckedConnections(target, settings.allow_private)
    headers = {"User-Agent": "ollm", "Accept-Encoding": "gzip, deflate", "Accept": "*/*", **sent.headers}
    async with httpcore2.AsyncConnectionPool(network_backend=backend, ssl_context=_trust(target)) as pool:
        async with pool.stream(sent.method, _url(target), headers=list(headers.items()), content=sent.content) as reply:
            received = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reply.headers}
            if sum(len(name) + len(value) for name, value in reply.headers) > HEADER_BYTES:
                raise ToolFailure(
                    "TooLarge", f"{target.url} answered with more than {HEADER_BYTES:,} bytes of headers."
                )
            moved = reply.status in _MOVED and "location" in received
            body = b"" if moved else await _body(reply, received, target, settings.max_bytes)
            return Answer(url=target.url, status=reply.status, headers=received, body=body)


def _trust(target: Target) -> Any:
    return httpcore2.default_ssl_context() if target.scheme == "https" else None


def _url(target: Target) -> httpcore2.URL:
    return httpcore2.URL(
        scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
    )


async def _body(reply: httpcore2.Response, headers: Mapping[str, str], target: Target, limit: int) -> bytes:
    """Decoded as it comes, so that a small answer cannot grow without end."""
    decode = _decoder(headers.get("content-encoding", ""), target)
    body = bytearray()
    async for chunk in reply.aiter_stream():
        for piece in decode(chunk, limit + 1 - len(body)):
            body += piece
            if len(body) > limit:
                raise ToolFailure("TooLarge", f"{target.url} has more than {limit:,} bytes; reading stopped there.")
    return bytes(body)


def _decoder(encoding: str, target: Target) -> Callable[[bytes, int], list[bytes]]:
    """A function from received bytes and the room left to decoded pieces."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return lambda chunk, _room: [chunk]
    if name not in _WBITS:
        raise ToolFailure("HttpError", f"{target.url} came encoded as {name[:40]!r}, which was not asked for.")
    return _Inflating(name, target).pieces


class _Inflating:
    """Unfolds gzip and deflate, never more than there is room for."""

    def __init__(self, name: str, target: Target) -> None:
        self._name = name
        self._target = target
        self._inflate = zlib.decompressobj(_WBITS[name])
        self._bare = name != "deflate"  # some servers send deflate without its wrapper

    def pieces(self, chunk: bytes, room: int) -> list[bytes]:
        try:
            return [self._inflate.decompress(chunk, max(room, 1))]
        except zlib.error as error:
            if self._bare:
                raise ToolFailure("HttpError", f"{self._target.url} came as broken {self._name}: {error}.") from error
            self._bare = True
            self._inflate = zlib.decompressobj(-15)
            return self.pieces(chunk, room)
        finally:
            self._bare = True


def _said(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__
