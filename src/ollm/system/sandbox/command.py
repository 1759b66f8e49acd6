"""Start one command in a box, from two threads of the process that hosts boxes.

The first thread takes a mount namespace of its own, makes the mounts, restricts itself and becomes the broker. The
second, started by it, inherits all that, installs the seccomp filter and starts the command, which inherits the
filter in turn; then it ends. Standard library only.
"""

from __future__ import annotations

import _thread
import ctypes
import fcntl
import json
import os
import struct
import subprocess
import termios
from collections.abc import Callable
from typing import NamedTuple

from ollm.system.sandbox import kernel
from ollm.system.sandbox.box import TEMPORARY_PLACES, Box, is_inside
from ollm.system.sandbox.broker import Broker
from ollm.system.sandbox.landlock import PLAIN_DEVICES, restrict_box
from ollm.system.sandbox.mounts import mount_for_command
from ollm.system.sandbox.seccomp import build_box_filter

FILE_CAPABILITIES = sum(1 << one for one in (0, 1, 3, 4, 6, 7))  # over owners and permissions; for root only
BROKER_CAPABILITIES = 1 << 5 | 1 << 19  # KILL, SYS_PTRACE: to read the paths of processes that cannot be dumped
CLONE_FS = 0x200
MAX_DENIALS = 8


class BoxOrder(NamedTuple):
    """What to run. `streams` are descriptors of its input, output and errors, `directory` one of where it runs."""

    box: Box
    argv: list[str]
    environment: dict[str, str]
    directory: int
    streams: tuple[int, int, int]
    terminal: bool = False


class BoxStartError(OSError):
    """The command could not be started; `filename` is what failed: `cwd`, `program` or `start`."""

    def __init__(self, error: OSError, where: str) -> None:
        super().__init__(error.errno or 5, error.strerror or str(error), where)


class BoxedCommand:
    """Starts an order in a box. `network` is the session's network namespace; without it there are no namespaces, or
    the box has a wrapper that made them."""

    def __init__(self, order: BoxOrder, network: tuple[int, ...], say: Callable[[str], None]) -> None:
        self._order = order
        self._box = order.box
        self._network = network
        self._mounted = bool(network or order.box.wrapper)
        self._say = say
        self._started = _thread.allocate_lock()
        self._broken: BoxStartError | None = None
        self._child = 0
        self._listener = -1
        self._denied: set[str] = set()
        self._ending, self._end = os.pipe()

    def start(self) -> int:
        """The process id of the command, as seen from inside."""
        self._started.acquire()
        _thread.start_new_thread(self._run_broker_thread, ())  # it has mounts of its own
        self._started.acquire()
        if self._broken is not None:
            raise self._broken
        return self._child

    def close(self) -> None:
        """Nothing is left of the command: its broker ends."""
        os.close(self._end)

    @property
    def _needs_broker(self) -> bool:
        """A reading box has no sockets, so with mounts nothing is left to decide."""
        return self._box.kind == "working" or not self._mounted

    def _run_broker_thread(self) -> None:
        try:
            where = "start"
            self._enter()
            where = "cwd"
            self._change_directory()
            where = "start"
            self._restrict()
        except OSError as error:
            self._fail(BoxStartError(error, where))
            return
        if not self._needs_broker:
            self._run_command_thread()
            return
        terminal = os.dup(self._order.streams[1]) if self._order.terminal else -1
        filtered = _thread.allocate_lock()
        filtered.acquire()
        _thread.start_new_thread(self._run_command_thread, (filtered,))
        filtered.acquire()
        if self._listener >= 0:
            self._serve_broker(terminal)

    def _enter(self) -> None:
        """Mounts of our own, and the session's network."""
        if self._network:
            if self._box.network != "all" or self._box.kind == "reading":
                kernel.call("setns", self._network[0], kernel.CLONE_NEWNET)
            kernel.call("unshare", kernel.CLONE_NEWNS | CLONE_FS)
            mount_for_command(self._box)
        else:
            kernel.call("unshare", CLONE_FS)

    def _change_directory(self) -> None:
        """By its name: the descriptor leads to the directory as it is outside. In the workspace it is the very same."""
        if not self._mounted:
            os.fchdir(self._order.directory)
            return
        place = os.readlink(f"/proc/thread-self/fd/{self._order.directory}")
        os.chdir(place)
        seen, meant = os.stat("."), os.fstat(self._order.directory)
        if is_inside(place, self._box.workspace) and (seen.st_dev, seen.st_ino) != (meant.st_dev, meant.st_ino):
            raise FileNotFoundError(2, "is another directory by now")

    def _restrict(self) -> None:
        """Landlock and the loss of capabilities, for this thread and what comes from it. A process under Landlock can
        change no mounts either, in a namespace of its own neither."""
        restrict_box(self._box, mounted=self._mounted)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        _keep_capabilities(BROKER_CAPABILITIES if self._network else 0)

    def _run_command_thread(self, filtered: _thread.LockType | None = None) -> None:
        try:
            kernel.call("unshare", CLONE_FS)
            _keep_capabilities(0)
            reading = self._box.kind == "reading"
            loopback_without_mounts = self._box.network == "loopback" and not self._mounted
            rules = build_box_filter(
                network=self._box.network != "none" and not reading and not loopback_without_mounts,
                unix_sockets=not reading,
                namespaces=self._mounted,
                protects_files=bool(self._box.protected) and not self._mounted,
            )
            self._listener = rules.install(listen=filtered is not None)
        except OSError as error:
            self._fail(BoxStartError(error, "start"))
            return
        finally:
            if filtered is not None:
                filtered.release()
        try:
            self._child = self._start_command()
            self._started.release()
        except OSError as error:
            self._fail(BoxStartError(error, "program"))
        except (ValueError, subprocess.SubprocessError):
            self._fail(BoxStartError(OSError(22, "Invalid argument"), "program"))

    def _start_command(self) -> int:
        source, output, errors = self._order.streams
        kernel.call("close_range", 3, 0xFFFFFFFF, 4)  # CLOSE_RANGE_CLOEXEC
        process = subprocess.Popen(
            self._order.argv,
            env=self._order.environment,
            stdin=source,
            stdout=output,
            stderr=errors,
            close_fds=False,  # they do so by themselves
            start_new_session=True,
            preexec_fn=_take_terminal if self._order.terminal else None,  # noqa: PLW1509 - what it does is two calls
        )
        process.returncode = 0  # collected elsewhere
        return process.pid

    def _fail(self, error: BoxStartError) -> None:
        self._broken = error
        self._started.release()

    def _serve_broker(self, terminal: int) -> None:
        box = self._box
        os.umask(0)  # the caller's is applied
        private = list(TEMPORARY_PLACES) if self._mounted else [box.scratch, *PLAIN_DEVICES]
        reachable = [*box.list_writable(), *filter(None, private)]
        try:
            Broker(self._listener, box, reachable, self._tell_denied, terminal).serve(self._ending)
        finally:
            for descriptor in {self._listener, self._ending, terminal} - {-1}:
                os.close(descriptor)

    def _tell_denied(self, path: str) -> None:
        if len(self._denied) < MAX_DENIALS and path not in self._denied:
            self._denied.add(path)
            self._say(f"denied {json.dumps(path)}")


def _keep_capabilities(mask: int) -> None:
    """Of this thread. What it starts gets no more: no_new_privs holds that down, for root too."""
    kept = mask | (FILE_CAPABILITIES if os.geteuid() == 0 else 0)
    header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0), 8)
    low = kept & 0xFFFFFFFF
    try:
        kernel.call("capset", header, ctypes.create_string_buffer(struct.pack("=IIIIII", low, low, 0, 0, 0, 0), 24))
    except PermissionError:
        kernel.call("capset", header, ctypes.create_string_buffer(24))  # we never had them: then none at all


def _take_terminal() -> None:
    fcntl.ioctl(1, termios.TIOCSCTTY, 0)
