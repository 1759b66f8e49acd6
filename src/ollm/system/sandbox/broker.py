"""Checks and performs the few system calls of a sandbox that neither mounts nor Landlock can control.

A read-only mount does not prevent connecting to a daemon's socket. Landlock controls neither that nor changes of modes
and times, and cannot exclude a file from a writable folder. The kernel stops such a call and notifies us (seccomp's
user notification): we copy its arguments from the caller's memory once, check the copy, and make the call ourselves
with our own descriptors, so later changes by the caller have no effect. If this process is gone, the calls fail.
Standard library only.

With mounts, `connect` and a `chmod` that sets setuid or setgid are the only such calls. Without mounts (`FileCalls`),
the calls that open files for writing, name or remove them or change their metadata are made here. They are refused at
and below a protected path, and for its parent folders, which could be moved with it. No sandboxed program can move such
a path, so a path checked by name is still the same when the call is made.
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
from functools import cached_property, partial
from typing import NamedTuple

from ollm.system.path_names import MAX_LINKS, is_inside
from ollm.system.sandbox.box import Box
from ollm.system.sandbox.kernel import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW, NAMES, call, read_birth_time
from ollm.system.sandbox.mounts import list_protections
from ollm.system.sandbox.seccomp import FOREIGN_RIGHTS

_RESOLVE_NO_MAGICLINKS = 2
_OWN_FILES = re.compile(r"/(?:proc/(?:self|thread-self)|dev)/fd/([0-9]{1,9})(/.*)?", re.DOTALL)
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
MAX_PATH_BYTES, PAGE_BYTES = 4096, 4096


class BoxDeniedError(OSError):
    """An operation that the sandbox does not allow; `filename` is the path."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EACCES, os.strerror(errno.EACCES), path)


class NamedPlace(NamedTuple):
    """A name in an open folder."""

    folder: int
    name: str

    @property
    def above(self) -> str:
        return os.readlink(f"/proc/self/fd/{self.folder}")

    @property
    def path(self) -> str:
        return os.path.join(self.above, self.name)


class Caller:
    """A thread in a system call with these arguments, as `check_valid` confirms. Descriptors opened for it are closed
    with it."""

    def __init__(self, thread: int, words: list[int], check_valid: Callable[[], object]) -> None:
        self.words = words
        self._thread = thread
        self._check_valid = check_valid
        self._held: list[int] = []

    def close(self) -> None:
        for descriptor in self._held:
            with suppress(OSError):
                os.close(descriptor)

    def keep(self, descriptor: int) -> int:
        self._held.append(descriptor)
        self._check_valid()  # The descriptor now certainly comes from the caller.
        return descriptor

    @property
    def umask(self) -> int:
        return int(self._read_status(b"Umask:"), 8)

    def read_memory(self, address: int, length: int) -> bytes:
        """Copy up to a page of memory."""
        buffer = ctypes.create_string_buffer(length)
        ours = struct.pack("@PN", ctypes.addressof(buffer), length)
        theirs = struct.pack("@PN", address, length)
        count = call("process_vm_readv", self._thread, ours, 1, theirs, 1, 0)
        self._check_valid()  # The memory was certainly the caller's.
        return buffer.raw[:count]

    def read_text(self, address: int) -> str:
        """Read a path page by page: it may end just before memory that is not mapped."""
        text = b""
        while len(text) <= MAX_PATH_BYTES:
            place = address + len(text)
            piece = self.read_memory(place, PAGE_BYTES - place % PAGE_BYTES)
            text += piece
            if b"\0" in piece:
                return os.fsdecode(text.split(b"\0")[0])
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))

    def open_path(self, directory: int, path: str, flags: int = 0) -> int:
        """Open a path without access to its contents. The links of /proc would refer to us instead of the caller: those
        to its own open files are translated and the others refused."""
        if not path:
            if not flags & AT_EMPTY_PATH:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            return self.take_descriptor(directory)
        start, below = self._open_start(directory, path)
        if not below:
            return start
        kind = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if flags & AT_SYMLINK_NOFOLLOW else 0)
        how = struct.pack("=QQQ", kind, 0, _RESOLVE_NO_MAGICLINKS)
        try:
            return self.keep(call("openat2", start, below, how, len(how)))
        except OSError as error:
            raise BoxDeniedError(path) if error.errno == errno.ELOOP else error from None

    def locate(self, directory: int, path: str) -> NamedPlace:
        """Open the parent folder of a path; the name itself may not exist yet."""
        above, slash, name = path.rstrip("/").rpartition("/")
        if path and not name:
            return NamedPlace(self.open_path(directory, path), ".")
        return NamedPlace(self.open_path(directory, above + slash or "."), name)

    def _open_start(self, directory: int, path: str) -> tuple[int, str]:
        """Open the directory at which a path begins, and return it with the rest of the path."""
        if path in _STREAMS:
            return self.take_descriptor(_STREAMS[path]), ""
        if found := _OWN_FILES.fullmatch(path):
            return self.take_descriptor(int(found[1])), (found[2] or "").lstrip("/")
        if path.startswith("/"):
            return AT_FDCWD, path
        own = "cwd" if to_signed(directory) == AT_FDCWD else f"fd/{to_signed(directory)}"
        return self.keep(os.open(f"/proc/{self._thread}/{own}", os.O_PATH | os.O_CLOEXEC)), path

    def take_descriptor(self, number: int) -> int:
        """Duplicate one of the caller's open files."""
        process = call("pidfd_open", int(self._read_status(b"Tgid:")), 0)
        try:
            return self.keep(call("pidfd_getfd", process, to_signed(number), 0))
        finally:
            os.close(process)

    def _read_status(self, name: bytes) -> bytes:
        with open(f"/proc/{self._thread}/status", "rb", buffering=0) as status:
            return status.read(PAGE_BYTES).partition(name)[2].split(None, 1)[0]


def to_signed(value: int) -> int:
    """Convert a descriptor argument: the lower half of a register, as a signed number."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


AT_SYMLINK_FOLLOW, AT_REMOVEDIR = 0x400, 0x200
NEW = os.O_CREAT | os.O_EXCL
TERMINAL = os.makedev(5, 0)  # The number of /dev/tty, which must be the caller's own terminal.
OpenedFile = tuple[int, int]  # The caller's descriptor and the flags it requested.
# The end of a call. What may take its time is returned, to be called in a thread of its own.
Outcome = OpenedFile | Callable[[], OpenedFile | None] | None
# Calls that create, move or remove names, and which arguments are the folders; the name follows its folder
NAMED = {"mkdirat": [0], "mknodat": [0], "unlinkat": [0], "symlinkat": [1], "renameat2": [0, 2]}
MOVING = ("unlinkat", "renameat2")


class FileCalls:
    """Makes file system calls with copies of their arguments and folders that are opened first. `check_own` raises if
    the box may not change modes and times at a path; `terminal` is a descriptor of the command's terminal, or -1."""

    def __init__(self, box: Box, check_own: Callable[[str], None], terminal: int) -> None:
        protections = list_protections(box)
        self._protected = {path for path, writable in protections if not writable}
        self._above = {path for path, writable in protections if writable}
        self._check_own = check_own
        self._terminal = terminal

    def make(self, name: str, caller: Caller) -> Outcome:
        name, words = _modernize(name, caller.words)
        if name in NAMED:
            self._name(name, caller, words)
            return None
        first = words[0], caller.read_text(words[1]) if words[1] else ""
        match name:
            case "openat":
                return self._open(caller, first, words[2] & 0xFFFFFFFF, words[3] & 0o1777)
            case "truncate":
                self._truncate(caller.open_path(*first), words[2])
            case "linkat":
                self._link(caller, first, caller.locate(words[2], caller.read_text(words[3])), words[4])
            case "fchmodat2":
                self._change_mode(caller.open_path(*first, words[3]), words[2] & 0o7777)
            case "utimensat":
                times = caller.read_memory(words[2], 32) if words[2] else None
                found = caller.open_path(*first, words[3] | (0 if first[1] else AT_EMPTY_PATH))
                self._describe(found, lambda file: call("utimensat", AT_FDCWD, file, times, 0))
            case _:
                raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        return None

    def _check(self, path: str, *, moves: bool = False) -> None:
        """Refuse protected paths and those below; with `moves` also the folders above, as mounts would."""
        above = path
        while above and above not in self._protected:
            above = above.rpartition("/")[0]
        if above:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        if moves and path in self._above:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    def _name(self, name: str, caller: Caller, words: list[int]) -> None:
        """Create, move or remove names. The kernel refuses to create one that exists."""
        arguments: list[int | str] = [*words]
        if name == "symlinkat":
            arguments[0] = caller.read_text(words[0])
        elif name not in MOVING:
            arguments[2] = words[2] & 0xFFFF & ~caller.umask
        for at in NAMED[name]:
            place = caller.locate(words[at], caller.read_text(words[at + 1]))
            self._check(place.path if name in MOVING else place.above, moves=name in MOVING)
            arguments[at : at + 2] = place
        call(name, *arguments)

    def _link(self, caller: Caller, source: tuple[int, str], target: NamedPlace, flags: int) -> None:
        self._check(target.above)
        if flags & (AT_SYMLINK_FOLLOW | AT_EMPTY_PATH):
            found = caller.open_path(*source, flags)
            self._check(os.readlink(f"/proc/self/fd/{found}"))
            call("linkat", AT_FDCWD, f"/proc/self/fd/{found}", *target, AT_SYMLINK_FOLLOW)
        else:
            place = caller.locate(*source)
            self._check(place.path)
            call("linkat", *place, *target, 0)

    def _open(self, caller: Caller, where: tuple[int, str], flags: int, mode: int) -> Outcome:
        """Open or create a file, following a link even if its target does not exist yet."""
        only_new = flags & NEW == NEW
        as_it_is = AT_SYMLINK_NOFOLLOW if only_new or flags & os.O_NOFOLLOW else 0
        for _ in range(MAX_LINKS):
            try:
                found = caller.open_path(*where, as_it_is)
            except FileNotFoundError:
                if not flags & os.O_CREAT:
                    raise
            else:
                if only_new:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
                return self._open_found(found, flags, mode)
            place = caller.locate(*where)
            self._check(place.above)
            try:
                ours = flags | NEW | os.O_CLOEXEC
                return os.open(place.name, ours, mode & ~caller.umask, dir_fd=place.folder), flags
            except FileExistsError:
                if only_new:
                    raise
            with suppress(OSError):  # The link may be a file by now.
                where = AT_FDCWD, os.path.join(place.above, os.readlink(place.name, dir_fd=place.folder))
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _open_found(self, found: int, flags: int, mode: int) -> Outcome:
        about = os.fstat(found)
        if stat.S_ISLNK(about.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if about.st_rdev == TERMINAL and self._terminal >= 0:
            return os.dup(self._terminal), flags
        self._check(os.readlink(f"/proc/self/fd/{found}"))
        if stat.S_ISFIFO(about.st_mode) and flags & os.O_ACCMODE == os.O_WRONLY and not flags & os.O_NONBLOCK:
            return lambda: (_open_again(found, flags), flags)  # A pipe opens when its other end does.
        return _open_again(found, flags, mode), flags

    def _truncate(self, found: int, length: int) -> None:
        self._check(os.readlink(f"/proc/self/fd/{found}"))
        os.truncate(f"/proc/self/fd/{found}", length)

    def _change_mode(self, found: int, mode: int) -> None:
        """Change a mode, refusing setuid and setgid; setgid is allowed on folders."""
        if mode & (stat.S_ISUID if stat.S_ISDIR(os.fstat(found).st_mode) else FOREIGN_RIGHTS):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        self._describe(found, lambda file: os.chmod(file, mode))

    def _describe(self, found: int, change: Callable[[str], object]) -> None:
        """Change mode or times through a descriptor of the same file that was checked."""
        path = os.readlink(f"/proc/self/fd/{found}")
        if not stat.S_ISCHR(os.fstat(found).st_mode):
            self._check_own(path)
            self._check(path)
        change(f"/proc/self/fd/{found}")


def _modernize(name: str, words: list[int]) -> tuple[str, list[int]]:  # noqa: PLR0911
    """Convert an older call to the equivalent newer one that takes a directory."""
    match name:
        case "open" | "mkdir" | "mknod":
            return f"{name}at", [AT_FDCWD, *words]
        case "creat":
            return "openat", [AT_FDCWD, words[0], os.O_CREAT | os.O_WRONLY | os.O_TRUNC, words[1]]
        case "unlink" | "rmdir":
            return "unlinkat", [AT_FDCWD, words[0], AT_REMOVEDIR if name == "rmdir" else 0]
        case "rename" | "link":
            return "renameat2" if name == "rename" else "linkat", [AT_FDCWD, words[0], AT_FDCWD, words[1], 0]
        case "renameat":
            return "renameat2", [*words[:4], 0]
        case "symlink":
            return "symlinkat", [words[0], AT_FDCWD, words[1]]
        case "chmod":
            return "fchmodat2", [AT_FDCWD, *words[:2], 0]
        case "fchmodat":
            return "fchmodat2", [*words[:3], 0]
        case "fchmod":
            return "fchmodat2", [words[0], 0, words[1], AT_EMPTY_PATH]
        case "truncate":
            return name, [AT_FDCWD, *words]
    return name, words


def _open_again(found: int, flags: int, mode: int = 0) -> int:
    ours = flags & ~(os.O_CREAT | os.O_NOFOLLOW) | os.O_CLOEXEC | os.O_NOCTTY
    return os.open(f"/proc/self/fd/{found}", ours, mode)


_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RECEIVE, _SEND, _STILL_VALID, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_SET_FLAGS, _WAKE_IN_TURN = 0x40082104, 1
_SEND_TOO = 2
_AF_UNIX = socket.AF_UNIX.to_bytes(2, "little")
MAX_ADDRESS_BYTES = 128
ERRORS = (OSError, ValueError, OverflowError)


class Broker:
    """Answers the notifications of one box. `reachable` are the places whose sockets and files belong to the box;
    `on_denied` receives every refused path; `terminal` is a descriptor of the command's terminal, or -1."""

    def __init__(
        self, listener: int, box: Box, reachable: list[str], on_denied: Callable[[str], None], terminal: int
    ) -> None:
        self._listener = listener
        self._box = box
        self._terminal = terminal
        self._reachable = reachable
        self._on_denied = on_denied
        with suppress(OSError):  # A newer kernel then switches to us and back at once.
            ioctl(listener, _SET_FLAGS, _WAKE_IN_TURN)

    @cached_property
    def _files(self) -> FileCalls:
        return FileCalls(self._box, self._check, self._terminal)

    def serve(self, ending: int) -> None:
        """Answer until no process is left or `ending` becomes readable."""
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
        valid = partial(ioctl, self._listener, _STILL_VALID, struct.pack("=Q", identity))
        name, caller = NAMES.get(number, ""), Caller(thread, words, valid)
        make = partial(self._connect, caller) if name == "connect" else partial(self._files.make, name, caller)
        self._finish(identity, make, caller)
        return True

    def _finish(self, identity: int, make: Callable[[], Outcome], caller: Caller) -> None:
        try:
            made = make()
        except ERRORS as error:
            self._send(identity, error)
        else:
            if callable(made):
                _thread.start_new_thread(self._finish, (identity, made, caller))
                return
            if made is None:
                self._send(identity, None)
            else:
                self._hand_over(identity, made)
        caller.close()

    def _send(self, identity: int, error: Exception | None) -> None:
        if isinstance(error, BoxDeniedError):
            self._on_denied(str(error.filename))
        number = 0
        if error is not None:
            number = -((error.errno or errno.EIO) if isinstance(error, OSError) else errno.EINVAL)
        with suppress(OSError):  # The caller may be gone.
            ioctl(self._listener, _SEND, struct.pack("=QqiI", identity, 0, number, 0))

    def _hand_over(self, identity: int, opened: OpenedFile) -> None:
        """Install one of our open files in the caller."""
        descriptor, flags = opened
        request = struct.pack("=QIIII", identity, _SEND_TOO, descriptor, 0, flags & os.O_CLOEXEC)
        try:
            ioctl(self._listener, _ADD_DESCRIPTOR, request)
        except OSError as error:
            self._send(identity, error)
        finally:
            os.close(descriptor)

    def _connect(self, caller: Caller) -> Outcome:
        """Connect the caller's socket to a copy of the address. A socket with a path must belong to the box and be no
        older than the running commands: the workspace may contain sockets of other daemons."""
        number, place, length, *_ = caller.words
        address = caller.read_memory(place, min(length & 0xFFFFFFFF, MAX_ADDRESS_BYTES))
        held = caller.take_descriptor(number)

        def connect() -> None:
            where, path = address, address[2:].split(b"\0")[0]
            if _get_socket_family(held) == socket.AF_UNIX and address[:2] == _AF_UNIX and path:
                target = caller.open_path(AT_FDCWD, os.fsdecode(path))
                self._check(os.readlink(f"/proc/self/fd/{target}"))
                if (read_birth_time(target) or os.fstat(target).st_ctime) < self._box.since:
                    raise BoxDeniedError(os.readlink(f"/proc/self/fd/{target}"))
                where = _AF_UNIX + f"/proc/self/fd/{target}\0".encode()
            call("connect", held, where, len(where))

        return connect

    def _check(self, path: str) -> None:
        if not any(is_inside(path, place) for place in self._reachable):
            raise BoxDeniedError(path)


def _get_socket_family(descriptor: int) -> int:
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        return copy.getsockopt(socket.SOL_SOCKET, 39)  # The number 39 is SO_DOMAIN.
