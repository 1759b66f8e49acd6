"""The daemon's process: binds the socket, serves until it is told to stop, lets running turns end first.

Nothing polls: an idle daemon sleeps in the kernel. With a team archive, a thread looks there twice a minute.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
import time
from contextlib import ExitStack, suppress
from typing import Any

import uvicorn

from ollm.app import ProcessScope, open_conversation
from ollm.config.settings import DaemonSettings
from ollm.daemon.application import build_application
from ollm.daemon.archive_watch import ArchiveWatch
from ollm.daemon.connections import DaemonHttpProtocol
from ollm.daemon.hub import Hub, HubLimits
from ollm.daemon.loopback_port import LoopbackPort
from ollm.daemon.places import RunFiles
from ollm.daemon.service import DaemonService
from ollm.daemon.transcript import prepare_rendering
from ollm.daemon.web_access import WebAccess
from ollm.domain.errors import BusyError
from ollm.system.process_tree import make_undumpable

MAX_DESCRIPTORS = 65_536
RESERVED_DESCRIPTORS = 384  # for connections, tools and reading
DESCRIPTORS_PER_SESSION = 6  # lease, lock, document, journal, database, model server
LOCK_ATTEMPTS, LOCK_RETRY_SECONDS = 3, 0.05
THREAD_SWITCH_SECONDS = 0.001  # how long a thread that reads may keep the one that answers waiting


class DaemonServer(uvicorn.Server):
    """A server that can be given another socket while it runs."""

    async def add_socket(self, bound: socket.socket) -> None:
        first, self.servers = self.servers, []
        await self.startup(sockets=[bound])
        self.servers = [*first, *self.servers]


async def serve(process: ProcessScope, *, tcp: bool) -> None:
    """Run until SIGTERM or SIGINT. Raises BusyError when a daemon runs already."""
    make_undumpable()
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    files = RunFiles(process.home)
    files.prepare()
    with ExitStack() as stack:
        acquire_lock(files, stack)
        stack.callback(files.remove_files)
        token = secrets.token_urlsafe(32)
        port = LoopbackPort(files, token)
        stack.callback(port.end_logins)
        sockets = [bind_unix(files), *([port.bind()] if tcp or port.is_awaited else [])]
        hub = Hub(open_conversation, make_limits(process.settings.daemon))
        web = WebAccess(files.web_file, port.open)
        server = DaemonServer(build_server_config(build_application(DaemonService(process, hub), token, web)))
        port.listen = server.add_socket
        port.write_pid_file()
        if process.settings.archive.is_set:
            watch = ArchiveWatch(process.environment)
            watch.start()
            stack.callback(watch.stop)
        await serve_until_stopped(server, sockets, hub, process.settings.daemon.drain_seconds)


def make_limits(settings: DaemonSettings) -> HubLimits:
    """As many sessions as there are descriptors for; the system lets a process raise its own limit."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if wanted > soft:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    most = max((soft - RESERVED_DESCRIPTORS) // DESCRIPTORS_PER_SESSION, 4)
    return HubLimits(most_clients=settings.max_clients, most_sessions=most, idle_seconds=settings.idle_minutes * 60)


def acquire_lock(files: RunFiles, stack: ExitStack) -> None:
    """One daemon per home: the lock is free as soon as its holder is gone."""
    import fcntl

    descriptor = os.open(files.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    stack.callback(os.close, descriptor)
    for attempt in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if attempt == LOCK_ATTEMPTS - 1:
                raise BusyError("The daemon is already running.", action="See `ollm daemon status`.") from error
            time.sleep(LOCK_RETRY_SECONDS)  # another process may only be checking whether it is held
        else:
            return


def bind_unix(files: RunFiles) -> socket.socket:
    files.socket.unlink(missing_ok=True)
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        found.bind(str(files.socket))
    finally:
        os.umask(before)
    return found


def build_server_config(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=DaemonHttpProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        date_header=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=64 * 1024,
        timeout_graceful_shutdown=2,
    )


async def serve_until_stopped(server: DaemonServer, sockets: list[socket.socket], hub: Hub, drain: float) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    loop.add_signal_handler(signal.SIGUSR1, lambda: tasks.add(loop.create_task(hub.close_requested())))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=sockets)
    if len(sockets) > 1:  # pages are expected
        loop.run_in_executor(None, prepare_rendering)
    await stop.wait()
    try:
        await hub.drain(drain)
    finally:
        await server.shutdown(sockets=sockets)
