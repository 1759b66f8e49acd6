"""Opens, replaces and removes files beneath a root, one directory descriptor at a time.

Paths here are already resolved: no component is a link. Every component is opened with `O_NOFOLLOW` from the descriptor
of its parent, so a link swapped in since is detected (`LinkFound`) and never followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ollm.domain.errors import ToolFailure
from ollm.system.atomic import sync_directory, write_all

_DIRECTORY_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK_ERRORS = (errno.ELOOP, errno.ENOTDIR)
_NO_HARD_LINK_ERRORS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class LinkFound(Exception):  # noqa: N818 - not a fault: resolve the path again and come back
    """A link in a resolved path: the path changed in between, or links form a cycle."""


@contextmanager
def open_parent_directory(root: Path, path: Path, *, create: bool = False) -> Iterator[int]:
    """Open the parent directory of `path`, reached from `root` without following a link."""
    current = os.open(root, _DIRECTORY_FLAGS)
    try:
        for part in path.relative_to(root).parts[:-1]:
            following = _open_child_directory(part, current, create=create)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


def change_mode(descriptor: int, mode: int) -> None:
    """Change the mode, even through a descriptor opened without permissions."""
    os.chmod(f"/proc/self/fd/{descriptor}" if hasattr(os, "O_PATH") else descriptor, mode)  # noqa: PTH101


def make_readable(path: str | Path) -> None:
    """Give the owner permission to read a file or folder recursively, and to empty the folders."""
    descriptor = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISLNK(mode):
            change_mode(descriptor, stat.S_IMODE(mode) | (0o700 if stat.S_ISDIR(mode) else 0o400))
    finally:
        os.close(descriptor)
    for inner in Path(path).iterdir() if stat.S_ISDIR(mode) else ():
        make_readable(inner)


def _open_child_directory(part: str, parent: int, *, create: bool) -> int:
    try:
        return os.open(part, _DIRECTORY_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=parent)
        return os.open(part, _DIRECTORY_FLAGS, dir_fd=parent)
    except OSError as error:
        raise _detect_link(error, part, parent) from error


def _detect_link(error: OSError, name: str, parent: int) -> Exception:
    if error.errno in _LINK_ERRORS:
        with suppress(OSError):
            if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                return LinkFound(name)
    return error


def open_regular(root: Path, path: Path) -> int:
    """Open a regular file for reading. Devices, FIFOs, sockets and directories are never opened."""
    with open_parent_directory(root, path) as parent:
        name = _get_last_name(root, path)
        _require_regular(os.stat(name, dir_fd=parent, follow_symlinks=False), path)
        try:
            descriptor = os.open(name, READ_FLAGS, dir_fd=parent)
        except OSError as error:
            raise _detect_link(error, name, parent) from error
    try:
        _require_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_directory(root: Path, path: Path) -> int:
    """Open a directory, for use with `os.scandir` and `dir_fd`."""
    with open_parent_directory(root, path) as parent:
        name = _get_last_name(root, path)
        try:
            return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        except OSError as error:
            raise _detect_link(error, name, parent) from error


def replace_file(root: Path, path: Path, content: bytes, *, overwrite: bool) -> None:
    """Replace a whole file durably and atomically, keeping its mode, owner and attributes."""
    with open_parent_directory(root, path, create=True) as parent:
        name = _get_last_name(root, path)
        before = None
        with suppress(FileNotFoundError):
            before = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if before is not None:
            _require_regular(before, path)
            if not overwrite:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        temporary = f".ollm-{os.urandom(8).hex()}-{os.getpid()}.tmp"
        try:
            _write_new(temporary, name, parent, content, before)
            _move(temporary, name, parent, overwrite=overwrite)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise
        with suppress(OSError):  # The change is done, and only surviving a power failure is at stake.
            sync_directory(".", parent)


def remove_file(root: Path, path: Path) -> None:
    """Remove a regular file."""
    with open_parent_directory(root, path) as parent:
        name = _get_last_name(root, path)
        _require_regular(os.stat(name, dir_fd=parent, follow_symlinks=False), path)
        os.unlink(name, dir_fd=parent)
        with suppress(OSError):  # The change is done, and only surviving a power failure is at stake.
            sync_directory(".", parent)


def _get_last_name(root: Path, path: Path) -> str:
    return path.name if path != root else "."


def _require_regular(status: os.stat_result, path: Path) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise LinkFound(path.name)
    if stat.S_ISDIR(status.st_mode):
        raise ToolFailure("IsDirectory", f"{path} is a directory, not a file.")
    if not stat.S_ISREG(status.st_mode):
        raise ToolFailure("NotARegularFile", f"{path} is {_describe_kind(status.st_mode)}, not a regular file.")


def _describe_kind(mode: int) -> str:
    kinds: tuple[tuple[Callable[[int], bool], str], ...] = (
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((text for test, text in kinds if test(mode)), "something special")


def _inherit_attributes(name: str, parent: int, before: os.stat_result, target: int) -> None:
    """Copy owner and mode of a file, and if it can be read its extended attributes, as far as the system permits."""
    with suppress(OSError):
        os.fchown(target, before.st_uid, before.st_gid)
    with suppress(OSError, AttributeError), os.fdopen(os.open(name, READ_FLAGS, dir_fd=parent), "rb") as source:
        for attribute in os.listxattr(source.fileno()):
            with suppress(OSError):
                os.setxattr(target, attribute, os.getxattr(source.fileno(), attribute))
    # new contents do not run with the rights of the old ones' owner
    os.fchmod(target, stat.S_IMODE(before.st_mode) & 0o1777)


def _write_new(temporary: str, name: str, parent: int, content: bytes, before: os.stat_result | None) -> None:
    """Write and sync a new file, with the attributes of the one that it is to replace."""
    target = os.open(temporary, _CREATE_FLAGS, 0o600 if before else 0o666, dir_fd=parent)
    try:
        if before:
            _inherit_attributes(name, parent, before, target)
        write_all(target, content)
        os.fsync(target)
    finally:
        os.close(target)


def _move(temporary: str, name: str, parent: int, *, overwrite: bool) -> None:
    if not overwrite:
        try:
            os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_HARD_LINK_ERRORS:
                raise
        else:
            os.unlink(temporary, dir_fd=parent)
            return
    os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
