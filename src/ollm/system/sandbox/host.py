"""The first process in the sandboxes that one supervisor runs for one session, one command after the other.

It has its own namespaces: processes, shared memory, and mounts copied from the session's. Each command is started by
two of its threads, which share the interpreter's memory and cost nothing, while each has its own mounts, capabilities,
Landlock and seccomp. The first thread enters a mount namespace, makes the mounts, restricts itself and becomes the
broker. The second, started by the first, inherits all that, installs the seccomp filter, starts the command, which
inherits the filter in turn, and ends. Standard library only.

The control socket receives an order as JSON with four descriptors (directory, input, output, errors). It sends lines:
`started PID` or `failed ERRNO WHERE`, `denied PATH` (as JSON), `exited CODE` (of the command itself), `gone` when all
its processes have ended. When the socket is closed, everything ends.
"""

from __future__ import annotations

import _thread
import errno
import json
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ollm.system.path_names import is_inside
from ollm.system.process_tree import kill_all, receive_exactly, start_session, wake_on_signals
from ollm.system.sandbox import kernel
from ollm.system.sandbox.box import SCRATCH_PREFIX, TEMPORARY_PLACES, Box
from ollm.system.sandbox.broker import Broker
from ollm.system.sandbox.landlock import PLAIN_DEVICES, restrict_box
from ollm.system.sandbox.mounts import mount_for_command
from ollm.system.sandbox.seccomp import build_box_filter

# Over owners and permissions, for root only. Without FSETID (4) a file that is written loses setuid and setgid.
FILE_CAPABILITIES = sum(1 << one for one in (0, 1, 3, 6, 7))
BROKER_CAPABILITIES = 1 << 5 | 1 << 19  # KILL and SYS_PTRACE, to read paths of undumpable processes.
CLONE_FS = 0x200
MAX_DENIALS = 8
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class BoxedCommand:
    """Starts an order in a box. `descriptors` are those of its directory and its streams. `network` is the session's
    network namespace; if empty, there are no namespaces, or a wrapper made them."""

    def __init__(
        self, order: dict[str, Any], descriptors: list[int], network: tuple[int, ...], say: Callable[[str], None]
    ) -> None:
        self._order = order
        self._directory, *self._streams = descriptors
        self._box = Box.from_fields(order["box"])
        self._terminal = bool(order.get("terminal"))
        self._network = network
        self._mounted = bool(network or self._box.wrapper)
        self._say = say
        self._started = _thread.allocate_lock()
        self._failure = ""
        self._child = 0
        self._listener = -1
        self._denied: set[str] = set()
        self._ending, self._end = os.pipe()

    def start(self) -> int:
        """Start and report. Return the command's process id inside the namespace, or 0 if it could not be started."""
        self._started.acquire()
        try:
            self._start_thread(self._run_broker_thread)  # This thread has its own mounts.
        except OSError as error:
            self._fail(error, "start")
        self._started.acquire()
        self._say(self._failure or f"started {self._child}")
        return self._child

    def close(self) -> None:
        """End the broker, after the last process of the command."""
        os.close(self._end)

    def _run_broker_thread(self) -> None:
        try:
            where = "start"
            self._enter()
            where = "cwd"
            self._change_directory()
            where = "start"
            self._restrict()
        except OSError as error:
            self._fail(error, where)
            return
        if self._box.kind == "reading":  # A reading box has no sockets, so it needs no broker.
            self._run_command_thread()
            return
        terminal = os.dup(self._streams[1]) if self._terminal else -1
        filtered = _thread.allocate_lock()
        filtered.acquire()
        try:
            self._start_thread(self._run_command_thread, filtered)
        except OSError as error:
            self._fail(error, "start")
            return
        filtered.acquire()
        if self._listener >= 0:
            self._serve_broker(terminal)

    def _enter(self) -> None:
        """Enter a private mount namespace and the session's network."""
        if self._network:
            if self._box.network != "all" or self._box.kind == "reading":
                kernel.call("setns", self._network[0], kernel.CLONE_NEWNET)
            kernel.call("unshare", kernel.CLONE_NEWNS | CLONE_FS)
            mount_for_command(self._box)
        else:
            with suppress(PermissionError):  # Some containers forbid it, and no other command shares the directory.
                kernel.call("unshare", CLONE_FS)

    def _change_directory(self) -> None:
        """Change directory by name, since the descriptor is from outside; check that it is the same directory."""
        if not self._mounted:
            os.fchdir(self._directory)
            return
        place = os.readlink(f"/proc/thread-self/fd/{self._directory}")
        os.chdir(place)
        seen, meant = os.stat("."), os.fstat(self._directory)
        if is_inside(place, self._box.workspace) and (seen.st_dev, seen.st_ino) != (meant.st_dev, meant.st_ino):
            raise FileNotFoundError(2, "is another directory by now")

    def _restrict(self) -> None:
        """Apply Landlock and drop capabilities, for this thread and its children. Under Landlock a process cannot
        change mounts either, even in its own namespace."""
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        restrict_box(self._box, mounted=self._mounted)
        _keep_capabilities(BROKER_CAPABILITIES if self._network else 0)

    def _run_command_thread(self, filtered: _thread.LockType | None = None) -> None:
        try:
            with suppress(PermissionError):
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
            self._fail(error, "start")
            return
        finally:
            if filtered is not None:
                filtered.release()
        try:
            kernel.call("close_range", 3, 0xFFFFFFFF, 4)  # The flag is CLOSE_RANGE_CLOEXEC.
            argv, environment = self._order["argv"], self._order["environment"]
            self._child = start_session(argv, environment, self._streams, terminal=self._terminal, close_others=False)
            self._started.release()
        except OSError as error:
            self._fail(error, "program")

    def _start_thread(self, function: Callable[..., None], *arguments: object) -> None:
        def run() -> None:
            try:
                function(*arguments)
            except Exception:  # noqa: BLE001 - an agent that heard nothing would wait for ever
                if self._started.locked():
                    self._fail(OSError(errno.EIO, os.strerror(errno.EIO)), "start")

        try:
            _thread.start_new_thread(run, ())
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, "no thread could be started") from error

    def _fail(self, error: OSError, where: str) -> None:
        self._failure = f"failed {error.errno or 5} {where}"
        self._started.release()

    def _serve_broker(self, terminal: int) -> None:
        box = self._box
        with suppress(PermissionError):
            kernel.call("unshare", CLONE_FS)
            os.umask(0)  # The broker applies the caller's mask.
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
    """Drop this thread's other capabilities. Its children cannot regain them: no_new_privs, also for root."""
    kept = mask | (FILE_CAPABILITIES if os.geteuid() == 0 else 0)
    header = struct.pack("=Ii", 0x20080522, 0)
    try:
        kernel.call("capset", header, struct.pack("=IIIIII", kept, kept, 0, 0, 0, 0))
    except PermissionError:
        kernel.call("capset", header, bytes(24))  # We never had these capabilities.


def start_host(namespaces: tuple[int, ...]) -> tuple[socket.socket, int]:
    """Start a host process in a session's namespaces (none: with Landlock alone). Return its control socket and process
    id. The caller must be single-threaded, and a subreaper if it wants to reap the process."""
    import subprocess  # noqa: F401 - needed in the box, which may not show Python's own library

    ours, theirs = socket.socketpair()
    first = os.fork()
    if first == 0:
        try:
            ours.close()
            signal.set_wakeup_fd(-1)  # The descriptor is the parent's.
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
    """Join the session's namespaces, create our own and become the first process in them."""
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
    """Serve as the host process in namespaces made by bubblewrap, as the first process in them."""
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
    """Loop of the host process: takes an order, starts it, reaps processes, then takes the next."""

    def __init__(self, control: socket.socket, network: tuple[int, ...]) -> None:
        self._control = control
        self._network = network
        self._command: BoxedCommand | None = None
        self._child = 0

    def serve(self) -> None:
        waking = wake_on_signals(signal.SIGCHLD)
        for number in PASSED_ON:
            signal.signal(number, self._pass_on)
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
            if self._command is not None:
                self._collect()

    def _take_order(self) -> bool:
        """Start the next order. Return False if there are no more orders."""
        length, descriptors, _, _ = socket.recv_fds(self._control, 4, 4, socket.MSG_CMSG_CLOEXEC)
        if len(length) < 4:
            return False
        with suppress(OSError):  # Our parent may be gone by now.
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        order = json.loads(receive_exactly(self._control, int.from_bytes(length, "big")))
        self._command = BoxedCommand(order, descriptors, self._network, self._say)
        self._child = self._command.start()
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _collect(self) -> None:
        """Reap ended processes and report the exit of the command."""
        lines, process = [], -1
        with suppress(ChildProcessError):
            while process:
                process, status = os.waitpid(-1, os.WNOHANG)
                if process and process == self._child:
                    self._child = 0
                    lines.append(f"exited {os.waitstatus_to_exitcode(status)}")
        if process:  # The command's last process has ended.
            assert self._command is not None
            self._command.close()
            self._command = None
            lines.append("gone")
        if lines:
            self._say("\n".join(lines))

    def _pass_on(self, number: int, _frame: object) -> None:
        if self._child:
            with suppress(OSError):
                os.kill(self._child, number)

    def _say(self, line: str) -> None:
        with suppress(OSError):  # The listener may be gone.
            self._control.sendall(line.encode() + b"\n")


def send_order(control: socket.socket, body: bytes, descriptors: list[int]) -> None:
    """Send a command: `box`, `argv`, `environment` and `terminal` as JSON, and its descriptors (directory, input,
    output, errors)."""
    socket.send_fds(control, [len(body).to_bytes(4, "big")], descriptors)
    control.sendall(body)


class BoxRunner:
    """Keeps the first process of a sandbox, sends it commands, one at a time, and reads their results. The next command
    of the same session reuses the process."""

    def __init__(self) -> None:
        self.host = self._inner = 0
        self.finished = True
        self._session = ""
        self._control: socket.socket | None = None
        self._heard = b""
        self._scratches: set[str] = set()

    def start(self, command: dict[str, Any], body: bytes, descriptors: list[int]) -> None:
        """Send a command, received as `body`. `descriptors` are its directory, its three streams, and the session's
        namespaces."""
        box = Box.from_fields(command["box"])
        if f"/{SCRATCH_PREFIX}" in box.scratch:  # Only directories made for sandboxes may be deleted.
            self._scratches.add(box.scratch)
        self._keep_host(box, command["session"], tuple(descriptors[4:]))
        assert self._control is not None
        self.finished, self._heard = False, b""
        try:
            send_order(self._control, body, descriptors[:4])
        except OSError:
            self.stop()
            raise

    def _keep_host(self, box: Box, session: str, namespaces: tuple[int, ...]) -> None:
        """Reuse the last command's process if the session, or the box made by a wrapper, is the same."""
        session = f"{session} {box._replace(since=0)}" if box.wrapper else session
        if self._control is not None and self._session == session:
            return
        self.stop()
        if box.wrapper:
            from ollm.system.sandbox.bubblewrap import start_wrapped_host

            self._control, self.host, self._inner = start_wrapped_host(box)
        else:
            self._control, self.host = start_host(namespaces)
        self._session = session

    @property
    def processes(self) -> set[int]:
        """The processes of the sandbox itself, which end after all others."""
        return {self.host, self._inner}

    @property
    def descriptor(self) -> int:
        """Descriptor that is readable when lines have arrived; -1 without a process."""
        return -1 if self._control is None else self._control.fileno()

    def read_lines(self) -> list[bytes]:
        """Return the lines to pass on. `finished` is then True if the command and its descendants are gone."""
        data = b""
        if self._control is not None:
            with suppress(OSError):
                data = self._control.recv(65_536)
        if not data:
            self.forget()
            return []
        *lines, self._heard = (self._heard + data).split(b"\n")
        self.finished = b"gone" in lines
        return [line for line in lines if line != b"gone"]

    def forget(self) -> None:
        """Reset the state after the process, and with it everything in the box, has ended."""
        if self._control is not None:
            self._control.close()
        self._control, self.host, self._inner, self.finished = None, 0, 0, True

    def remove_scratches(self) -> None:
        """Remove the temporary directories of the boxes: no other process will, and their creator may have been
        killed."""
        if self._scratches:
            import shutil

            for scratch in self._scratches:
                shutil.rmtree(scratch, ignore_errors=True)

    def stop(self) -> None:
        """Close the connection, which ends the process, and reap it."""
        host = self.host
        self.forget()
        if host:
            with suppress(ChildProcessError):
                os.waitpid(host, 0)
