"""Decide about the few system calls of a box that neither mounts nor Landlock can decide about, and make them.

A read-only mount does not keep a program from connecting to the socket of a daemon, and Landlock knows neither that nor
changes of modes and times. The kernel stops such a call and notifies us (seccomp's user notification): we copy its
arguments from the caller's memory once, decide about the copy, and make the call ourselves with descriptors we hold,
so nothing that the caller changes meanwhile counts. If we are gone, the calls fail. Standard library only.

With mounts, `connect` is the only such call. Without them modes and times of files are decided here too.
"""

from __future__ import annotations

import _thread
import ctypes
import errno
import os
import re
import select
import socket
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from fcntl import ioctl

from ollm.system.sandbox.box import is_inside
from ollm.system.sandbox.kernel import AT_EMPTY_PATH, AT_FDCWD, NAMES, call

_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RECEIVE, _SEND, _STILL_VALID = 0xC0502100, 0xC0182101, 0x40082102
_AF_UNIX = socket.AF_UNIX.to_bytes(2, "little")
_RESOLVE_NO_MAGICLINKS = 2
_OWN_DESCRIPTOR = re.compile(r"/proc/(?:self|thread-self)/fd/([0-9]{1,9})")
AT_SYMLINK_NOFOLLOW = 0x100
MAX_ADDRESS_BYTES, MAX_PATH_BYTES, PAGE_BYTES = 128, 4096, 4096


class BoxDeniedError(OSError):
    """The box does not allow it; `filename` is the path."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EACCES, os.strerror(errno.EACCES), path)


class Broker:
    """Answers the notifications of one box. `reachable` are the places whose sockets and files belong to the box;
    `on_denied` receives every path that was refused."""

    def __init__(self, listener: int, reachable: list[str], on_denied: Callable[[str], None]) -> None:
        self._listener = listener
        self._reachable = reachable
        self._on_denied = on_denied

    def serve(self, ending: int) -> None:
        """Answer until nobody is left to ask or `ending` becomes readable."""
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(ending, select.POLLIN)
        while True:
            for descriptor, events in poll.poll():
                if descriptor == ending or not events & select.POLLIN or not self._answer():
                    return

    def _answer(self) -> bool:
        request = bytearray(_NOTIFICATION.size)
        try:
            ioctl(self._listener, _RECEIVE, request, True)
        except OSError as error:
            return error.errno in (errno.EINTR, errno.ENOENT)
        identity, thread, _, number, _, _, *words = _NOTIFICATION.unpack(request)
        try:
            work = self._prepare(NAMES.get(number, ""), thread, words)
            ioctl(self._listener, _STILL_VALID, struct.pack("=Q", identity))  # the memory we read was the caller's
        except OSError as error:
            self._send(identity, error)
        else:
            _thread.start_new_thread(self._work, (identity, work))  # a connection may take its time
        return True

    def _work(self, identity: int, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            self._send(identity, error)
        except (ValueError, OverflowError):
            self._send(identity, OSError(errno.EINVAL, ""))
        else:
            self._send(identity, None)

    def _send(self, identity: int, error: OSError | None) -> None:
        if isinstance(error, BoxDeniedError):
            self._on_denied(str(error.filename))
        number = -(error.errno or errno.EIO) if error is not None else 0
        with suppress(OSError):  # the caller is gone
            ioctl(self._listener, _SEND, struct.pack("=QqiI", identity, 0, number, 0))

    def _prepare(self, name: str, thread: int, words: list[int]) -> Callable[[], None]:
        """Copy the arguments of a call; the result makes the call."""
        match name:
            case "connect":
                address = read_memory(thread, words[1], min(words[2] & 0xFFFFFFFF, MAX_ADDRESS_BYTES))
                held = take_descriptor(thread, words[0])
                return lambda: self._connect(thread, held, address)
            case "fchmod":
                held = take_descriptor(thread, words[0])
                return lambda: self._change(held, lambda file: os.chmod(file, words[1] & 0o7777))
            case "chmod" | "fchmodat" | "fchmodat2":
                directory, (place, mode, flags, *_) = (AT_FDCWD, words) if name == "chmod" else (words[0], words[1:])
                held = open_path(thread, directory, read_text(thread, place), flags if name == "fchmodat2" else 0)
                return lambda: self._change(held, lambda file: os.chmod(file, mode & 0o7777))
            case "utimensat":
                path = read_text(thread, words[1]) if words[1] else ""
                times = read_memory(thread, words[2], 32) if words[2] else None
                held = open_path(thread, words[0], path, words[3] if path else AT_EMPTY_PATH)
                return lambda: self._change(held, lambda file: _set_times(file, times))
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    def _connect(self, thread: int, held: int, address: bytes) -> None:
        """Connect the caller's socket to a copy of the address. A socket with a path must be one of the box's own."""
        target = -1
        try:
            path = address[2:].split(b"\0")[0]
            if get_socket_family(held) == socket.AF_UNIX and address[:2] == _AF_UNIX and path:
                target = open_path(thread, AT_FDCWD, os.fsdecode(path), 0)
                self._check(target)
                address = _AF_UNIX + f"/proc/self/fd/{target}\0".encode()
            call("connect", held, address, len(address))
        finally:
            for descriptor in (held, target):
                if descriptor >= 0:
                    os.close(descriptor)

    def _change(self, held: int, change: Callable[[str], None]) -> None:
        """Change what is said about a file, through a descriptor of the very file that was looked at."""
        try:
            if not stat.S_ISCHR(os.fstat(held).st_mode):
                self._check(held)
            change(f"/proc/self/fd/{held}")
        finally:
            os.close(held)

    def _check(self, held: int) -> None:
        path = os.readlink(f"/proc/self/fd/{held}")
        if not any(is_inside(path, place) for place in self._reachable):
            raise BoxDeniedError(path)


def read_memory(thread: int, address: int, length: int) -> bytes:
    """Copy up to a page from the memory of a thread."""
    buffer = ctypes.create_string_buffer(length)
    ours = struct.pack("@PN", ctypes.addressof(buffer), length)
    theirs = struct.pack("@PN", address, length)
    count = call("process_vm_readv", thread, ours, 1, theirs, 1, 0)
    return buffer.raw[:count]


def read_text(thread: int, address: int) -> str:
    """Read a path page by page: it may end just before memory that is not mapped."""
    text = b""
    while len(text) <= MAX_PATH_BYTES:
        place = address + len(text)
        piece = read_memory(thread, place, PAGE_BYTES - place % PAGE_BYTES)
        text += piece
        if b"\0" in piece:
            return os.fsdecode(text.split(b"\0")[0])
    raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))


def open_path(thread: int, directory: int, path: str, flags: int) -> int:
    """Open what a path of the caller names, without access to its contents. Of the links of /proc, which would mean us
    instead of the caller, those to its own open files are understood and the others refused."""
    if not path:
        if not flags & AT_EMPTY_PATH:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return take_descriptor(thread, directory)
    if found := _OWN_DESCRIPTOR.fullmatch(path):
        return take_descriptor(thread, int(found[1]))
    own = "cwd" if to_signed(directory) == AT_FDCWD else f"fd/{to_signed(directory)}"
    start = os.open("/" if path.startswith("/") else f"/proc/{thread}/{own}", os.O_PATH | os.O_CLOEXEC)
    kind = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if flags & AT_SYMLINK_NOFOLLOW else 0)
    try:
        return call("openat2", start, os.fsencode(path), struct.pack("=QQQ", kind, 0, _RESOLVE_NO_MAGICLINKS), 24)
    except OSError as error:
        raise BoxDeniedError(path) if error.errno == errno.ELOOP else error from None
    finally:
        os.close(start)


def take_descriptor(thread: int, number: int) -> int:
    """Duplicate an open file of the caller."""
    with open(f"/proc/{thread}/status", "rb") as status:
        leader = next(int(line.split()[1]) for line in status if line.startswith(b"Tgid:"))
    process = call("pidfd_open", leader, 0)
    try:
        return call("pidfd_getfd", process, to_signed(number), 0)
    finally:
        os.close(process)


def get_socket_family(descriptor: int) -> int:
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        return copy.getsockopt(socket.SOL_SOCKET, 39)  # SO_DOMAIN


def to_signed(value: int) -> int:
    """A descriptor as the caller passed it: the lower half of a register."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _set_times(file: str, times: bytes | None) -> None:
    call("utimensat", AT_FDCWD, os.fsencode(file), times, 0)
