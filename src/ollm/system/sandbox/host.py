"""The first process of the boxes that one supervisor runs for one session, one command after the other.

It lives in namespaces of its own: processes, shared memory, and mounts copied from the session's. For every command a
thread of it makes the mounts of that command (`command`); threads, because they share the interpreter's memory and
cost nothing, while each has mounts, capabilities, Landlock and seccomp of its own. Standard library only.

What comes over the control socket: an order as JSON with four descriptors (directory, input, output, errors). What
goes back, a line each: `started PID` or `failed ERRNO WHERE`, `denied PATH` (as JSON), `exited CODE` (of the command
itself), `gone` when nothing is left of it. When the socket is closed everything ends.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from contextlib import suppress
from typing import Any

from ollm.system.process_tree import kill_all
from ollm.system.sandbox import kernel
from ollm.system.sandbox.box import Box
from ollm.system.sandbox.command import BoxedCommand, BoxOrder

MAX_ORDER_BYTES = 4 * 1024 * 1024
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def start_host(namespaces: tuple[int, ...]) -> tuple[socket.socket, int]:
    """Start such a process in these namespaces of a session (none: with Landlock alone): its control socket, and its
    process id. The caller is single-threaded, and a subreaper if it wants to be the one that collects it."""
    ours, theirs = socket.socketpair()
    first = os.fork()
    if first == 0:
        try:
            ours.close()
            signal.set_wakeup_fd(-1)  # the caller's
            _enter(theirs, namespaces)
        except OSError as error:
            theirs.sendall(f"failed {error.errno or 5} start\n".encode())
        finally:
            os._exit(1)
    theirs.close()
    if not namespaces:
        return ours, first
    os.waitpid(first, 0)
    said = ours.recv(100).split()
    if said[:1] != [b"host"]:
        ours.close()
        raise OSError(int(said[1]) if len(said) > 1 else 5, "the namespaces of the session cannot be entered")
    return ours, int(said[1])


def _enter(control: socket.socket, namespaces: tuple[int, ...]) -> None:
    """Join the session's namespaces, make those of our own and become the first process in them."""
    if namespaces:
        user, mounts, _ = namespaces
        kernel.call("setns", user, kernel.CLONE_NEWUSER)
        kernel.call("setns", mounts, kernel.CLONE_NEWNS)
        kernel.call("unshare", kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC)
        inner = os.fork()
        if inner != 0:
            control.sendall(f"host {inner}\n".encode())
            os._exit(0)
        kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC | kernel.MS_RDONLY)
    else:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    _serve(control, namespaces[2:])


def serve_orders(descriptor: int) -> None:
    """Be such a process where bubblewrap has made the namespaces, and we are the first in them."""
    control = socket.socket(fileno=descriptor)
    control.sendall(b"host\n")
    _serve(control, ())


def _serve(control: socket.socket, network: tuple[int, ...]) -> None:
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    _close_all_but(control.fileno(), network)
    BoxHost(control, network).serve()
    os._exit(0)


def _close_all_but(control: int, kept: tuple[int, ...]) -> None:
    empty = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(empty, stream)
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (0, 1, 2, control, *kept):
            with suppress(OSError):
                os.close(int(name))


class BoxHost:
    """Takes an order, starts it, collects what ends; then the next."""

    def __init__(self, control: socket.socket, network: tuple[int, ...]) -> None:
        self._control = control
        self._network = network
        self._command: BoxedCommand | None = None
        self._child = 0

    def serve(self) -> None:
        waking = self._wake_on_signals()
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(waking, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == waking:
                    with suppress(BlockingIOError):
                        os.read(waking, 4096)
                elif not self._take_order():
                    kill_all([os.getpid()])
                    return
            if self._command is not None and not self._collect():
                self._command.close()
                self._command = None
                self._say("gone")

    def _wake_on_signals(self) -> int:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in PASSED_ON:
            signal.signal(number, self._pass_on)
        return reading

    def _take_order(self) -> bool:
        """Start what is ordered. False when there will be no order any more."""
        length, descriptors, _, _ = socket.recv_fds(self._control, 4, 4, socket.MSG_CMSG_CLOEXEC)
        if len(length) < 4:
            return False
        with suppress(OSError):  # who started us may be gone by now
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        order = _read_order(self._control, int.from_bytes(length, "big"), descriptors)
        self._command = BoxedCommand(order, self._network, self._say)
        try:
            self._child = self._command.start()
            self._say(f"started {self._child}")
        except OSError as error:
            self._child = 0
            self._say(f"failed {error.errno or 5} {getattr(error, 'filename', None) or 'program'}")
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _collect(self) -> bool:
        """Collect what has ended; whether anything is left."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if process == 0:
                return True
            if process == self._child:
                self._child = 0
                self._say(f"exited {os.waitstatus_to_exitcode(status)}")

    def _pass_on(self, number: int, _frame: object) -> None:
        if self._child:
            with suppress(OSError):
                os.kill(self._child, number)

    def _say(self, line: str) -> None:
        with suppress(OSError):  # who listened is gone
            self._control.sendall(line.encode() + b"\n")


def send_order(control: socket.socket, fields: dict[str, Any], descriptors: list[int]) -> None:
    """Order a command: the fields of `BoxOrder` but for its descriptors (directory, input, output, errors)."""
    body = json.dumps(fields).encode()
    socket.send_fds(control, [len(body).to_bytes(4, "big")], descriptors)
    control.sendall(body)


def _read_order(control: socket.socket, length: int, descriptors: list[int]) -> BoxOrder:
    body = bytearray()
    while len(body) < min(length, MAX_ORDER_BYTES):
        piece = control.recv(length - len(body))
        if not piece:
            raise OSError(32, "start")
        body += piece
    fields = json.loads(body)
    fields["box"] = Box.from_fields(fields["box"])
    return BoxOrder(**fields, directory=descriptors[0], streams=(descriptors[1], descriptors[2], descriptors[3]))
