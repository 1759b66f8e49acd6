"""The daemon's port on 127.0.0.1: opened when it starts with --tcp, or when the first page is asked for."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable

from ollm.daemon.places import DaemonProcess, RunFiles, get_start_time
from ollm.daemon.web_access import WebState, read_state, write_state

OWN_PORTS = range(20_000, 30_000)  # systems take the ports of connections from above
ATTEMPTS, RETRY_SECONDS, WAIT_SECONDS = 20, 0.1, 2.0


class LoopbackPort:
    """One per daemon. `listen` starts to serve what comes in by a socket."""

    def __init__(self, files: RunFiles, token: str) -> None:
        self.number: int | None = None
        self.listen: Callable[[socket.socket], Awaitable[None]] | None = None
        self._files = files
        self._token = token
        self._lock = asyncio.Lock()

    def bind(self) -> socket.socket:
        """The port of the last time, so that pages that are open find us again; another when that is taken."""
        bound = bind_tcp(read_state(self._files.web_file).port, WAIT_SECONDS if self.is_awaited else 0)
        number: int = bound.getsockname()[1]
        self._files.write_token(self._token)
        self.number = number
        return bound

    @property
    def is_awaited(self) -> bool:
        """Whether pages are logged in at the port of a daemon that was killed: they look for it there."""
        now = time.time()
        return any(login.expires > now for login in read_state(self._files.web_file).logins)

    async def open(self) -> int:
        """The number of the port, which is opened first when it is not."""
        async with self._lock:
            if self.number is None:
                assert self.listen is not None
                await self.listen(self.bind())
                self.write_pid_file()
            assert self.number is not None
            return self.number

    def write_pid_file(self) -> None:
        started = get_start_time(os.getpid()) or 0.0
        self._files.write_pid_file(DaemonProcess(pid=os.getpid(), started=started, port=self.number))

    def end_logins(self) -> None:
        """A daemon that is stopped logs every page out; the port is kept in mind."""
        if self.number is not None:
            write_state(self._files.web_file, WebState(port=self.number))


def bind_tcp(wanted: int | None = None, wait_seconds: float = 0) -> socket.socket:
    """Loopback alone: the port that is wanted, waiting so long for it, or one that the system gives nobody else."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    until = time.monotonic() + wait_seconds
    while wanted and not try_bind(found, wanted) and time.monotonic() < until:
        time.sleep(RETRY_SECONDS)
    if not wanted or found.getsockname()[1] != wanted:
        choices = (secrets.choice(OWN_PORTS) for _ in range(ATTEMPTS))
        if not any(try_bind(found, port) for port in choices):
            found.bind(("127.0.0.1", 0))
    return found


def try_bind(found: socket.socket, port: int) -> bool:
    try:
        found.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True
