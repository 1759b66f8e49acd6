"""Decides, for the processes of a box, about every file they want to write or name, and does it for them.

Mounts and Landlock know paths that exist; that `.mcp.json` must not come to be in any directory takes a look at the
name. The kernel stops such a call and tells us (seccomp's notifications); we read the path out of the caller's
memory once, decide on our own copy of it and do the work ourselves, in the caller's stead: what the caller changes
meanwhile changes nothing. When we are gone the calls fail. Standard library only.
"""

from __future__ import annotations

import _thread
import errno
import os
import signal
import struct
from collections.abc import Callable
from contextlib import suppress
from fcntl import ioctl

from ollm.system.sandbox.caller import BoxedCaller, CallerMasks, CallerMemory
from ollm.system.sandbox.file_calls import BlockingOpenError, FileCalls, OpenedFile, PendingConnectError
from ollm.system.sandbox.kernel import NAMES, get_call_number
from ollm.system.sandbox.rules import BoxDeniedError, BoxRules

_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RECEIVE, _SEND, _STILL_VALID, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_SET_FLAGS = 0x40082104
_SEND_TOO, _CONTINUE = 2, 1
_UMASK = get_call_number("umask")
CHECK_SECONDS = 0.5


class Broker:
    """Answers the notifications of one box. `on_denied` hears of each path that was refused; `terminal` is a descriptor
    of the command's terminal, or -1."""

    def __init__(self, listener: int, rules: BoxRules, on_denied: Callable[[str], None], terminal: int) -> None:
        self._listener = listener
        self._calls = FileCalls(rules, terminal)
        self._on_denied = on_denied
        self._memory, self._masks = CallerMemory(), CallerMasks()
        os.umask(0)  # the caller's is applied
        with suppress(OSError):  # a newer kernel hands the processor over to us and back, which saves waiting
            ioctl(listener, _SET_FLAGS, 1)

    def answer(self) -> bool:
        """Take one notification and answer it. False when there will be none any more."""
        request = bytearray(_NOTIFICATION.size)
        try:
            ioctl(self._listener, _RECEIVE, request, True)
        except OSError as error:
            return error.errno in (errno.EINTR, errno.ENOENT)
        identity, thread, _, number, _, _, *arguments = _NOTIFICATION.unpack(request)
        if number == _UMASK:  # its argument is the number itself: the kernel does it as it was asked
            self._masks.note_change(thread, arguments[0])
            self._continue(identity)
            return True
        caller = BoxedCaller(thread, self._memory, self._masks)
        try:
            self._act(identity, NAMES.get(number, ""), caller, arguments)
        finally:
            caller.close()
        return True

    def _act(self, identity: int, name: str, caller: BoxedCaller, arguments: list[int]) -> None:
        try:
            work = self._calls.prepare(name, caller, arguments)
            self._check_valid(identity)  # what we read was the caller's memory, not that of another with its number
            opened = work()
        except BlockingOpenError as blocked:
            self._open_elsewhere(identity, blocked)
        except PendingConnectError as waiting:
            _thread.start_new_thread(self._connect_elsewhere, (identity, waiting))
        except OSError as error:
            self._send(identity, error)
        except (ValueError, OverflowError):
            self._send(identity, OSError(errno.EINVAL, ""))
        else:
            if opened is None:
                self._send(identity, None)
            else:
                self._hand_over(identity, opened)

    def _check_valid(self, identity: int) -> None:
        ioctl(self._listener, _STILL_VALID, struct.pack("=Q", identity))

    def _continue(self, identity: int) -> None:
        with suppress(OSError):  # the caller is gone
            ioctl(self._listener, _SEND, struct.pack("=QqiI", identity, 0, 0, _CONTINUE))

    def _send(self, identity: int, error: OSError | None) -> None:
        if isinstance(error, BoxDeniedError):
            self._on_denied(str(error.filename))
        number = -(error.errno or errno.EIO) if error is not None else 0
        with suppress(OSError):  # the caller is gone
            ioctl(self._listener, _SEND, struct.pack("=QqiI", identity, 0, number, 0))

    def _hand_over(self, identity: int, opened: OpenedFile) -> None:
        closing = opened.flags & os.O_CLOEXEC
        try:
            ioctl(
                self._listener,
                _ADD_DESCRIPTOR,
                struct.pack("=QIIII", identity, _SEND_TOO, opened.descriptor, 0, closing),
            )
        except OSError as error:
            self._send(identity, error)
        finally:
            os.close(opened.descriptor)

    def _connect_elsewhere(self, identity: int, waiting: PendingConnectError) -> None:
        try:
            waiting.connect()
        except OSError as error:
            self._send(identity, error)
        else:
            self._send(identity, None)

    def _open_elsewhere(self, identity: int, blocked: BlockingOpenError) -> None:
        """A pipe with a name opens when its other end does; a process of its own waits for that."""
        if os.fork() != 0:
            os.close(blocked.place)
            return
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGALRM, lambda *_: self._check_valid(identity))
            signal.setitimer(signal.ITIMER_REAL, CHECK_SECONDS, CHECK_SECONDS)
            descriptor = os.open(f"/proc/self/fd/{blocked.place}", blocked.flags | os.O_CLOEXEC)
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._hand_over(identity, OpenedFile(descriptor, blocked.flags))
        except OSError as error:
            self._send(identity, error)
        finally:
            os._exit(0)
