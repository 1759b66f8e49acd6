"""Runs one command at a time and sees to it that nothing that came from it is left. Standard library only.

A supervisor is a process of its own and a child subreaper: whatever its command starts, even what leaves the session
and forks twice, stays its descendant, and is found and ended when the agent says so, or when the agent is gone.

A command's control socket carries the command (4 bytes of length, then JSON) and then lines. To us: `end SECONDS`;
closing it means the same. From us: `started PID` or `failed ERRNO WHERE`, `exited CODE` (of the command
itself), `gone` (of all that came from it). A command with a `box` is run by a process inside it (see `sandbox.host`);
there is one more line then, `denied PATH`. In place of a command it may ask for the namespaces of a session, which
come as descriptors.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ollm.system.process_tree import find_descendants, kill_all, send_signal

if TYPE_CHECKING:
    from ollm.system.sandbox.runner import BoxRunner

ORPHAN_GRACE_SECONDS = 0.25
GIVE_UP_SECONDS = 5.0  # a process the kernel will not let go of is not waited for longer than this


def supervise(control: socket.socket, descriptors: list[int], waking: int, runner: BoxRunner) -> None:
    """Run the command that comes over `control` with these descriptors (its directory, its three streams, and the
    namespaces of its session where it has a box); return when it and all its descendants are gone."""
    with control:
        try:
            command = _read_command(control)
            if "namespaces" in command:
                _send_namespaces(command["namespaces"], control)
                return
            boxed = command["box"] is not None
            started = (
                _launch_boxed(command, control, descriptors, runner)
                if boxed
                else _launch(command, control, descriptors, runner)
            )
        except (OSError, EOFError, ValueError):
            return
        finally:
            os.chdir("/")
            for descriptor in descriptors:
                os.close(descriptor)
        if started:
            (BoxSupervisor(control, runner, waking) if boxed else Supervisor(control, started, waking)).watch()


def _send_namespaces(fields: dict[str, Any], control: socket.socket) -> None:
    from ollm.system.sandbox.box import Box
    from ollm.system.sandbox.levels import make_namespaces

    try:
        made = make_namespaces(Box.from_fields(fields))
    except OSError as error:
        control.sendall(f"failed {error.errno or 5} start\n".encode())
        return
    socket.send_fds(control, [b"made\n"], list(made))
    for descriptor in made:
        os.close(descriptor)


def wake_on_child() -> int:
    """A descriptor that becomes readable when a child ends."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def _read_command(control: socket.socket) -> dict[str, Any]:
    (length,) = struct.unpack("!I", _receive(control, 4))
    fields: dict[str, Any] = json.loads(_receive(control, length))
    return fields


def _receive(control: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        piece = control.recv(length - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def _launch_boxed(command: dict[str, Any], control: socket.socket, descriptors: list[int], runner: BoxRunner) -> int:
    """Hand the command to the process inside the sandbox; 0 if there is none."""
    try:
        runner.start(command, descriptors)
    except OSError as error:
        control.sendall(f"failed {error.errno or 5} start\ngone\n".encode())
        return 0
    return runner.host


def _launch(command: dict[str, Any], control: socket.socket, descriptors: list[int], runner: BoxRunner) -> int:
    """Start the command and say so; 0 when it could not be started."""
    runner.stop()  # a process that were left would be taken for one of the command
    directory, source, output, errors = descriptors[:4]
    where = "cwd"
    try:
        os.fchdir(directory)
        where = "program"
        child = subprocess.Popen(
            command["argv"],
            env=command["environment"],
            stdin=source,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            preexec_fn=_take_terminal if command["terminal"] else None,  # noqa: PLW1509 - one thread only
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        number = getattr(error, "errno", None) or 22
        control.sendall(f"failed {number} {where}\ngone\n".encode())
        return 0
    child.returncode = 0  # we collect it ourselves
    control.sendall(f"started {child.pid}\n".encode())
    return child.pid


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(1, termios.TIOCSCTTY, 0)


class Supervisor:
    """Watches one command and all that comes from it."""

    def __init__(self, control: socket.socket, child: int, waking: int) -> None:
        self._control = control
        self._child = child
        self._waking = waking

    def watch(self) -> None:
        """Until nothing is left of the command; it is ended when the agent says so or is gone."""
        while not self._reap():
            grace = self._wait(None)
            if grace is not None:
                self._end(grace)
                break
        self._send_line("gone")

    def _end(self, grace: float) -> None:
        started = time.monotonic()
        send_signal(find_descendants([os.getpid()]) - self._list_spared(), signal.SIGTERM)
        while (left := started + grace - time.monotonic()) > 0 and not self._reap():
            self._wait(left, listening=False)
        while not self._reap() and time.monotonic() < started + grace + GIVE_UP_SECONDS:
            kill_all([os.getpid()])
            self._wait(0.01, listening=False)

    def _list_spared(self) -> set[int]:
        """Processes that are not asked to end: they do so when all others have."""
        return set()

    def _list_sources(self) -> list[int]:
        return [self._waking]

    def _reap(self) -> bool:
        """Collect what has ended; True when no process is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._child:
                self._send_line(f"exited {os.waitstatus_to_exitcode(status)}")

    def _wait(self, seconds: float | None, *, listening: bool = True) -> float | None:
        """Sleep until a child ends or the agent speaks; the grace to give when everything is to end."""
        sources = [*self._list_sources(), self._control.fileno()] if listening else self._list_sources()
        ready, _, _ = select.select(sources, [], [], seconds)
        if self._waking in ready:
            os.read(self._waking, 4096)
        if self._control.fileno() not in ready:
            return None
        words = self._read_request().split()
        return float(words[1]) if len(words) > 1 else ORPHAN_GRACE_SECONDS

    def _read_request(self) -> bytes:
        try:
            return self._control.recv(256)
        except OSError:
            return b""

    def _send_line(self, line: str) -> None:
        with suppress(OSError):  # the agent may be gone; what is left to do is done without it
            self._control.sendall(line.encode() + b"\n")


class BoxSupervisor(Supervisor):
    """Watches one command in a box: the process inside tells what becomes of it."""

    def __init__(self, control: socket.socket, runner: BoxRunner, waking: int) -> None:
        super().__init__(control, 0, waking)
        self._runner = runner

    def _list_spared(self) -> set[int]:
        return self._runner.processes

    def _list_sources(self) -> list[int]:
        return [self._waking, self._runner.descriptor] if self._runner.descriptor >= 0 else [self._waking]

    def _reap(self) -> bool:
        """Pass on what was heard; True when nothing is left in the box."""
        while not self._runner.finished and select.select([self._runner.descriptor], [], [], 0)[0]:
            for line in self._runner.read_lines():
                self._send_line(line.decode())
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                if ended == self._runner.host:
                    self._runner.forget()
        if self._runner.finished and not self._runner.host:
            kill_all([os.getpid()])  # it ended before its time: without namespaces others may have outlived it
            return super()._reap()
        return self._runner.finished
