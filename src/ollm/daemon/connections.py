"""Connections to the daemon: whose they are, and how long and how many of them are kept.

A connection that is not being answered is nobody's to keep: when there are too many, the one that has waited longest is
closed for a new one, so that any number of silent ones keeps nobody out.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import cast

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from ollm.daemon.bodies import Problem

RECEIVE_SECONDS = 30.0
MAX_CONNECTIONS = 256


class DaemonHttpProtocol(H11Protocol):
    """Closes a connection on the Unix socket that another user has opened, and any whose request does not arrive."""

    _waiting: asyncio.TimerHandle | None = None
    idle_since = 0.0

    @property
    def answering(self) -> bool:
        """Whether a whole request has come, and not yet all of its answer has gone."""
        return self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        connection = transport.get_extra_info("socket")
        if (
            connection is not None
            and connection.family == socket.AF_UNIX
            and get_peer_user(connection) not in (os.getuid(), 0)
        ):
            transport.abort()
            return
        super().connection_made(transport)
        self.idle_since = self.loop.time()
        self._start_receive_timeout()
        close_longest_waiting(cast("set[DaemonHttpProtocol]", self.connections))

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._start_receive_timeout()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_receive_timeout()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so in the words of every other mistake."""
        content = msgspec.json.encode(Problem(title="Bad Request", status=400, detail=msg))
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(content)).encode()),
            (b"connection", b"close"),
        ]
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=content), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _start_receive_timeout(self) -> None:
        """A request has so long from its first byte, however slowly the others come."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._cancel_receive_timeout()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(RECEIVE_SECONDS, self.transport.abort)

    def _cancel_receive_timeout(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def close_longest_waiting(connections: set[DaemonHttpProtocol]) -> None:
    """Close the connection that has waited longest, when there are too many; of equals the first that came."""
    standing = [found for found in connections if not found.transport.is_closing()]
    waiting = [found for found in standing if not found.answering]
    if len(standing) > MAX_CONNECTIONS and waiting:
        min(waiting, key=lambda found: found.idle_since).transport.abort()


def get_peer_user(connection: socket.socket) -> int:
    """The user at the other end; our own where the system cannot say."""
    if not hasattr(socket, "SO_PEERCRED"):
        return os.getuid()
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])
