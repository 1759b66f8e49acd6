"""HTTP/1.1 for model servers: addresses, timeouts, connections and a client that reuses them."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from ipaddress import ip_address
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from ollm.domain.clock import monotonic
from ollm.domain.struct import Data

T = TypeVar("T")


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
    return Address(
        secure=parts.scheme == "https",
        authority=host if parts.port is None else f"{host}:{port}",
        prefix=parts.path.rstrip("/"),
        endpoints=(socket_path,) if socket_path else _list_endpoints(parts.hostname, port),
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _list_endpoints(host: str, port: int) -> tuple[tuple[str, int], ...]:
    """Return the endpoints of a host: both loopback addresses for `localhost`, without a DNS lookup."""
    if host == "localhost":
        return (("127.0.0.1", port), ("::1", port))
    return ((host, port),)


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
            raise self._make_failure(limit) from error
        finally:
            self._waited += monotonic() - start

    def _make_failure(self, limit: float) -> HttpFailure:
        return (
            StreamStalled(f"no data for {limit:g} s")
            if self._begun
            else FirstByteTimeout(f"no answer within {limit:g} s")
        )


MAX_HEADER_BYTES = 64 * 1024
READ_SIZE = 64 * 1024


class AnswerReader:
    """Parser of one answer. httptools calls the `on_` methods; trailers are ignored."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.chunks: deque[bytes] = deque()
        self.head_read = self.complete = False
        self.keeps_alive = True
        self._waiting_bytes = 0  # Size of an unfinished head or trailer.
        self._parser = HttpResponseParser(self)

    @property
    def status(self) -> int:
        return self._parser.get_status_code()

    def on_message_begin(self) -> None:
        self.keeps_alive = self.keeps_alive and not self.complete  # Nobody requested a second answer.

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.head_read:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self.status < 200:
            self.headers.clear()
        else:
            self.head_read = True

    def on_body(self, data: bytes) -> None:
        self._waiting_bytes = 0
        self.chunks.append(data)

    def on_message_complete(self) -> None:
        self.complete = self.head_read
        self.keeps_alive = self.keeps_alive and self._parser.should_keep_alive()

    def feed(self, data: bytes) -> None:
        """Parse received data. Raises BadResponse."""
        self._waiting_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self.complete:
                raise BadResponse(f"not an HTTP response: {error}") from error
            self.keeps_alive = False
        if self._waiting_bytes > MAX_HEADER_BYTES and not self.complete:
            raise BadResponse(f"not an HTTP response: a header of more than {MAX_HEADER_BYTES} bytes")

    def end_at_close(self) -> bool:
        """Complete an answer that ends with its connection. Return False if the answer is cut off."""
        self.keeps_alive = False
        self.complete = self.head_read and not {"content-length", "transfer-encoding"} & self.headers.keys()
        return self.complete


class CountingReader(asyncio.StreamReader):
    """Count received bytes, so that unread data can be noticed without waiting."""

    received_bytes = 0

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # transports pass bytes
        self.received_bytes += len(data)
        super().feed_data(data)


class Connection:
    """A connection that carries one exchange after another."""

    def __init__(self, reader: CountingReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._read_bytes = 0
        self._writer = writer
        self._answer = AnswerReader()
        self._received = False

    @classmethod
    async def open(cls, address: Address, timeout: float) -> Connection:
        reason = "connection refused"
        try:
            async with asyncio.timeout(timeout):
                for endpoint in address.endpoints:
                    try:
                        return cls(*await _connect(endpoint))
                    except OSError as error:
                        reason = _explain_error(error)
        except TimeoutError as error:
            raise ConnectFailed(f"no connection within {timeout:g} s") from error
        raise ConnectFailed(reason)

    @property
    def stale(self) -> bool:
        """True if the server has closed the idle connection, or sent data without a request."""
        return self._reader.at_eof() or self._reader.received_bytes > self._read_bytes or self._writer.is_closing()

    async def send(self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        self._received = False
        self._answer = AnswerReader()
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        head = "".join(lines)
        if "\r" in head or "\n" in head or "\0" in head:
            raise ConnectFailed("a header or path with a line break cannot be sent")
        data = "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise ConnectionBroken(error.strerror or "the connection was closed", started=False) from error

    async def read_head(self, timer: SilenceTimer) -> tuple[int, Mapping[str, str]]:
        while not self._answer.head_read:
            await self._read_on(timer)
        return self._answer.status, self._answer.headers

    async def iter_chunks(self, timer: SilenceTimer) -> AsyncGenerator[bytes, None]:
        """Iterate over the body as received. A second call continues where the first one stopped."""
        answer = self._answer
        while answer.chunks or not answer.complete:
            if answer.chunks:
                yield answer.chunks.popleft()
            else:
                await self._read_on(timer)

    async def _read_on(self, timer: SilenceTimer) -> None:
        if data := await timer.limit_wait(self._read()):
            self._answer.feed(data)
        elif not self._answer.end_at_close():
            how = "mid-answer" if self._received else "without an answer"
            raise ConnectionBroken(f"the server closed the connection {how}", started=self._received)

    async def _read(self) -> bytes:
        try:
            data = await self._reader.read(READ_SIZE)
        except OSError as error:
            raise ConnectionBroken(error.strerror or "the connection was reset", started=self._received) from error
        self._received = self._received or bool(data)
        self._read_bytes += len(data)
        return data

    def is_reusable(self) -> bool:
        """True if the exchange is complete on both sides and another may follow."""
        return self._answer.complete and self._answer.keeps_alive and not self.stale

    def abort(self) -> None:
        """Close at once, without waiting for anything in flight."""
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


def _explain_error(error: OSError) -> str:
    """Return the system's message; failed name lookups use negative numbers and separate messages."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


async def _connect(endpoint: tuple[str, int] | str) -> tuple[CountingReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = CountingReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport: asyncio.WriteTransport
    if isinstance(endpoint, str):
        transport, _ = await loop.create_unix_connection(lambda: protocol, endpoint)
    else:
        transport, _ = await loop.create_connection(lambda: protocol, *endpoint)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


MAX_BODY_BYTES = 64 * 1024 * 1024


class FullResponse(Data, frozen=True):
    """An answer read to its end; header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Response(msgspec.Struct, frozen=True):
    """An answer whose body is still arriving. `iter_chunks` yields it as received; chunk boundaries have no meaning."""

    status: int
    headers: Mapping[str, str]
    timer: SilenceTimer
    iter_chunks: Callable[[], AsyncGenerator[bytes, None]]


async def read_full_response(response: Response, limit: int = MAX_BODY_BYTES) -> FullResponse:
    body = bytearray()
    async for chunk in response.iter_chunks():
        response.timer.reset()
        body += chunk
        if len(body) > limit:
            raise TooLarge(f"the answer is longer than {limit} bytes")
    return FullResponse(status=response.status, headers=dict(response.headers), body=bytes(body))


MAX_IDLE_CONNECTIONS = 4
DRAIN_SECONDS = 0.1


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


class PlainClient(Client):
    """Client for `http://` and Unix sockets."""

    def __init__(self, address: Address, headers: dict[str, str], timeouts: Timeouts) -> None:
        self.url = address.url
        self._address = address
        self._headers = {"Host": address.authority, "User-Agent": "ollm", "Accept": "*/*"} | headers
        self._timeouts = timeouts
        self._idle: list[Connection] = []

    def add_headers(self, headers: Mapping[str, str]) -> None:
        names = {name.lower() for name in headers}
        self._headers = {key: text for key, text in self._headers.items() if key.lower() not in names} | dict(headers)

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: bytes = b"", *, timeouts: Timeouts | None = None
    ) -> AsyncIterator[Response]:
        timer = SilenceTimer(timeouts or self._timeouts)
        connection, response = await self._exchange(method, path, body, timer)
        try:
            yield response
            await self._give_back(connection, response)
        except BaseException:
            connection.abort()
            raise

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.close()

    async def _exchange(self, method: str, path: str, body: bytes, timer: SilenceTimer) -> tuple[Connection, Response]:
        """Send over an idle connection; if the server has closed it, over the next one or a new one."""
        while connection := self._take_idle():
            try:
                return connection, await self._send(connection, method, path, body, timer)
            except ConnectionBroken as failure:
                if failure.started:
                    raise
        connection = await Connection.open(self._address, self._timeouts.connect)
        return connection, await self._send(connection, method, path, body, timer)

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.stale:
                return connection
            connection.abort()
        return None

    async def _send(self, connection: Connection, method: str, path: str, body: bytes, timer: SilenceTimer) -> Response:
        headers = [*self._headers.items(), ("Content-Length", str(len(body)))]
        if body:
            headers.append(("Content-Type", "application/json"))
        try:
            await timer.limit_wait(connection.send(method, self._address.prefix + path, headers, body))
            status, found = await connection.read_head(timer)
        except BaseException:
            connection.abort()
            raise
        return Response(status, found, timer, lambda: connection.iter_chunks(timer))

    async def _give_back(self, connection: Connection, response: Response) -> None:
        """Drain the rest of the body for a moment and keep the connection for reuse; otherwise abort it."""
        try:
            if not connection.is_reusable():
                async with asyncio.timeout(DRAIN_SECONDS):
                    async for _ in response.iter_chunks():
                        pass
        except (TimeoutError, HttpFailure):
            connection.abort()
            return
        if len(self._idle) < MAX_IDLE_CONNECTIONS and connection.is_reusable():
            self._idle.append(connection)
        else:
            connection.abort()
