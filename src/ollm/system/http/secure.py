"""`https://` and proxies through httpx2, which provides TLS and HTTP/1.1 pooling. Imported only if needed.

Certificates are checked against the system's authorities, or those in the file named by SSL_CERT_FILE. Proxies come
from HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, except for hosts in NO_PROXY.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2

from ollm.system.http import (
    Address,
    BadResponse,
    CertificateNotTrusted,
    Client,
    ConnectFailed,
    ConnectionBroken,
    HttpFailure,
    Response,
    SilenceTimer,
    Timeouts,
)


async def _iter_chunks(response: httpx2.Response, timer: SilenceTimer) -> AsyncGenerator[bytes, None]:
    source = response.aiter_bytes()
    while True:
        try:
            chunk = await timer.limit_wait(anext(source, None))
        except httpx2.RequestError as error:
            raise _make_failure(error, started=True) from error
        if chunk is None:
            return
        yield chunk


class SecureClient(Client):
    """Client of one server, through a proxy if the environment names one and the server is not on this machine."""

    def __init__(self, address: Address, headers: dict[str, str], timeouts: Timeouts) -> None:
        self.url = address.url
        self._timeouts = timeouts
        self._client = httpx2.AsyncClient(
            headers={"User-Agent": "ollm"} | headers,
            timeout=httpx2.Timeout(None, connect=timeouts.connect),
            follow_redirects=False,
            mounts={"all://": None, "http://": None, "https://": None} if address.local else None,
        )

    def add_headers(self, headers: Mapping[str, str]) -> None:
        self._client.headers.update(headers)

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: bytes = b"", *, timeouts: Timeouts | None = None
    ) -> AsyncIterator[Response]:
        timer = SilenceTimer(timeouts or self._timeouts)
        headers = {"Content-Type": "application/json"} if body else {}
        request = self._client.build_request(method, self.url + path, content=body or None, headers=headers)
        try:
            response = await timer.limit_wait(self._client.send(request, stream=True))
        except httpx2.RequestError as error:
            raise _make_failure(error, started=False) from error
        try:
            headers = {name.lower(): value for name, value in response.headers.items()}
            yield Response(response.status_code, headers, timer, lambda: _iter_chunks(response, timer))
        finally:
            await response.aclose()

    async def close(self) -> None:
        await self._client.aclose()


def _make_failure(error: httpx2.RequestError, *, started: bool) -> HttpFailure:
    if refused := _find_certificate_error(error):
        return CertificateNotTrusted(refused.verify_message or str(refused))
    reason = str(error) or type(error).__name__
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError | httpx2.UnsupportedProtocol):
        return ConnectFailed(reason)
    if isinstance(error, httpx2.RemoteProtocolError) and started:
        return ConnectionBroken(reason, started=True)
    if isinstance(error, httpx2.ProtocolError | httpx2.DecodingError):
        return BadResponse(reason)
    return ConnectionBroken(reason, started=started)


def _find_certificate_error(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error
