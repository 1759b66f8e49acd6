"""Starts commands in their own sessions; finds and ends all descendants of this process. Standard library only:
supervisors use it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"


def become_subreaper() -> None:
    """Reparent orphaned descendants to this process, so that none is lost. Linux only."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def make_undumpable() -> None:
    """Prevent other processes of this user from reading our memory and environment in /proc. Linux only."""
    _prctl(PR_SET_DUMPABLE, 0)


def wake_on_signals(*numbers: int) -> int:
    """Return a descriptor from which the numbers of these signals can be read. They have no other effect."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return reading


def receive_exactly(control: socket.socket, length: int) -> bytes:
    """Receive `length` bytes. Raises EOFError if the other end is closed before."""
    data = bytearray()
    while len(data) < length:
        piece = control.recv(length - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def start_session(
    argv: Sequence[str],
    environment: Mapping[str, str],
    streams: Sequence[int],
    *,
    terminal: bool,
    close_others: bool = True,
) -> int:
    """Start a command with these descriptors as its streams and return its process id; the caller reaps it. With
    `terminal`, its output becomes the controlling terminal. Raises OSError."""
    import subprocess

    try:
        child = subprocess.Popen(
            argv,
            env=environment,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            close_fds=close_others,
            start_new_session=True,
            preexec_fn=_take_terminal if terminal else None,  # noqa: PLW1509 - what it does is two calls
        )
    except (ValueError, subprocess.SubprocessError) as error:
        raise OSError(22, "Invalid argument") from error
    child.returncode = 0  # The process is reaped elsewhere.
    return child.pid


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(1, termios.TIOCSCTTY, 0)


def find_descendants(roots: Iterable[int]) -> set[int]:
    """Return the descendants of these processes, without the roots."""
    children = map_children()
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        for process in children.get(waiting.pop(), []):
            found.add(process)
            waiting.append(process)
    return found


def kill_all(roots: Iterable[int], *, also: Iterable[int] = ()) -> None:
    """Kill the descendants of the roots, and the processes in `also`. All of them are stopped first, so that none can
    start another process meanwhile."""
    stopped: set[int] = set()
    roots, found = list(roots), set(also)
    while found := (found | find_descendants(roots)) - stopped:
        send_signal(found, signal.SIGSTOP)
        stopped |= found
    send_signal(stopped, signal.SIGKILL)


def send_signal(processes: Iterable[int], number: int) -> None:
    for process in processes:
        with suppress(OSError):  # The process may be gone or belong to another user.
            os.kill(process, number)


def map_children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for process, parent in list_from_proc() if LINUX else list_from_ps():
        children.setdefault(parent, []).append(process)
    return children


def list_from_proc() -> list[tuple[int, int]]:
    """List every process with its parent, from /proc on Linux."""
    pairs = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                status = os.open(f"/proc/{entry.name}/stat", os.O_RDONLY)
                line = os.read(status, 1024)
                os.close(status)
                pairs.append((int(entry.name), int(line.rpartition(b")")[2].split()[1])))
    return pairs


def list_from_ps() -> list[tuple[int, int]]:
    """List every process with its parent, on systems without /proc."""
    import subprocess

    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
    return [(int(pid), int(parent)) for pid, parent in (line.split() for line in listing.splitlines())]


def _prctl(option: int, value: int) -> None:
    if not LINUX:
        return
    try:
        import _ctypes  # It loads in a quarter of the time that ctypes takes.

        _ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl"), (option, value, 0, 0, 0))  # type: ignore[arg-type]  # None is this process
    except (ImportError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
