"""HTTP for the web tools (T6): every connection goes to a checked address, every answer is limited."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
import zlib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urljoin

import httpcore2

from ollm.config.settings import WebFetchSettings
from ollm.domain.errors import ToolFailure
from ollm.domain.struct import Data
from ollm.tools.web.address import Address, WebTarget, parse_url, refuse_private

MAX_REDIRECTS = 5
MAX_HEADER_BYTES = 64 * 1024
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
GZIP_FORMAT = 31  # The number is zlib's.


class WebResponse(Data, frozen=True):
    """A whole answer. Header names are lower case; `url` is the address after redirects."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def reason(self) -> str:
        from http.client import responses

        return f"{self.status} {responses.get(self.status, '')}".rstrip()


class CheckedConnections(httpcore2.AsyncNetworkBackend):
    """Connections to checked addresses: a name is resolved once and refused if any address is not public."""

    def __init__(self, target: WebTarget, allowed: tuple[str, ...]) -> None:
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
        addresses = await _resolve_host(self._target, host, port)
        refuse_private(self._target, addresses, self._allowed)
        failure: Exception | None = None
        for address in addresses[:4]:
            try:
                return await self._inner.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError("no address")


async def _resolve_host(target: WebTarget, host: str, port: int) -> list[Address]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = f"the name {host} was not found ({error})"
        raise ToolFailure("NetworkError", f"{target.url} could not be fetched: {why}.") from error
    return [ipaddress.ip_address(str(answer[4][0]).partition("%")[0]) for answer in dict.fromkeys(found)]


async def fetch_url(
    url: str,
    settings: WebFetchSettings,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    same_host: bool = False,
) -> WebResponse:
    """Fetch a URL with redirects, or post `content` to it, within the limits of the settings. With `same_host` a
    redirect to another host is reported and not followed: that needs a separate call, subject to policy.

    Raises ToolFailure: InvalidUrl, AddressRefused, Timeout, NetworkError, TooLarge, HttpError (malformed answers only;
    the caller checks the status).
    """
    began = time.monotonic()
    try:
        async with asyncio.timeout(settings.timeout):
            return await _follow_redirects(url, settings, headers or {}, content, same_host=same_host)
    except (TimeoutError, httpcore2.TimeoutException) as error:
        spent = time.monotonic() - began
        raise ToolFailure("Timeout", f"{url} timed out after {spent:.1f} seconds.") from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
        why = str(error).rstrip(".") or type(error).__name__
        raise ToolFailure("NetworkError", f"{url} could not be fetched: {why}.") from error


async def _follow_redirects(
    url: str, settings: WebFetchSettings, headers: Mapping[str, str], content: bytes | None, *, same_host: bool
) -> WebResponse:
    target = parse_url(url)
    for _ in range(MAX_REDIRECTS + 1):
        answer = await _send_request(target, settings, headers, content)
        location = answer.headers.get("location")
        if answer.status not in _REDIRECT_STATUSES or not location:
            return answer
        following = parse_url(urljoin(target.url, location))
        if following.host_and_port != target.host_and_port:  # Keys and the body are for the first host alone.
            if same_host and following.host != target.host:
                reason = f"{url} redirects to {following.url}, another host; ask for that address if it is wanted."
                if literal := following.literal_address:
                    refuse_private(following, [literal], settings.allow_private)
                raise ToolFailure("HttpError", reason)
            headers, content = {}, None
        target = following
    raise ToolFailure("HttpError", f"{url} redirects more than {MAX_REDIRECTS} times.")


async def _send_request(
    target: WebTarget, settings: WebFetchSettings, headers: Mapping[str, str], content: bytes | None
) -> WebResponse:
    backend = CheckedConnections(target, settings.allow_private)
    headers = {"User-Agent": "ollm", "Accept-Encoding": "gzip", "Accept": "*/*", **headers}
    secure = httpcore2.default_ssl_context() if target.scheme == "https" else None
    url = httpcore2.URL(
        scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
    )
    async with (
        httpcore2.AsyncConnectionPool(network_backend=backend, ssl_context=secure) as pool,
        pool.stream("POST" if content else "GET", url, headers=list(headers.items()), content=content) as reply,
    ):
        received = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reply.headers}
        if sum(len(name) + len(value) for name, value in reply.headers) > MAX_HEADER_BYTES:
            raise ToolFailure(
                "TooLarge", f"{target.url} answered with more than {MAX_HEADER_BYTES:,} bytes of headers."
            )
        moved = reply.status in _REDIRECT_STATUSES and "location" in received
        body = b"" if moved else await _read_body(reply, received, target, settings.max_bytes)
        return WebResponse(url=target.url, status=reply.status, headers=received, body=body)


async def _read_body(reply: httpcore2.Response, headers: Mapping[str, str], target: WebTarget, limit: int) -> bytes:
    """Decode the body as it arrives, so that a small answer cannot grow without end."""
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise ToolFailure("HttpError", f"{target.url} came encoded as {encoding[:40]!r}, which was not requested.")
    unpack = zlib.decompressobj(GZIP_FORMAT).decompress if encoding.endswith("gzip") else None
    body = bytearray()
    async for chunk in reply.aiter_stream():
        try:
            body += unpack(chunk, limit + 1 - len(body)) if unpack else chunk
        except zlib.error as error:
            raise ToolFailure("HttpError", f"{target.url} came as broken gzip: {error}.") from error
        if len(body) > limit:
            raise ToolFailure("TooLarge", f"{target.url} has more than {limit:,} bytes; reading stopped there.")
    return bytes(body)
