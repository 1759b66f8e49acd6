"""The system calls that open and name files, done in the stead of a caller as far as a box's rules allow."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable
from fcntl import F_GETFL, F_SETFL, fcntl
from typing import NamedTuple

from ollm.system.sandbox.caller import BoxedCaller, NamedPlace
from ollm.system.sandbox.kernel import AT_EMPTY_PATH, AT_FDCWD, call
from ollm.system.sandbox.rules import BoxDeniedError, BoxRules

AT_SYMLINK_NOFOLLOW, AT_REMOVEDIR, AT_SYMLINK_FOLLOW = 0x100, 0x200, 0x400
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
O_TMPFILE = getattr(os, "O_TMPFILE", 0)
MAX_LINKS = 40
HERE = AT_FDCWD
MAX_ADDRESS_BYTES = 128
AF_UNIX = 1


class OpenedFile(NamedTuple):
    """A file that was opened for the caller, and the flags it asked for."""

    descriptor: int
    flags: int


class BlockingOpenError(Exception):
    """Opening would wait for someone else. `place` is a descriptor of what is to be opened."""

    def __init__(self, place: int, flags: int) -> None:
        self.place = place
        self.flags = flags


class PendingConnectError(Exception):
    """Connecting may take its time: `connect` does it, and must be called where nobody else is kept waiting."""

    def __init__(self, connect: Callable[[], None]) -> None:
        self.connect = connect


Work = Callable[[], OpenedFile | None]


class FileCalls:
    """Every call by its name: `prepare` reads the arguments from the caller, what it returns does the work."""

    def __init__(self, rules: BoxRules, terminal: int) -> None:
        self._rules = rules
        self._terminal = terminal

    def prepare(self, name: str, caller: BoxedCaller, words: list[int]) -> Work:  # noqa: PLR0911 - one for each call
        """Raises OSError when the arguments cannot be read."""
        text = caller.read_text
        match name:
            case "open":
                return self._prepare_open(caller, HERE, text(words[0]), words[1], words[2])
            case "creat":
                return self._prepare_open(caller, HERE, text(words[0]), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, words[1])
            case "openat":
                return self._prepare_open(caller, words[0], text(words[1]), words[2], words[3])
            case "truncate":
                path, length = text(words[0]), words[1]
                return lambda: self._truncate(caller, path, length)
            case "chmod" | "fchmodat" | "fchmodat2" | "fchmod":
                return self._prepare_mode(name, caller, words)
            case "utimensat":
                return self._prepare_times(caller, words)
            case "connect":
                address = caller.read_bytes(words[1], min(words[2] & 0xFFFFFFFF, MAX_ADDRESS_BYTES))
                return lambda: self._connect(caller, words[0], address)
            case "bind":
                address = caller.read_bytes(words[1], min(words[2] & 0xFFFFFFFF, MAX_ADDRESS_BYTES))
                return lambda: self._bind(caller, words[0], address)
        return self._prepare_naming(name, caller, words)

    def _prepare_naming(self, name: str, caller: BoxedCaller, words: list[int]) -> Work:
        text = caller.read_text
        match name:
            case "mkdir" | "mkdirat" | "mknod" | "mknodat":
                directory, (address, *rest) = (words[0], words[1:]) if name.endswith("at") else (HERE, words)
                path, kind = text(address), 0 if name.startswith("mkdir") else stat.S_IFMT(rest[0]) or stat.S_IFREG
                return lambda: self._make(caller, directory, path, kind, rest)
            case "unlink" | "rmdir":
                path = text(words[0])
                return lambda: self._remove(caller, HERE, path, directory_only=name == "rmdir")
            case "unlinkat":
                path = text(words[1])
                return lambda: self._remove(caller, words[0], path, directory_only=bool(words[2] & AT_REMOVEDIR))
            case "symlink" | "symlinkat":
                directory, address = (HERE, words[1]) if name == "symlink" else (words[1], words[2])
                target, path = text(words[0]), text(address)
                return lambda: self._link_symbolically(caller, target, directory, path)
            case "link" | "rename":
                source, path = text(words[0]), text(words[1])
                act = self._link if name == "link" else self._rename
                return lambda: act(caller, (HERE, source), (HERE, path), 0)
            case "linkat" | "renameat" | "renameat2":
                source, path, flags = text(words[1]), text(words[3]), 0 if name == "renameat" else words[4]
                act = self._link if name == "linkat" else self._rename
                return lambda: act(caller, (words[0], source), (words[2], path), flags)
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    def _prepare_open(self, caller: BoxedCaller, directory: int, path: str, flags: int, mode: int) -> Work:
        return lambda: self._open(caller, caller.find(directory, path), flags & 0xFFFFFFFF, mode & 0o7777)

    def _open(self, caller: BoxedCaller, place: NamedPlace, flags: int, mode: int) -> OpenedFile:
        for _ in range(MAX_LINKS):
            if place.is_descriptor:
                caller.check_process(place.path, writing=bool(flags & WRITING))
                return self._open_descriptor(place, flags)
            info = _stat_place(place)
            if info is not None and stat.S_ISLNK(info.st_mode) and not _takes_links(flags):
                place = caller.follow(place)
                continue
            if place.path == "/dev/tty" and self._terminal >= 0:  # the terminal of who opens it, and that is not us
                return OpenedFile(os.open(f"/proc/self/fd/{self._terminal}", flags | os.O_CLOEXEC | os.O_NOCTTY), flags)
            self._check_open(caller, place, flags)
            if info is not None and stat.S_ISFIFO(info.st_mode) and not flags & (os.O_NONBLOCK | os.O_RDWR | os.O_PATH):
                raise BlockingOpenError(
                    os.open(place.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.directory), flags
                )
            making = (flags & os.O_CREAT and info is None) or flags & O_TMPFILE == O_TMPFILE
            mode = mode & ~caller.umask() if making else mode
            return OpenedFile(_open_beneath(place, info, flags, mode), flags)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _check_open(self, caller: BoxedCaller, place: NamedPlace, flags: int) -> None:
        caller.check_process(place.path, writing=bool(flags & WRITING))
        if flags & O_TMPFILE == O_TMPFILE:
            self._rules.check_write(place.path + "/new")
        elif flags & WRITING and not flags & os.O_PATH:
            self._rules.check_write(place.path)
        self._rules.check_read(place.path)

    def _open_descriptor(self, place: NamedPlace, flags: int) -> OpenedFile:
        """An entry of /proc/N/fd, which leads to an open file: what file that is can be told once we hold it."""
        if flags & os.O_NOFOLLOW:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        held = os.open(place.name, os.O_PATH | os.O_CLOEXEC, dir_fd=place.directory)
        try:
            real = os.readlink(f"/proc/self/fd/{held}")
            if real.startswith("/") and stat.S_ISREG(os.fstat(held).st_mode):
                if flags & WRITING:
                    self._rules.check_write(real)
                self._rules.check_read(real)
            return OpenedFile(os.open(f"/proc/self/fd/{held}", flags & ~os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY), flags)
        finally:
            os.close(held)

    def _truncate(self, caller: BoxedCaller, path: str, length: int) -> None:
        opened = self._open(caller, caller.find(HERE, path), os.O_WRONLY, 0)
        try:
            os.ftruncate(opened.descriptor, length)
        finally:
            os.close(opened.descriptor)

    def _make(self, caller: BoxedCaller, directory: int, path: str, kind: int, rest: list[int]) -> None:
        place = caller.find(directory, path)
        if _stat_place(place) is None:  # otherwise the kernel's own error is the right one
            self._rules.check_write(place.path)
        mode = rest[0] & 0o7777 & ~caller.umask()
        if kind == 0:
            os.mkdir(place.name, mode, dir_fd=place.directory)
        else:
            os.mknod(
                place.name, kind | mode, rest[1] if kind in (stat.S_IFCHR, stat.S_IFBLK) else 0, dir_fd=place.directory
            )

    def _remove(self, caller: BoxedCaller, directory: int, path: str, *, directory_only: bool) -> None:
        place = caller.find(directory, path)
        if _stat_place(place) is not None:
            self._rules.check_write(place.path)
        (os.rmdir if directory_only else os.unlink)(place.name, dir_fd=place.directory)

    def _link_symbolically(self, caller: BoxedCaller, target: str, directory: int, path: str) -> None:
        place = caller.find(directory, path)
        self._rules.check_link(place.path)
        os.symlink(target, place.name, dir_fd=place.directory)

    def _link(self, caller: BoxedCaller, old: tuple[int, str], new: tuple[int, str], flags: int) -> None:
        if flags & AT_EMPTY_PATH and not old[1]:
            source = caller.locate_descriptor(old[0])
        else:
            source = caller.find(*old)
            source = self._follow(caller, source) if flags & AT_SYMLINK_FOLLOW else source
        follow = source.is_descriptor
        caller.check_process(source.path, writing=True)
        real = os.readlink(source.name, dir_fd=source.directory) if follow else source.path
        target = caller.find(*new)
        self._rules.check_write(real)
        self._rules.check_read(real)
        self._rules.check_link(target.path)
        names = os.fsencode(source.name), os.fsencode(target.name)
        call("linkat", source.directory, names[0], target.directory, names[1], AT_SYMLINK_FOLLOW if follow else 0)

    def _rename(self, caller: BoxedCaller, old: tuple[int, str], new: tuple[int, str], flags: int) -> None:
        source, target = caller.find(*old), caller.find(*new)
        info, replaced = _stat_place(source), _stat_place(target)
        if info is not None:
            self._rules.check_write(source.path)
            self._rules.check_write(target.path)
            if _brings_contents(info):
                self._rules.check_move_directory(source.path, target.path)
            if replaced is not None and _brings_contents(replaced):
                self._rules.check_move_directory(target.path, source.path)
        names = os.fsencode(source.name), os.fsencode(target.name)
        call("renameat2", source.directory, names[0], target.directory, names[1], flags & 0xFFFFFFFF)

    def _prepare_mode(self, name: str, caller: BoxedCaller, words: list[int]) -> Work:
        if name == "fchmod":
            return lambda: self._change(
                caller, words[0], "", AT_EMPTY_PATH, lambda path: os.chmod(path, words[1] & 0o7777)
            )
        directory, (address, mode, flags, *_) = (HERE, words) if name == "chmod" else (words[0], words[1:])
        path, flags = caller.read_text(address), flags if name == "fchmodat2" else 0
        return lambda: self._change(caller, directory, path, flags, lambda file: os.chmod(file, mode & 0o7777))

    def _prepare_times(self, caller: BoxedCaller, words: list[int]) -> Work:
        path = caller.read_text(words[1]) if words[1] else ""
        times = caller.read_bytes(words[2], 32) if words[2] else None
        flags = words[3] if words[1] else AT_EMPTY_PATH

        def change(file: str) -> None:
            call("utimensat", AT_FDCWD, os.fsencode(file), times, 0)

        return lambda: self._change(caller, words[0], path, flags, change)

    def _change(
        self, caller: BoxedCaller, directory: int, path: str, flags: int, change: Callable[[str], None]
    ) -> None:
        """Change what is said about a file, through a descriptor of the very file that was looked at."""
        if flags & AT_EMPTY_PATH and not path:
            place = caller.locate_descriptor(directory)
        else:
            place = caller.find(directory, path)
        place = place if flags & AT_SYMLINK_NOFOLLOW else self._follow(caller, place)
        caller.check_process(place.path, writing=True)
        follow = 0 if place.is_descriptor else os.O_NOFOLLOW
        held = os.open(place.name, os.O_PATH | follow | os.O_CLOEXEC, dir_fd=place.directory)
        try:
            if not stat.S_ISCHR(os.fstat(held).st_mode):
                self._rules.check_write(os.readlink(f"/proc/self/fd/{held}"))
            change(f"/proc/self/fd/{held}")
        finally:
            os.close(held)

    def _bind(self, caller: BoxedCaller, number: int, address: bytes) -> None:
        """Give the caller's socket a copy of the address: one with a path makes a file of that name."""
        held = caller.take_descriptor(number)
        path = address[2:].split(b"\0")[0]
        try:
            if _read_socket_family(held) != AF_UNIX or address[:2] != AF_UNIX.to_bytes(2, "little") or not path:
                call("bind", held, address, len(address))
                return
            place = caller.find(HERE, os.fsdecode(path))
            if place.is_descriptor or path.startswith(b"/proc/"):
                raise BoxDeniedError(place.path)
            if _stat_place(place) is None:
                self._rules.check_write(place.path)
            os.chdir(f"/proc/{caller.thread}/cwd")
            # By the path as given, which the socket is known by: no process of the box moves a directory meanwhile,
            # since it would have to ask us.
            call("bind", held, address, len(address))
            os.chmod(place.name, 0o777 & ~caller.umask(), dir_fd=place.directory)
        finally:
            os.close(held)

    def _connect(self, caller: BoxedCaller, number: int, address: bytes) -> None:
        """Connect the caller's socket, to a copy of the address: sockets with a path are looked at."""
        held = caller.take_descriptor(number)
        path = address[2:].split(b"\0")[0]
        try:
            if _read_socket_family(held) == AF_UNIX and address[:2] == AF_UNIX.to_bytes(2, "little") and path:
                place = self._follow(caller, caller.find(HERE, os.fsdecode(path)))
                if place.is_descriptor:  # what it leads to is not looked at, so it is none of the box's own
                    raise BoxDeniedError(place.path)
                self._rules.check_connect(place.path)
                target = os.open(place.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.directory)
                address = AF_UNIX.to_bytes(2, "little") + f"/proc/self/fd/{target}\0".encode()
            else:
                target = -1
        except OSError:
            os.close(held)
            raise

        def connect() -> None:
            try:
                call("connect", held, address, len(address))
            finally:
                os.close(held)
                if target >= 0:
                    os.close(target)

        raise PendingConnectError(connect)

    def _follow(self, caller: BoxedCaller, place: NamedPlace) -> NamedPlace:
        for _ in range(MAX_LINKS):
            info = _stat_place(place)
            if place.is_descriptor or info is None or not stat.S_ISLNK(info.st_mode):
                return place
            place = caller.follow(place)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _read_socket_family(descriptor: int) -> int:
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        return copy.getsockopt(socket.SOL_SOCKET, 39)  # SO_DOMAIN


def _stat_place(place: NamedPlace) -> os.stat_result | None:
    try:
        return os.stat(place.name, dir_fd=place.directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _brings_contents(info: os.stat_result) -> bool:
    """Whether what has another name now has files below it that no one looked at: a directory, or a link to one."""
    return stat.S_ISDIR(info.st_mode) or stat.S_ISLNK(info.st_mode)


def _takes_links(flags: int) -> bool:
    """Whether the caller wants the link itself, or an error because there is one."""
    return bool(flags & os.O_NOFOLLOW) or flags & (os.O_CREAT | os.O_EXCL) == os.O_CREAT | os.O_EXCL


def _open_beneath(place: NamedPlace, info: os.stat_result | None, flags: int, mode: int) -> int:
    """Open the file at a place and no other. It is emptied only once it is held, and a device that would make us wait
    is opened without waiting."""
    special = info is not None and not stat.S_ISREG(info.st_mode) and not stat.S_ISDIR(info.st_mode)
    ours = flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    waits = special and not flags & (os.O_NONBLOCK | os.O_PATH)
    descriptor = os.open(place.name, ours | (os.O_NONBLOCK if waits else 0), mode, dir_fd=place.directory)
    if waits:
        fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~os.O_NONBLOCK)
    if flags & os.O_TRUNC and info is not None and not special and not flags & os.O_PATH:
        os.truncate(f"/proc/self/fd/{descriptor}", 0)
    return descriptor
