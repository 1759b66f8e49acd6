"""One connection to a plain server: h11 says what the bytes mean, asyncio moves them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress

import h11

from ollm.system.http.address import Address
from ollm.system.http.failures import BadResponse, ConnectFailed, ConnectionBroken
from ollm.system.http.timeouts import SilenceTimer

MAX_HEADER_BYTES = 64 * 1024
READ_SIZE = 64 * 1024


class Connection:
    """Carries one exchange after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEADER_BYTES)
        self._heard = False

    @classmethod
    async def open(cls, address: Address, timeout: float) -> Connection:
        reason = "connection refused"
        try:
            async with asyncio.timeout(timeout):
                for place in address.places:
                    try:
                        return cls(*await _connect(place))
                    except OSError as error:
                        reason = _explain_error(error)
        except TimeoutError as error:
            raise ConnectFailed(f"no connection within {timeout:g} s") from error
        raise ConnectFailed(reason)

    @property
    def stale(self) -> bool:
        """The server has closed it, or said something nobody asked for."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def send(self, method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        self._heard = False
        request = h11.Request(method=method, target=target, headers=list(headers))
        data = self._protocol.send(request) or b""
        if body:
            data += self._protocol.send(h11.Data(data=body)) or b""
        data += self._protocol.send(h11.EndOfMessage()) or b""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise ConnectionBroken(error.strerror or "the connection was closed", started=False) from error

    async def read_head(self, patience: SilenceTimer) -> tuple[int, Mapping[str, str]]:
        event = await self._next_event(patience)
        while isinstance(event, h11.InformationalResponse):
            event = await self._next_event(patience)
        if not isinstance(event, h11.Response):
            raise ConnectionBroken("the server closed the connection without an answer", started=False)
        return event.status_code, {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}

    async def iter_chunks(self, patience: SilenceTimer) -> AsyncGenerator[bytes, None]:
        """May be asked for again when it was left before the end; gives nothing once the answer is over."""
        while self._protocol.their_state is h11.SEND_BODY:
            event = await self._next_event(patience)
            if isinstance(event, h11.Data):
                yield bytes(event.data)

    async def _next_event(self, patience: SilenceTimer) -> object:
        while True:
            try:
                event = self._protocol.next_event()
            except h11.RemoteProtocolError as error:
                if self._reader.at_eof():
                    raise ConnectionBroken(
                        "the server closed the connection mid-answer", started=self._heard
                    ) from error
                raise BadResponse(f"not an HTTP response: {error}") from error
            if event is not h11.NEED_DATA:
                return event
            async with patience.limit_wait():
                self._protocol.receive_data(await self._read())

    async def _read(self) -> bytes:
        try:
            data = await self._reader.read(READ_SIZE)
        except OSError as error:
            raise ConnectionBroken(error.strerror or "the connection was reset", started=self._heard) from error
        self._heard = self._heard or bool(data)
        return data

    def try_reuse(self) -> bool:
        """Whether the exchange is over on both sides and another may follow."""
        if self._protocol.their_state is not h11.DONE or self._protocol.our_state is not h11.DONE or self.stale:
            return False
        self._protocol.start_next_cycle()
        return True

    def abort(self) -> None:
        """Close at once, without waiting for anything in flight."""
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()


def _explain_error(error: OSError) -> str:
    """In the system's own words; a failed look-up of a name has a number below zero and words of its own."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


async def _connect(place: tuple[str, int] | str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(place, str):
        return await asyncio.open_unix_connection(place)
    return await asyncio.open_connection(*place)
