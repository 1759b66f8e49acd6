"""Change files for a boxed program where no mount keeps it from those that steer tools (level `landlock`).

Landlock allows folders and cannot take back a part of one. So the calls that open files to write, name, remove or
describe them are made here: refused at and below a protected path, and for the folders above it, which would carry it
away. No program of a box can move such a path, so what was checked by its name is still that when the call is made.
Standard library only.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from ollm.system.sandbox.box import Box
from ollm.system.sandbox.caller import AT_SYMLINK_NOFOLLOW, Caller, NamedPlace
from ollm.system.sandbox.kernel import AT_EMPTY_PATH, AT_FDCWD, call
from ollm.system.sandbox.mounts import list_protections

AT_SYMLINK_FOLLOW, AT_REMOVEDIR = 0x400, 0x200
NEW = os.O_CREAT | os.O_EXCL
MAX_LINKS = 40
TERMINAL = os.makedev(5, 0)  # /dev/tty: the caller's own, not ours


class OpenedFile(NamedTuple):
    """An open file for the caller, with the flags it asked for."""

    descriptor: int
    flags: int


# Makes a call. What may take its time is returned, to be called in a thread of its own.
Work = Callable[[], "OpenedFile | Work | None"]


class FileCalls:
    """Prepares such calls: arguments are copied and folders opened first, the result makes the call. `check_own` raises
    where modes and times are not the box's to change; `terminal` is a descriptor of the command's terminal, or -1."""

    def __init__(self, box: Box, check_own: Callable[[str], None], terminal: int) -> None:
        protections = list(list_protections(box))
        self._protected = {path for path, writable in protections if not writable}
        self._above = {path for path, writable in protections if writable}
        self._check_own = check_own
        self._terminal = terminal

    def prepare(self, name: str, caller: Caller) -> Work:  # noqa: PLR0911 - one for each call
        name, words = _modernize(name, caller.words)
        if name == "symlinkat":
            text, place = os.fsencode(caller.read_text(words[0])), (words[1], caller.read_text(words[2]))
            return lambda: self._symlink(text, caller.locate(*place))
        first = words[0], caller.read_text(words[1]) if words[1] else ""
        match name:
            case "openat":
                return lambda: self._open(caller, first, words[2] & 0xFFFFFFFF, words[3] & 0o7777)
            case "truncate":
                return lambda: self._truncate(caller.open_path(*first), words[2])
            case "mkdirat" | "mknodat":
                return lambda: self._make(name, caller.locate(*first), words[2] & 0xFFFF & ~caller.umask, words[3])
            case "unlinkat":
                return lambda: self._move(name, [caller.locate(*first)], words[2])
            case "renameat2":
                second = words[2], caller.read_text(words[3])
                return lambda: self._move(name, [caller.locate(*first), caller.locate(*second)], words[4])
            case "linkat":
                second = words[2], caller.read_text(words[3])
                return lambda: self._link(caller, first, caller.locate(*second), words[4])
            case "fchmodat2":
                return lambda: self._describe(
                    caller.open_path(*first, words[3]), lambda file: os.chmod(file, words[2] & 0o7777)
                )
            case "utimensat":
                times, flags = caller.read_memory(words[2], 32) if words[2] else None, words[3]
                flags |= 0 if first[1] else AT_EMPTY_PATH
                return lambda: self._describe(caller.open_path(*first, flags), lambda file: _set_times(file, times))
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    def _check(self, path: str, *, moves: bool = False) -> None:
        """Refuse what is protected or lies below, and with `moves` the folders above, as mounts would."""
        above = path
        while above and above not in self._protected:
            above = above.rpartition("/")[0]
        if above:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        if moves and path in self._above:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    def _make(self, name: str, place: NamedPlace, *rest: int) -> None:
        """A name that is there already is the kernel's to refuse."""
        self._check(place.above)
        call(name, *place.words, *rest)

    def _symlink(self, text: bytes, place: NamedPlace) -> None:
        self._check(place.above)
        call("symlinkat", text, *place.words)

    def _move(self, name: str, places: list[NamedPlace], flags: int) -> None:
        for place in places:
            self._check(place.path, moves=True)
        call(name, *(word for place in places for word in place.words), flags & 0xFFFFFFFF)

    def _link(self, caller: Caller, source: tuple[int, str], target: NamedPlace, flags: int) -> None:
        self._check(target.above)
        if flags & (AT_SYMLINK_FOLLOW | AT_EMPTY_PATH):
            found = caller.open_path(*source, flags)
            self._check(os.readlink(f"/proc/self/fd/{found}"))
            call("linkat", AT_FDCWD, f"/proc/self/fd/{found}".encode(), *target.words, AT_SYMLINK_FOLLOW)
        else:
            place = caller.locate(*source)
            self._check(place.path)
            call("linkat", *place.words, *target.words, 0)

    def _open(self, caller: Caller, where: tuple[int, str], flags: int, mode: int) -> OpenedFile | Work:
        """Open the file that a path leads to, or make it: a link whose target is not there yet is followed."""
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
                return OpenedFile(os.open(place.name, ours, mode & ~caller.umask, dir_fd=place.folder), flags)
            except FileExistsError:
                if only_new:
                    raise
            with suppress(OSError):  # it is a file by now
                where = AT_FDCWD, os.path.join(place.above, os.readlink(place.name, dir_fd=place.folder))
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _open_found(self, found: int, flags: int, mode: int) -> OpenedFile | Work:
        about = os.fstat(found)
        if stat.S_ISLNK(about.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if about.st_rdev == TERMINAL and self._terminal >= 0:
            return OpenedFile(os.dup(self._terminal), flags)
        self._check(os.readlink(f"/proc/self/fd/{found}"))
        if stat.S_ISFIFO(about.st_mode) and flags & os.O_ACCMODE == os.O_WRONLY and not flags & os.O_NONBLOCK:
            return lambda: OpenedFile(_open_again(found, flags), flags)  # it opens when its other end does
        return OpenedFile(_open_again(found, flags, mode), flags)

    def _truncate(self, found: int, length: int) -> None:
        self._check(os.readlink(f"/proc/self/fd/{found}"))
        os.truncate(f"/proc/self/fd/{found}", length)

    def _describe(self, found: int, change: Callable[[str], None]) -> None:
        """Change mode or times through a descriptor of the very file that was looked at."""
        path = os.readlink(f"/proc/self/fd/{found}")
        if not stat.S_ISCHR(os.fstat(found).st_mode):
            self._check_own(path)
            self._check(path)
        change(f"/proc/self/fd/{found}")


def _modernize(name: str, words: list[int]) -> tuple[str, list[int]]:  # noqa: PLR0911
    """An older call as the newer one that does the same from any folder."""
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


def _set_times(file: str, times: bytes | None) -> None:
    call("utimensat", AT_FDCWD, os.fsencode(file), times, 0)
