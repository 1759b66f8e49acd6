"""Runs commands and ensures that none of their descendants is left. Standard library only.

The agent starts one process (`main`), which keeps supervisors ready, one of them always free, and outlives the agent
only to ensure that nothing is left. Free supervisors wait on the agent's socket themselves; a message is one byte with
the descriptors of control socket, working directory, standard input, output and errors, and of the namespaces of the
session. A supervisor whose command is gone is free again, so that a command costs no extra fork.

A supervisor runs one command at a time and is a child subreaper: every process its command starts, even one that leaves
the session and forks twice, stays its descendant. It is found and ended when the agent requests it or is gone.

A command's control socket carries the command (4 bytes of length, then JSON) and then lines. To us: `end SECONDS`;
closing it means the same. From us: `started PID` or `failed ERRNO WHERE`, `exited CODE` (of the command itself), `gone`
(of all its descendants). A command with a `box` is run by a process inside it (see `sandbox.host`), which adds the line
`denied PATH`. Instead of a command, the socket may carry a request for the namespaces of a session, which are returned
as descriptors.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import struct
import time
from contextlib import suppress
from typing import Any

from ollm.system.process_tree import (
    become_subreaper,
    find_descendants,
    kill_all,
    map_children,
    receive_exactly,
    send_signal,
    start_session,
    wake_on_signals,
)
from ollm.system.sandbox.box import Box
from ollm.system.sandbox.host import BoxRunner

ORPHAN_GRACE_SECONDS = 0.25
GIVE_UP_SECONDS = 5.0  # Longest wait for a process that the kernel does not end.
_NEWS = struct.Struct("!i?")  # A supervisor's process id and whether it is free.


def supervise(control: socket.socket, descriptors: list[int], waking: int, runner: BoxRunner) -> None:
    """Run the command received over `control` with these descriptors (its directory, its three streams and, if it has a
    box, the namespaces of its session). Returns when it and all its descendants are gone."""
    with control:
        try:
            supervisor = _answer(control, descriptors, waking, runner)
        except (OSError, EOFError, ValueError):
            return
        finally:
            os.chdir("/")
            for descriptor in descriptors:
                os.close(descriptor)
        if supervisor is not None:
            supervisor.watch()


def _send_namespaces(fields: list[Any], control: socket.socket) -> None:
    from ollm.system.sandbox.levels import make_namespaces

    try:
        made = make_namespaces(Box.from_fields(fields))
    except OSError as error:
        control.sendall(f"failed {error.errno or 5} start\n".encode())
        return
    socket.send_fds(control, [b"made\n"], list(made))
    for descriptor in made:
        os.close(descriptor)


def _answer(control: socket.socket, descriptors: list[int], waking: int, runner: BoxRunner) -> Supervisor | None:
    """Send the requested namespaces, or start the command. Return its supervisor, or None if none was started."""
    body = receive_exactly(control, int.from_bytes(receive_exactly(control, 4), "big"))
    command = json.loads(body)
    if "namespaces" in command:
        _send_namespaces(command["namespaces"], control)
        return None
    where = "start"
    try:
        if command["box"] is not None:
            runner.start(command, body, descriptors)
            return Supervisor(control, 0, waking, runner)
        runner.stop()  # A remaining process would count as the command's.
        where = "cwd"
        os.fchdir(descriptors[0])
        where = "program"
        child = start_session(command["argv"], command["environment"], descriptors[1:4], terminal=command["terminal"])
    except OSError as error:
        control.sendall(f"failed {error.errno or 5} {where}\ngone\n".encode())
        return None
    control.sendall(f"started {child}\n".encode())
    return Supervisor(control, child, waking, runner)


class Supervisor:
    """Watches one command and all its descendants. Without a `child`, the process inside the box that the `runner`
    keeps reports on the command."""

    def __init__(self, control: socket.socket, child: int, waking: int, runner: BoxRunner) -> None:
        self._control = control
        self._child = child
        self._waking = waking
        self._runner = runner
        self._unsent: list[str] = []  # An end is sent together with the line after it.

    def watch(self) -> None:
        """Wait until the command and its descendants have ended; end them if the agent requests it or is gone."""
        while not self._reap():
            grace = self._wait(None)
            if grace is not None:
                self._end(grace)
                break
        self._unsent.append("gone")
        self._send_lines()

    def _end(self, grace: float) -> None:
        started = time.monotonic()
        send_signal(find_descendants([os.getpid()]) - self._runner.processes, signal.SIGTERM)
        while (left := started + grace - time.monotonic()) > 0 and not self._reap():
            self._wait(left, listening=False)
        while not self._reap() and time.monotonic() < started + grace + GIVE_UP_SECONDS:
            kill_all([os.getpid()])
            self._wait(0.01, listening=False)

    def _reap(self) -> bool:
        """Reap ended processes and pass on their reports. Return True if no process of the command is left."""
        if self._child:
            return self._reap_children()
        runner = self._runner
        while not runner.finished and select.select([runner.descriptor], [], [], 0)[0]:
            self._unsent += map(bytes.decode, runner.read_lines())
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                if ended == runner.host:
                    runner.forget()
        if runner.finished and not runner.host:
            kill_all([os.getpid()])  # Without namespaces processes may outlive the host.
            return self._reap_children()
        return runner.finished

    def _reap_children(self) -> bool:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self._child:
                self._unsent.append(f"exited {os.waitstatus_to_exitcode(status)}")

    def _wait(self, seconds: float | None, *, listening: bool = True) -> float | None:
        """Wait for a child's end or a message from the agent. Return the grace period if all must end."""
        self._send_lines()
        sources = {self._waking, self._runner.descriptor, self._control.fileno() if listening else -1} - {-1}
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

    def _send_lines(self) -> None:
        text = "".join(f"{line}\n" for line in self._unsent)
        self._unsent.clear()
        if text:
            with suppress(OSError):  # The agent may be gone.
                self._control.sendall(text.encode())


def main(descriptor: int) -> None:
    """Serve the agent at the other end of this socket until it is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)  # Commands would inherit SIG_IGN, but not a handler.
    become_subreaper()
    gc.freeze()
    SupervisorPool(socket.socket(fileno=descriptor)).serve()


class SupervisorPool:
    """The supervisors, and which of them are free."""

    def __init__(self, agent: socket.socket) -> None:
        self._agent = agent
        self._free: dict[int, bool] = {}
        self._news, self._tell = os.pipe()
        os.set_blocking(self._news, False)
        self._waking = wake_on_signals(signal.SIGCHLD)
        self._hangup = select.poll()
        self._hangup.register(agent, 0)

    def serve(self) -> None:
        while True:
            if not any(self._free.values()) and not self._hangup.poll(0):
                self._add()
            if not self._free:
                break
            ready, _, _ = select.select([self._news, self._waking], [], [])
            if self._news in ready:
                self._read_news()
            if self._waking in ready:
                os.read(self._waking, 4096)
                self._reap()
        kill_all([os.getpid()])

    def _read_news(self) -> None:
        """Read all pending reports, ignoring those of supervisors that are gone."""
        with suppress(BlockingIOError):
            while True:
                supervisor, free = _NEWS.unpack(os.read(self._news, _NEWS.size))
                if supervisor in self._free:
                    self._free[supervisor] = free

    def _add(self) -> None:
        supervisor = os.fork()
        if supervisor == 0:
            os._exit(self._run_supervisor())
        self._free[supervisor] = True

    def _run_supervisor(self) -> int:
        signal.set_wakeup_fd(-1)
        become_subreaper()
        waking, runner = wake_on_signals(signal.SIGCHLD), BoxRunner()
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._agent, 1, 8)
            if not message:
                runner.stop()
                runner.remove_scratches()
                return 0
            os.write(self._tell, _NEWS.pack(os.getpid(), False))
            supervise(socket.socket(fileno=descriptors[0]), descriptors[1:], waking, runner)
            os.write(self._tell, _NEWS.pack(os.getpid(), True))

    def _reap(self) -> None:
        self._read_news()
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                if self._free.pop(ended, True) is False:
                    self._kill_strays()

    def _kill_strays(self) -> None:
        """Kill the processes of a supervisor that was killed; they are now our children."""
        strays = [child for child in map_children().get(os.getpid(), []) if child not in self._free]
        kill_all(strays, also=strays)
