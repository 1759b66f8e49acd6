"""HTTP for model servers and the daemon: httptools for `http://` and sockets, httpx2 for `https://` and proxies, and
the lines that both stream: `\\n` alone ends one, wherever the chunks were cut.

A connection to a plain server is kept and used again. Redirects are never followed. Leaving a stream early closes its
connection at once, which is how a model server learns that nobody waits for the answer.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from ipaddress import ip_address
from typing import Protocol, TypeVar, cast
from urllib.parse import urlsplit

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from ollm.domain.clock import monotonic
from ollm.domain.struct import Data

T = TypeVar("T")
MAX_LINE_BYTES = 32 * 1024 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024
MAX_QUEUED_BYTES = 256 * 1024  # The server has to wait while so much of an answer is unread.
MAX_IDLE_CONNECTIONS = 4
DRAIN_SECONDS = 0.1


class Address(Data, frozen=True):
    """Address of a server. `endpoints` are tried in order: host and port, or the path of a Unix socket."""

    secure: bool
    authority: str
    prefix: str
    endpoints: tuple[tuple[str, int] | str, ...]

    @property
    def local(self) -> bool:
        """True for a server on this machine, which needs no proxy."""
        return all(isinstance(endpoint, str) or _is_loopback(endpoint[0]) for endpoint in self.endpoints)

    @property
    def url(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.prefix}"


def parse_address(url: str, socket_path: str | None = None) -> Address:
    """Parse the base URL of a server. Raises ValueError with the reason."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{parts.scheme}:// is not http:// or https://")
    if not parts.hostname or any(ord(c) < 33 for c in url):
        raise ValueError("it has no host")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("it must not contain a user name, query or fragment")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    # For `localhost` both loopback addresses are tried, without a DNS lookup.
    hosts = ("127.0.0.1", "::1") if parts.hostname == "localhost" else (parts.hostname,)
    return Address(
        secure=parts.scheme == "https",
        authority=host if parts.port is None else f"{host}:{port}",
        prefix=parts.path.rstrip("/"),
        endpoints=(socket_path,) if socket_path else tuple((one, port) for one in hosts),
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class HttpFailure(Exception):  # noqa: N818 - an outcome the caller translates
    """Base class of HTTP failures. If no byte has arrived (`started` is False), the request may be repeated."""

    started = False


class ConnectFailed(HttpFailure):
    """Connection refused, unknown host name, or timeout while connecting."""


class CertificateNotTrusted(ConnectFailed):
    """A server certificate that is not trusted or does not match the host name."""


class FirstByteTimeout(HttpFailure):
    """Timeout after connecting: no byte of an answer arrived."""


class StreamStalled(HttpFailure):
    """Timeout in the middle of an answer: no more data arrived."""

    started = True


class ConnectionBroken(HttpFailure):
    """A connection closed before the answer was complete."""

    def __init__(self, message: str, *, started: bool) -> None:
        super().__init__(message)
        self.started = started


class BadResponse(HttpFailure):
    """A response that is not HTTP."""

    started = True


class TooLarge(HttpFailure):
    """A body or a line that exceeds its limit."""

    started = True


class Timeouts(Data, frozen=True):
    """Timeouts in seconds: to connect, to the first activity, and between activities after that."""

    connect: float = 5
    first: float = 600
    stall: float = 120


class SilenceTimer:
    """Timer for the time spent waiting for the server, not the time the consumer of the stream takes."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._waited = 0.0
        self._begun = False

    def reset(self, *, begun: bool = True) -> None:
        """Restart after a sign of activity. With `begun=False` the limit for the first byte still applies."""
        self._begun = self._begun or begun
        self._waited = 0.0

    async def limit_wait(self, action: Awaitable[T]) -> T:
        limit = self._timeouts.stall if self._begun else self._timeouts.first
        start = monotonic()
        try:
            async with asyncio.timeout(max(0.0, limit - self._waited)):
                return await action
        except TimeoutError as error:
            if self._begun:
                raise StreamStalled(f"no data for {limit:g} s") from error
            raise FirstByteTimeout(f"no answer within {limit:g} s") from error
        finally:
            self._waited += monotonic() - start


class Response(msgspec.Struct, frozen=True):
    """An answer whose body is still arriving. `iter_chunks` yields it as received; chunk boundaries have no meaning."""

    status: int
    headers: Mapping[str, str]
    timer: SilenceTimer
    iter_chunks: Callable[[], AsyncGenerator[bytes, None]]


class FullResponse(Data, frozen=True):
    """An answer read to its end; header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


async def read_full_response(response: Response, limit: int = MAX_BODY_BYTES) -> FullResponse:
    body = bytearray()
    async for chunk in response.iter_chunks():
        response.timer.reset()
        body += chunk
        if len(body) > limit:
            raise TooLarge(f"the answer is longer than {limit} bytes")
    return FullResponse(status=response.status, headers=dict(response.headers), body=bytes(body))


class Client(Protocol):
    """Client of one server. Paths are joined to the path of the base URL."""

    url: str

    def stream(
        self, method: str, path: str, body: bytes = b"", *, timeouts: Timeouts | None = None
    ) -> AbstractAsyncContextManager[Response]: ...

    async def fetch(
        self, method: str, path: str, body: bytes = b"", *, timeouts: Timeouts | None = None
    ) -> FullResponse:
        async with self.stream(method, path, body, timeouts=timeouts) as response:
            return await read_full_response(response)

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Send these headers with every request, in place of those of the same name."""
        ...

    async def close(self) -> None: ...


def open_client(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeouts: Timeouts | None = None,
    socket_path: str | None = None,
    proxied: bool = False,
) -> Client:
    """Make a client for this base URL, without connecting. Raises ValueError for a bad URL. `proxied` means that the
    environment names a proxy for `http://`; a server on this machine is reached without it."""
    address = parse_address(url, socket_path)
    if address.secure or (proxied and not address.local):
        from ollm.system.http.secure import SecureClient

        return SecureClient(address, dict(headers or {}), timeouts or Timeouts())
    return PlainClient(address, dict(headers or {}), timeouts or Timeouts())


class Answer(asyncio.Protocol):
    """One answer, parsed as it arrives on a connection. httptools calls the `on_` methods; trailers are ignored."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self._chunks: deque[bytes] = deque()
        self._queued_bytes = 0
        self._unfinished_bytes = 0  # Size of a head or trailer that is not complete.
        self._received = self._head_read = self._complete = False
        self._keeps_alive = True
        self._failure: HttpFailure | None = None
        self._news = asyncio.Event()
        self._parser = HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received = True
        self._unfinished_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._fail(BadResponse(f"not an HTTP response: {error}"))
        if self._unfinished_bytes > MAX_HEADER_BYTES:
            self._fail(BadResponse(f"not an HTTP response: a header of more than {MAX_HEADER_BYTES} bytes"))
        if self._queued_bytes > MAX_QUEUED_BYTES:
            self.transport.pause_reading()
        self._news.set()

    def eof_received(self) -> None:
        self.connection_lost(None)

    def connection_lost(self, error: Exception | None) -> None:
        """Complete an answer that ends with its connection."""
        if error is None and self._head_read and not {"content-length", "transfer-encoding"} & self.headers.keys():
            self._complete = True
        how = "mid-answer" if self._received else "without an answer"
        told = getattr(error, "strerror", None) or f"the server closed the connection {how}"
        self._fail(ConnectionBroken(told, started=self._received))

    def _fail(self, failure: HttpFailure) -> None:
        """End the answer, unless it is complete. No other one can follow on this connection."""
        self._keeps_alive = False
        if not self._complete:
            self._failure = self._failure or failure
        self._news.set()

    def on_message_begin(self) -> None:
        self._keeps_alive = self._keeps_alive and not self._complete  # Nobody requested a second answer.

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._head_read:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self.status < 200:
            self.headers.clear()
        else:
            self._head_read = True

    def on_body(self, data: bytes) -> None:
        self._unfinished_bytes = 0
        self._queued_bytes += len(data)
        self._chunks.append(data)

    def on_message_complete(self) -> None:
        self._complete = self._head_read
        self._keeps_alive = self._keeps_alive and self._parser.should_keep_alive()

    @property
    def status(self) -> int:
        return self._parser.get_status_code()

    @property
    def allows_another(self) -> bool:
        """True if the exchange is complete on both sides and another may follow on the connection."""
        return self._complete and self._keeps_alive

    async def read_head(self, timer: SilenceTimer) -> None:
        while not self._head_read:
            await self._wait_for_news(timer)

    async def iter_chunks(self, timer: SilenceTimer) -> AsyncGenerator[bytes, None]:
        """Iterate over the body as received. A second call continues where the first one stopped."""
        while self._chunks or not self._complete:
            if self._chunks:
                chunk = self._chunks.popleft()
                self._queued_bytes -= len(chunk)
                yield chunk
            else:
                await self._wait_for_news(timer)

    async def _wait_for_news(self, timer: SilenceTimer) -> None:
        if self._failure is not None:
            raise self._failure
        self._news.clear()
        self.transport.resume_reading()
        await timer.limit_wait(self._news.wait())


class PlainClient(Client):
    """Client for `http://` and Unix sockets."""

    def __init__(self, address: Address, headers: dict[str, str], timeouts: Timeouts) -> None:
        self.url = address.url
        self._address = address
        self._headers = {"Host": address.authority, "User-Agent": "ollm", "Accept": "*/*"} | headers
        self._timeouts = timeouts
        self._idle: list[Answer] = []  # The last answers of connections that can be used again.

    def add_headers(self, headers: Mapping[str, str]) -> None:
        names = {name.lower() for name in headers}
        self._headers = {key: text for key, text in self._headers.items() if key.lower() not in names} | dict(headers)

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: bytes = b"", *, timeouts: Timeouts | None = None
    ) -> AsyncIterator[Response]:
        timer = SilenceTimer(timeouts or self._timeouts)
        answer = await self._send(self._render_request(method, path, body), timer)
        try:
            yield Response(answer.status, answer.headers, timer, lambda: answer.iter_chunks(timer))
            await self._keep_connection(answer, timer)
        except BaseException:
            answer.transport.abort()
            raise

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for answer in idle:
            answer.transport.abort()
        await asyncio.sleep(0)  # The connections are closed in the next round of the loop.

    def _render_request(self, method: str, path: str, body: bytes) -> bytes:
        headers = self._headers | {"Content-Length": str(len(body))}
        if body:
            headers["Content-Type"] = "application/json"
        lines = [f"{method} {self._address.prefix}{path} HTTP/1.1", *(f"{key}: {headers[key]}" for key in headers)]
        if not {"\r", "\n", "\0"}.isdisjoint("".join(lines)):
            raise ConnectFailed("a header or path with a line break cannot be sent")
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body

    async def _send(self, request: bytes, timer: SilenceTimer) -> Answer:
        """Send over an idle connection; if the server has closed it, over the next one or a new one."""
        while self._idle:
            last, answer = self._idle.pop(), Answer()
            if not last.allows_another:
                last.transport.abort()
                continue
            answer.connection_made(last.transport)
            last.transport.set_protocol(answer)
            try:
                return await _exchange(answer, request, timer)
            except ConnectionBroken as failure:
                if failure.started:
                    raise
        return await _exchange(await _connect(self._address, self._timeouts.connect), request, timer)

    async def _keep_connection(self, answer: Answer, timer: SilenceTimer) -> None:
        """Drain the rest of the body for a moment and keep the connection for reuse; otherwise abort it."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                async for _ in answer.iter_chunks(timer):
                    pass
        except (TimeoutError, HttpFailure):
            answer.transport.abort()
            return
        if len(self._idle) < MAX_IDLE_CONNECTIONS and answer.allows_another:
            self._idle.append(answer)
        else:
            answer.transport.abort()


async def _exchange(answer: Answer, request: bytes, timer: SilenceTimer) -> Answer:
    try:
        answer.transport.write(request)
        await answer.read_head(timer)
    except BaseException:
        answer.transport.abort()
        raise
    return answer


async def _connect(address: Address, timeout: float) -> Answer:
    loop, reason = asyncio.get_running_loop(), "connection refused"
    try:
        async with asyncio.timeout(timeout):
            for endpoint in address.endpoints:
                try:
                    if isinstance(endpoint, str):
                        return (await loop.create_unix_connection(Answer, endpoint))[1]
                    return (await loop.create_connection(Answer, *endpoint))[1]
                except OSError as error:
                    reason = _explain_error(error)
    except TimeoutError as error:
        raise ConnectFailed(f"no connection within {timeout:g} s") from error
    raise ConnectFailed(reason)


def _explain_error(error: OSError) -> str:
    """Return the system's message; failed name lookups use negative numbers and separate messages."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


async def iter_lines(chunks: AsyncGenerator[bytes, None], limit: int = MAX_LINE_BYTES) -> AsyncGenerator[bytes, None]:
    """Iterate over lines without their ending (LF or CRLF), including a last line without one."""
    pending = bytearray()
    async with aclosing(chunks):
        async for chunk in chunks:
            head, *others = chunk.split(b"\n")
            pending += head
            if len(pending) > limit or (others and len(chunk) > limit):
                raise TooLarge(f"a line is longer than {limit} bytes")
            for following in others:
                yield bytes(pending).removesuffix(b"\r")
                pending = bytearray(following)
    if pending:
        yield bytes(pending).removesuffix(b"\r")


async def iter_server_events(
    chunks: AsyncGenerator[bytes, None], limit: int = MAX_LINE_BYTES
) -> AsyncGenerator[str, None]:
    """Iterate over the data of the events in a `text/event-stream`. The last one needs no empty line."""
    data: list[str] = []
    size = 0
    async with aclosing(iter_lines(chunks, limit)) as found:
        async for raw in found:
            if not raw:
                if data:
                    yield "\n".join(data)
                data, size = [], 0
                continue
            field, _, value = raw.decode("utf-8", "replace").removeprefix("\ufeff").partition(":")
            if field == "data":
                data.append(value.removeprefix(" "))
                size += len(raw)
                if size > limit:
                    raise TooLarge(f"an event is longer than {limit} bytes")
    if data:
        yield "\n".join(data)
