"""The daemon process: bind the socket, serve until stopped, and let running turns finish first.

Nothing polls: an idle daemon sleeps in the kernel. With a team archive, a thread checks it twice a minute.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import h11
import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ollm.app.conversation import open_conversation
from ollm.app.process import ProcessScope
from ollm.archive.listing import refresh_list
from ollm.archive.process import ArchiveProcess
from ollm.config.settings import DaemonSettings, NotifySettings
from ollm.daemon.application import build_application
from ollm.daemon.auth import WebAccess, WebState, parse_origin, read_state, write_state
from ollm.daemon.bodies import make_problem
from ollm.daemon.hub import Hub, HubLimits
from ollm.daemon.places import DaemonProcess, RunFiles
from ollm.daemon.service import DaemonService
from ollm.daemon.transcript import prepare_rendering
from ollm.domain.errors import BusyError, OllmError, UsageError
from ollm.domain.events import ConfirmationRequested, Event, TurnFinished
from ollm.system.locks import OwnerLock, get_process_start
from ollm.system.process_tree import make_undumpable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ollm.daemon.hub import DaemonSession

OWN_PORTS = range(20_000, 30_000)  # Systems take the ports of connections from above.
ATTEMPTS, RETRY_SECONDS, WAIT_SECONDS = 20, 0.1, 2.0


class LoopbackPort:
    """One per daemon. `listen` starts to serve a socket."""

    def __init__(self, files: RunFiles, token: str, fixed: int | None = None) -> None:
        self.number: int | None = None
        self.listen: Callable[[socket.socket], Awaitable[None]] | None = None
        self._files = files
        self._token = token
        self._fixed = fixed
        self._lock = asyncio.Lock()

    def bind(self) -> socket.socket:
        """Bind the last port again, so that open pages find it; another if that is taken."""
        wanted = self._fixed or read_state(self._files.web_file).port
        bound = bind_tcp(wanted, WAIT_SECONDS if self._fixed or self.is_awaited else 0)
        number: int = bound.getsockname()[1]
        if self._fixed and number != self._fixed:
            bound.close()
            raise BusyError(f"Port {wanted} (daemon.port) is taken by another program.", action="Set another port.")
        self._files.write_token(self._token)
        self.number = number
        return bound

    @property
    def is_awaited(self) -> bool:
        """True if pages are still logged in at the port of a killed daemon."""
        now = time.time()
        return any(login.expires > now for login in read_state(self._files.web_file).logins)

    async def open(self) -> int:
        """Return the port's number; open it first if needed."""
        async with self._lock:
            if self.number is None:
                assert self.listen is not None
                await self.listen(self.bind())
                self.write_pid_file()
            assert self.number is not None
            return self.number

    def write_pid_file(self) -> None:
        started = get_process_start(os.getpid())
        self._files.write_pid_file(DaemonProcess(pid=os.getpid(), started=started, port=self.number))

    def end_logins(self) -> None:
        """Log every page of this machine out; the port and the paired devices are remembered."""
        if self.number is not None:
            devices = read_state(self._files.web_file).devices
            write_state(self._files.web_file, WebState(port=self.number, devices=devices))


def bind_tcp(wanted: int | None = None, wait_seconds: float = 0) -> socket.socket:
    """Bind a loopback port: the wanted one, waited for, or one outside the system's own range."""
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


log = logging.getLogger(__name__)
REFRESH_SECONDS = 30.0


def watch_archive(environment: Mapping[str, str], pause: float = REFRESH_SECONDS) -> Callable[[], None]:
    """Check the team archive again and again in a thread. Returns a function that stops it without waiting: a silent
    server must not delay the daemon's end."""
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            check_archive(environment)
            ended.wait(pause)

    threading.Thread(target=run, name="ollm-archive", daemon=True).start()
    return ended.set


def check_archive(environment: Mapping[str, str]) -> None:
    """Wake the process that sends sessions, and read the list of archived ones anew."""
    process = ProcessScope(environment)
    try:
        shipping = ArchiveProcess(process)
        if shipping.is_wanted:
            if text := shipping.announce():
                sys.stderr.write(f"ollm: {text}\n")
                shipping.tell(text)
            shipping.wake(keeper=os.getpid())
        refresh_list(process)
    except OllmError as error:
        log.info("%s", error, extra={"operation": "list"})
    except Exception:
        log.exception("the archive's sessions were not listed", extra={"operation": "list"})
    finally:
        process.close()


RECEIVE_SECONDS = 30.0
MAX_CONNECTIONS = 256


class DaemonHttpProtocol(H11Protocol):
    """Closes Unix connections of other users, and connections whose request does not arrive in time."""

    _waiting: asyncio.TimerHandle | None = None
    idle_since = 0.0

    @property
    def answering(self) -> bool:
        """True while a complete request waits for the rest of its answer."""
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
        """Answer data that is not HTTP with the same error body as every other mistake."""
        content = msgspec.json.encode(make_problem(400, msg))
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(content)).encode()),
            (b"connection", b"close"),
        ]
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=content), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _start_receive_timeout(self) -> None:
        """Limit the time from a request's first byte to its last."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._cancel_receive_timeout()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(RECEIVE_SECONDS, self.transport.abort)

    def _cancel_receive_timeout(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def close_longest_waiting(connections: set[DaemonHttpProtocol]) -> None:
    """If there are too many connections, close the one that has waited longest."""
    standing = [found for found in connections if not found.transport.is_closing()]
    waiting = [found for found in standing if not found.answering]
    if len(standing) > MAX_CONNECTIONS and waiting:
        min(waiting, key=lambda found: found.idle_since).transport.abort()


def get_peer_user(connection: socket.socket) -> int:
    """Return the user at the other end; our own if the system cannot say."""
    if not hasattr(socket, "SO_PEERCRED"):
        return os.getuid()
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


MAX_DESCRIPTORS = 65_536
RESERVED_DESCRIPTORS = 384  # Connections, tools and reading need them.
DESCRIPTORS_PER_SESSION = 6  # A session opens lease, lock, document, journal, database and server.
THREAD_SWITCH_SECONDS = 0.001  # A reading thread blocks the answering one no longer.


class DaemonServer(uvicorn.Server):
    """A server that can take another socket while it runs, with TLS or without."""

    async def add_socket(self, bound: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        first, self.servers = self.servers, []
        self.config.ssl = tls
        await self.startup(sockets=[bound])
        self.servers, self.config.ssl = [*first, *self.servers], None


def open_tls_socket(settings: DaemonSettings) -> tuple[socket.socket, ssl.SSLContext]:
    """Bind the address of `daemon.listen`, which speaks TLS alone."""
    host, _, port = (settings.listen or "").rpartition(":")
    if not (host and port.isdecimal() and settings.public_url and settings.tls.cert and settings.tls.key):
        raise UsageError(
            "daemon.listen needs an address HOST:PORT, daemon.publicUrl, daemon.tls.cert and daemon.tls.key.",
            action="See docs/remote.md.",
        )
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        cert, key = Path(settings.tls.cert).expanduser(), Path(settings.tls.key).expanduser()
        context.load_cert_chain(cert, key, password="")  # OpenSSL asks at the terminal without it.
        family, *_, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family), context
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"The daemon cannot listen on {settings.listen}: {error}.", action="See docs/remote.md."
        ) from error


async def serve(process: ProcessScope, *, tcp: bool) -> None:
    """Run until SIGTERM or SIGINT. Raises BusyError if a daemon is already running."""
    make_undumpable()
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    files = RunFiles(process.home)
    files.prepare()
    with ExitStack() as stack:
        acquire_lock(files, stack)
        stack.callback(files.remove_files)
        token = secrets.token_urlsafe(32)
        settings = process.settings.daemon
        port = LoopbackPort(files, token, settings.port)
        stack.callback(port.end_logins)
        tls = open_tls_socket(settings) if settings.listen else None
        sockets = [bind_unix(files), *([port.bind()] if tcp or settings.opens_port or port.is_awaited else [])]
        public = parse_origin(settings.public_url)
        notify = make_notifier(process.settings.notify, process.environment, public)
        hub = Hub(open_conversation, make_limits(settings), notify)
        web = WebAccess(files.web_file, port.open, public=public)
        server = DaemonServer(build_server_config(build_application(DaemonService(process, hub), token, web)))
        port.listen = server.add_socket
        port.write_pid_file()
        if process.settings.archive.is_set:
            stack.callback(watch_archive(process.environment))
        await serve_until_stopped(server, sockets, tls, hub, settings.drain_seconds)


def make_limits(settings: DaemonSettings) -> HubLimits:
    """Allow as many sessions as there are file descriptors, after raising the process's own limit."""
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
    """Take the lock of this home's one daemon."""
    lock = OwnerLock(files.lock)
    try:
        lock.acquire("The daemon")
    except BusyError as error:
        raise BusyError("The daemon is already running.", action="See `ollm daemon status`.") from error
    stack.callback(lock.release)


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


async def serve_until_stopped(
    server: DaemonServer,
    sockets: list[socket.socket],
    tls: tuple[socket.socket, ssl.SSLContext] | None,
    hub: Hub,
    drain: float,
) -> None:
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
    if tls:
        await server.add_socket(*tls)
    if len(sockets) > 1:  # A page will ask for it.
        loop.run_in_executor(None, prepare_rendering)
    await stop.wait()
    try:
        await hub.drain(drain)
    finally:
        await server.shutdown(sockets=sockets)


NOTIFY_SECONDS = 30.0


def make_notifier(
    settings: NotifySettings, environment: Mapping[str, str], url: str
) -> Callable[[DaemonSession, Event], None]:
    """Make what is called with each event of a session; it waits for no command."""
    tasks: set[asyncio.Task[None]] = set()

    async def run(text: bytes) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *settings.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
            try:
                await asyncio.wait_for(process.communicate(text), NOTIFY_SECONDS)
            finally:
                if process.returncode is None:
                    process.kill()
            if process.returncode:
                raise OSError(f"it exited with {process.returncode}")
        except (OSError, TimeoutError) as error:
            log.warning("notify.command failed: %s", error or "no answer in 30 s", extra={"operation": "notify"})

    def notify(held: DaemonSession, event: Event) -> None:
        if settings.command and isinstance(event, ConfirmationRequested | TurnFinished):
            place = {"sessionId": held.session_id, "url": f"{url}/#/session/{held.session_id}" if url else None}
            task = asyncio.ensure_future(
                run(msgspec.json.encode({**place, **describe_event(event, settings.contents)}))
            )
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    return notify


def describe_event(event: ConfirmationRequested | TurnFinished, contents: bool) -> dict[str, Any]:
    """Describe what happened, with its contents only if they are wanted."""
    if isinstance(event, ConfirmationRequested):
        asked = event.details
        more = {"question": asked.description, "command": asked.command} if contents else {}
        return {"event": "asks", "title": f"ollm asks about {asked.tool}", "tool": asked.tool, **more}
    title = "ollm has finished" if event.reason == "answered" else f"ollm has stopped: {event.reason}"
    return {
        "event": "ended",
        "title": title,
        "reason": event.reason,
        **({"message": event.message} if contents else {}),
    }
