"""Decide about the few system calls of a box that neither mounts nor Landlock can decide about, and make them.

A read-only mount does not keep a program from connecting to the socket of a daemon, and Landlock knows neither that nor
changes of modes and times, and cannot take back a file from a folder that may be written. The kernel stops such a call
and notifies us (seccomp's user notification): we copy its arguments from the caller's memory once, decide about the
copy, and make the call ourselves with descriptors we hold, so nothing that the caller changes meanwhile counts. If we
are gone, the calls fail. Standard library only.

With mounts, `connect` is the only such call. Without them the calls that change files are answered too (`file_calls`).
"""

from __future__ import annotations

import _thread
import errno
import os
import select
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from fcntl import ioctl

from ollm.system.sandbox.box import Box, is_inside
from ollm.system.sandbox.caller import BoxDeniedError, Caller
from ollm.system.sandbox.file_calls import FileCalls, OpenedFile, Work
from ollm.system.sandbox.kernel import AT_FDCWD, NAMES, call

_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RECEIVE, _SEND, _STILL_VALID, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_SET_FLAGS, _WAKE_IN_TURN = 0x40082104, 1
_SEND_TOO = 2
_AF_UNIX = socket.AF_UNIX.to_bytes(2, "little")
MAX_ADDRESS_BYTES = 128
ERRORS = (OSError, ValueError, OverflowError)


class Broker:
    """Answers the notifications of one box. `reachable` are the places whose sockets and files belong to the box;
    `on_denied` receives every path that was refused; `terminal` is a descriptor of the command's terminal, or -1."""

    def __init__(
        self, listener: int, box: Box, reachable: list[str], on_denied: Callable[[str], None], terminal: int
    ) -> None:
        self._listener = listener
        self._reachable = reachable
        self._on_denied = on_denied
        self._files = FileCalls(box, self._check, terminal)
        with suppress(OSError):  # a newer kernel hands the processor over to us and back, which saves waiting
            ioctl(listener, _SET_FLAGS, _WAKE_IN_TURN)

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
        name, caller = NAMES.get(number, ""), Caller(thread, words)
        try:
            work = self._prepare_connection(caller) if name == "connect" else self._files.prepare(name, caller)
            self._check_valid(identity)  # the memory we read was the caller's
        except ERRORS as error:
            caller.close()
            self._send(identity, error)
            return True
        self._work(identity, work, caller)
        return True

    def _work(self, identity: int, work: Work, caller: Caller) -> None:
        try:
            done = work()
        except ERRORS as error:
            self._send(identity, error)
        else:
            if callable(done):
                _thread.start_new_thread(self._work, (identity, done, caller))
                return
            if done is None:
                self._send(identity, None)
            else:
                self._hand_over(identity, done)
        caller.close()

    def _check_valid(self, identity: int) -> None:
        ioctl(self._listener, _STILL_VALID, struct.pack("=Q", identity))

    def _send(self, identity: int, error: Exception | None) -> None:
        if isinstance(error, BoxDeniedError):
            self._on_denied(str(error.filename))
        number = 0
        if error is not None:
            number = -((error.errno or errno.EIO) if isinstance(error, OSError) else errno.EINVAL)
        with suppress(OSError):  # the caller is gone
            ioctl(self._listener, _SEND, struct.pack("=QqiI", identity, 0, number, 0))

    def _hand_over(self, identity: int, opened: OpenedFile) -> None:
        """Put an open file of ours among those of the caller."""
        request = struct.pack("=QIIII", identity, _SEND_TOO, opened.descriptor, 0, opened.flags & os.O_CLOEXEC)
        try:
            ioctl(self._listener, _ADD_DESCRIPTOR, request)
        except OSError as error:
            self._send(identity, error)
        finally:
            os.close(opened.descriptor)

    def _prepare_connection(self, caller: Caller) -> Work:
        """Connect the caller's socket to a copy of the address. A socket with a path must be one of the box's own."""
        number, place, length, *_ = caller.words
        address = caller.read_memory(place, min(length & 0xFFFFFFFF, MAX_ADDRESS_BYTES))
        held = caller.take_descriptor(number)

        def connect() -> None:
            where, path = address, address[2:].split(b"\0")[0]
            if _get_socket_family(held) == socket.AF_UNIX and address[:2] == _AF_UNIX and path:
                target = caller.open_path(AT_FDCWD, os.fsdecode(path))
                self._check(os.readlink(f"/proc/self/fd/{target}"))
                where = _AF_UNIX + f"/proc/self/fd/{target}\0".encode()
            call("connect", held, where, len(where))

        return lambda: connect

    def _check(self, path: str) -> None:
        if not any(is_inside(path, place) for place in self._reachable):
            raise BoxDeniedError(path)


def _get_socket_family(descriptor: int) -> int:
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        return copy.getsockopt(socket.SOL_SOCKET, 39)  # SO_DOMAIN
