"""Runs commands in their own sessions and ends them with all their descendants (T5).

`ProcessHost` starts commands through a supervisor process (see `supervisor`), so that all descendants of a command can
be ended after a timeout or a cancellation, and are ended when the agent exits, even by `kill -9`. Standard input is
empty unless a descriptor is passed. Processes that outlive their command run until `end` or `close`.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ollm.domain.errors import StartError
from ollm.domain.struct import Data
from ollm.system.sandbox.box import Box, Level

T = TypeVar("T")
_PACKAGE_ROOT = str(Path(__file__).parents[2])
_POOL_SCRIPT = (
    "import sys; sys.path.append(sys.argv[1]); from ollm.system.supervisor import main; main(int(sys.argv[2]))"
)


class ProcessCommand(Data, frozen=True):
    """Command line and working directory. `terminal` makes standard output, which must then be a terminal, the
    controlling one. If there is a `box`, the command runs in it, built at `level`."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    terminal: bool = False
    box: Box | None = None
    level: Level = "none"


class ChildProcess:
    """A started command with all its descendants."""

    def __init__(self, control: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self.pid = 0
        self.denied: list[str] = []
        self._control = control
        self._loop = loop
        self._heard = b""
        self._started: asyncio.Future[None] = loop.create_future()
        self._exited: asyncio.Future[int] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()
        loop.add_reader(control, self._read_control)

    @property
    def exit_code(self) -> int | None:
        """Exit code of the command itself: negative for the signal that ended it, None while it runs."""
        return self._exited.result() if self._exited.done() else None

    @property
    def gone(self) -> bool:
        """True if the command and all its descendants have ended."""
        return self._gone.done()

    async def wait(self) -> int:
        """Wait for the command's exit code, or minus its signal. Its descendants may still run."""
        return await asyncio.shield(self._exited)

    async def end(self, grace: float = 0.25) -> None:
        """End the whole tree: SIGTERM, then after `grace` seconds SIGKILL. Returns when all processes are gone."""
        self.request_end(grace)
        await asyncio.shield(self._gone)

    def request_end(self, grace: float = 0.25) -> None:
        """Start ending the tree like `end`, without waiting."""
        if not self.gone:
            try:
                self._control.send(f"end {grace}\n".encode())
            except OSError:
                self.abandon()

    async def start_command(self, command: ProcessCommand, session: str) -> None:
        """Send the command and wait until it runs."""
        fields = {
            "argv": command.argv,
            "environment": dict(command.environment),
            "terminal": command.terminal,
            "box": command.box,
            "session": session,
        }
        body = json.dumps(fields).encode()
        await self._loop.sock_sendall(self._control, struct.pack("!I", len(body)) + body)
        await asyncio.shield(self._started)

    def _read_control(self) -> None:
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            self._handle_line(line.decode().split(" "))
        if not data:
            self.abandon()

    def _handle_line(self, words: list[str]) -> None:
        match words:
            case ["started", pid]:
                self.pid = int(pid)
                settle_future(self._started, None)
            case ["failed", number, where]:
                fail_future(self._started, StartError(os.strerror(int(number)), where))
            case ["exited", code]:
                settle_future(self._exited, int(code))
            case ["denied", *path]:
                self.denied.append(json.loads(" ".join(path)))
            case _:
                self.abandon()

    def abandon(self) -> None:
        """Close the control socket, which ends everything that was started, without waiting."""
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control)
            self._control.close()
        fail_future(self._started, StartError("The process that runs commands has stopped.", "start"))
        settle_future(self._exited, -9)
        settle_future(self._gone, None)


def settle_future(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)


def fail_future(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # Python warns of an error that nobody reads; a waiter still gets it.


class ProcessHost:
    """Starts commands; one for the whole agent. `close` ends all that still run."""

    def __init__(self) -> None:
        self._server: socket.socket | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._processes: set[ChildProcess] = set()
        self._namespaces: dict[Box, asyncio.Future[tuple[int, ...]]] = {}

    async def start(
        self,
        command: ProcessCommand,
        output: int,
        *,
        errors: int | None = None,
        source: int | None = None,
        directory: int | None = None,
    ) -> ChildProcess:
        """Start a command with these descriptors as standard streams. `source` is its input (empty if None); errors go
        to `output` unless `errors` is given. It runs in `directory` if given, otherwise in the command's `cwd`. The
        caller closes its own copies."""
        command = _wrap_command(command)
        session, namespaces = await self._join_session(command)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        process = ChildProcess(ours, asyncio.get_running_loop())
        try:
            with theirs, Path(os.devnull).open("rb") as empty, _open_working_directory(command.cwd, directory) as place:
                streams = [empty.fileno() if source is None else source, output, output if errors is None else errors]
                socket.send_fds(self._connect_pool(), [b"s"], [theirs.fileno(), place, *streams, *namespaces])
            await process.start_command(command, session)
        except BaseException:
            process.abandon()
            raise
        self._processes = {one for one in self._processes if not one.gone} | {process}
        return process

    async def close(self) -> None:
        """End every command with all its descendants."""
        await asyncio.gather(*(process.end() for process in self._processes))
        self._processes.clear()
        if self._server is not None and self._child is not None:
            self._server.close()
            await asyncio.to_thread(self._child.wait)
        self._server = self._child = None
        for made in self._namespaces.values():
            if made.done() and not made.cancelled() and made.exception() is None:
                for descriptor in made.result():
                    os.close(descriptor)
        self._namespaces.clear()

    async def _join_session(self, command: ProcessCommand) -> tuple[str, tuple[int, ...]]:
        """Return the name and descriptors of the namespaces this workspace's boxes share, created on first use."""
        if command.box is None or command.level != "full":
            return command.level, ()
        box = command.box.session_part
        if box not in self._namespaces:
            self._namespaces[box] = asyncio.ensure_future(self._make_namespaces(box))
        try:
            return str(hash(box)), await asyncio.shield(self._namespaces[box])
        except StartError:
            self._namespaces.pop(box, None)
            raise

    async def _make_namespaces(self, box: Box) -> tuple[int, ...]:
        ours, theirs = socket.socketpair()
        with ours, Path(os.devnull).open("rb") as empty:
            with theirs:
                socket.send_fds(self._connect_pool(), [b"s"], [theirs.fileno(), *[empty.fileno()] * 4])
            body = json.dumps({"namespaces": box}).encode()
            ours.sendall(struct.pack("!I", len(body)) + body)
            flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
            said, descriptors, _, _ = await asyncio.to_thread(socket.recv_fds, ours, 100, 3, flags)
        if len(descriptors) != 3:
            words = said.split()
            number = int(words[1]) if len(words) > 1 else 5
            raise StartError(f"the sandbox cannot be built: {os.strerror(number)}", "sandbox")
        return tuple(descriptors)

    def _connect_pool(self) -> socket.socket:
        if self._server is None or self._child is None or self._child.poll() is not None:
            self._server, theirs = socket.socketpair()
            with theirs:
                self._child = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _POOL_SCRIPT, _PACKAGE_ROOT, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={},
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                    cwd="/",
                )
        return self._server


def _wrap_command(command: ProcessCommand) -> ProcessCommand:
    """Wrap the command on macOS, where a program creates the sandbox and the supervisor is not involved."""
    if command.box is None or command.level != "seatbelt":
        return command
    import msgspec

    from ollm.system.sandbox.seatbelt import wrap_in_seatbelt

    return msgspec.structs.replace(command, argv=wrap_in_seatbelt(command.box, command.argv), box=None, level="none")


@contextmanager
def _open_working_directory(path: Path, directory: int | None) -> Iterator[int]:
    if directory is not None:
        yield directory
        return
    try:
        opened = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StartError(error.strerror or str(error), "cwd") from error
    try:
        yield opened
    finally:
        os.close(opened)
