"""The client: opens connections, keeps them, lends them to one exchange at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from ollm.system.http import address as addresses
from ollm.system.http.connection import Connection
from ollm.system.http.failures import ConnectionBroken, HttpFailure
from ollm.system.http.response import FullResponse, Response, read_full_response
from ollm.system.http.timeouts import SilenceTimer, Timeouts

MAX_IDLE_CONNECTIONS = 4
DRAIN_SECONDS = 0.1


class Client(Protocol):
    """Speaks to one server. Paths are joined to the base URL's own."""

    url: str

    def stream(
        self, method: str, path: str, body: bytes = b"", *, timeouts: Timeouts | None = None
    ) -> AbstractAsyncContextManager[Response]: ...

    async def fetch(
        self, method: str, path: str, body: bytes = b"", *, timeouts: Timeouts | None = None
    ) -> FullResponse: ...

    async def close(self) -> None: ...


def open_client(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeouts: Timeouts | None = None,
    socket_path: str | None = None,
    proxied: bool = False,
) -> Client:
    """A client for this base URL; nothing is connected yet. Raises ValueError when the URL is no server's. `proxied`
    says that the environment names a proxy for `http://`; a server on this machine is reached without one."""
    address = addresses.parse_address(url, socket_path)
    if address.secure or (proxied and not address.local):
        from ollm.system.http.secure import SecureClient

        return SecureClient(address, dict(headers or {}), timeouts or Timeouts())
    return PlainClient(address, dict(headers or {}), timeouts or Timeouts())


class PlainResponse:
    """An answer on a kept connection."""

    def __init__(self, connection: Connection, status: int, headers: Mapping[str, str], patience: SilenceTimer) -> None:
        self._connection = connection
        self.status = status
        self.headers = headers
        self.patience = patience

    def iter_chunks(self) -> AsyncGenerator[bytes, None]:
        return self._connection.iter_chunks(self.patience)


class PlainClient:
    """`http://` and Unix sockets."""

    def __init__(self, address: addresses.Address, headers: dict[str, str], timeouts: Timeouts) -> None:
        self.url = address.url
        self._address = address
        self._headers = {"Host": address.authority, "User-Agent": "ollm", "Accept": "*/*"} | headers
        self._timeouts = timeouts
        self._idle: list[Connection] = []

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, body: bytes = b"", *, timeouts: Timeouts | None = None
    ) -> AsyncIterator[Response]:
        patience = SilenceTimer(timeouts or self._timeouts)
        connection, response = await self._exchange(method, path, body, patience)
        try:
            yield response
            await self._give_back(connection, response)
        except BaseException:
            connection.abort()
            raise

    async def fetch(
        self, method: str, path: str, body: bytes = b"", *, timeouts: Timeouts | None = None
    ) -> FullResponse:
        async with self.stream(method, path, body, timeouts=timeouts) as response:
            return await read_full_response(response)

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.close()

    async def _exchange(
        self, method: str, path: str, body: bytes, patience: SilenceTimer
    ) -> tuple[Connection, PlainResponse]:
        """A kept connection may have been closed by the server meanwhile: then, and only then, a new one is tried."""
        while connection := self._take_idle():
            try:
                return connection, await self._ask(connection, method, path, body, patience)
            except ConnectionBroken as failure:
                if failure.started:
                    raise
        connection = await Connection.open(self._address, self._timeouts.connect)
        return connection, await self._ask(connection, method, path, body, patience)

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.stale:
                return connection
            connection.abort()
        return None

    async def _ask(
        self, connection: Connection, method: str, path: str, body: bytes, patience: SilenceTimer
    ) -> PlainResponse:
        headers = [*self._headers.items(), ("Content-Length", str(len(body)))]
        if body:
            headers.append(("Content-Type", "application/json"))
        try:
            async with patience.limit_wait():
                await connection.send(method, self._address.prefix + path, headers, body)
            status, found = await connection.read_head(patience)
        except BaseException:
            connection.abort()
            raise
        return PlainResponse(connection, status, found, patience)

    async def _give_back(self, connection: Connection, response: PlainResponse) -> None:
        """Read the little that may be left after the part that mattered; what takes longer is not worth keeping."""
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                async for _ in response.iter_chunks():
                    pass
        except (TimeoutError, HttpFailure):
            connection.abort()
            return
        if len(self._idle) < MAX_IDLE_CONNECTIONS and connection.try_reuse():
            self._idle.append(connection)
        else:
            connection.abort()
