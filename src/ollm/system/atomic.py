"""Durable file writes: data is on disk when a call returns. Also reads small files without blocking.

A file is replaced by a temporary one in the same directory: complete write, sync, rename, sync of the directory. After
a failed sync the state of the file's pages is unknown, so the temporary file is deleted and never synced again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

Kind = TypeVar("Kind")
Otherwise = TypeVar("Otherwise")
FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
_CHUNK_BYTES = 1 << 20
MAX_HELD_BYTES = 4 << 20
_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MAX_SMALL_BYTES = 16 << 20
GROWTH_BYTES = 1 << 16  # A file may grow while it is read, and some report a size of zero.


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte, continuing after short writes."""
    view = memoryview(data)
    while view:
        written = os.write(descriptor, view[: _CHUNK_BYTES * 64])
        view = view[written:]


def sync(descriptor: int) -> None:
    """Flush a file's data to the disk itself, through the drive's cache on macOS."""
    if sys.platform == "linux":
        os.fdatasync(descriptor)
    elif sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def sync_directory(directory: Path | str, parent: int | None = None) -> None:
    """Make the names in a directory durable, as far as it may be read."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private_directory(directory: Path) -> None:
    """Create a directory (and its parents) that only its owner may enter."""
    if directory.is_dir():
        return
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    for path in made:
        with contextlib.suppress(PermissionError):
            path.chmod(DIRECTORY_MODE)
        sync_directory(path.parent)


@contextlib.contextmanager
def lock_directory(directory: Path) -> Iterator[None]:
    """Let only one thread of one process change the files of a private directory at a time."""
    import fcntl

    make_private_directory(directory)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # Some file systems have no locks.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def hash_file(path: Path) -> str:
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def replace_file(path: Path, data: bytes | Iterable[bytes], *, mode: int = FILE_MODE, durable: bool = True) -> int:
    """Replace `path` with `data`, completely or not at all, and return the number of bytes written.

    Without `durable`, the file may be lost or corrupt after a power failure: use it for data that its reader verifies
    and can recompute. A symlink at `path` is replaced, never followed. On any error the old file stays and no temporary
    file is left.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), mode)
    try:
        try:
            size = _write_chunks(descriptor, [data] if isinstance(data, bytes) else data)
            if durable:
                sync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno in _FULL_ERRNOS and error.filename is None:
            error.filename = str(path)  # Without a name it would count as an error of the command's output.
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)
    return size


def _write_chunks(descriptor: int, chunks: Iterable[bytes]) -> int:
    size, waiting, held = 0, [], 0
    for chunk in chunks:
        waiting.append(chunk)
        held += len(chunk)
        if held >= _CHUNK_BYTES:
            write_all(descriptor, b"".join(waiting))
            size, waiting, held = size + held, [], 0
    write_all(descriptor, b"".join(waiting))
    return size + held


class AppendFile:
    """A file that only grows, each append durable before it returns.

    `good` is the size known to be on disk. After a failed append the file is truncated to it. After a failed sync the
    file is rewritten from its good part, since its pages can no longer be trusted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = str(path)  # Converting the path would take longer than the append itself.
        self._descriptor: int | None = None
        self._identity = 0, 0
        self._distrusted = False
        self._recent: deque[bytes | bytearray] = deque()  # Another program may cut the file or add to it.
        self._recent_start = 0
        self.good = 0

    def open(self) -> None:
        """Open for appending, creating the file (and making its name durable) if needed."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        existed = self.path.exists()
        descriptor = os.open(self.path, flags, FILE_MODE)
        try:
            held = os.fstat(descriptor)
            self._identity, self.good = (held.st_ino, held.st_dev), held.st_size
            self._recent_start = self.good
            if not existed:
                sync_directory(self.path.parent)
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self._recent.clear()

    def append(self, data: bytes, *, durable: bool = True) -> None:
        """Append `data`. On an error none of it counts, and the next append starts at the same offset. Without
        `durable` it outlives this process, but not a power failure before the next durable append."""
        if self._descriptor is None:
            self.open()
        if self._distrusted:
            self.write_anew()
        assert self._descriptor is not None
        try:
            written = os.write(self._descriptor, data)
            if written < len(data):
                write_all(self._descriptor, memoryview(data)[written:])
        except OSError:
            self._cut_back()
            raise
        try:
            if durable:
                sync(self._descriptor)
        except OSError:
            self._distrusted = True
            raise
        self.good = good = self.good + len(data)
        if not durable and self._recent and isinstance(last := self._recent[-1], bytearray):
            last += data
        else:
            self._recent.append(data if durable else bytearray(data))
        while good - self._recent_start > MAX_HELD_BYTES and len(self._recent) > 1:
            self._recent_start += len(self._recent.popleft())

    def is_in_place(self) -> bool:
        """Return True if the file at this path has the appended data: not removed, replaced or truncated."""
        if self._descriptor is None:
            return True
        try:
            named = os.lstat(self._name)
        except OSError:
            return False
        inode, device = self._identity
        return named.st_size == self.good and named.st_ino == inode and named.st_dev == device

    def write_anew(self) -> None:
        """Rewrite the file with all appended data, from the file that lost its name or from memory."""
        replace_file(self.path, self._iter_good())
        self.close()
        self.open()
        self._distrusted = False

    def truncate(self, size: int = 0) -> None:
        """Drop everything after `size`."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, size)
            self.good = self._recent_start = size
            self._recent.clear()

    def ends_with(self, last: bytes) -> bool:
        """Return True if the last byte is this one, or if the file is empty."""
        assert self._descriptor is not None
        return not self.good or os.pread(self._descriptor, 1, self.good - 1) == last

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _cut_back(self) -> None:
        assert self._descriptor is not None
        try:
            os.ftruncate(self._descriptor, self.good)
        except OSError:
            self._distrusted = True

    def read_good(self) -> bytes:
        """Return everything appended."""
        return b"".join(self._iter_good())

    def _iter_good(self) -> Iterator[bytes]:
        """Iterate over the appended data. The newest part comes from memory, since another program may have written
        before it in the file."""
        assert self._descriptor is not None
        place, end, chunk = 0, self._find_kept_end(self._descriptor), b"\n"
        while more := os.pread(self._descriptor, min(_CHUNK_BYTES, end - place), place):
            place, chunk = place + len(more), more
            yield more
        if not chunk.endswith(b"\n") and place < self._recent_start:
            yield b"\n"  # The file was cut within a line.
        yield from map(bytes, self._recent)

    def _find_kept_end(self, descriptor: int) -> int:
        """Find the end of older appended data in the file; earlier if another program truncated it."""
        end = os.fstat(descriptor).st_size
        if end < self.good:
            for data in reversed(self._recent):
                if os.pread(descriptor, len(data), max(0, end - len(data))) != data:
                    break
                end -= len(data)  # This record follows the cut.
        return min(end, self._recent_start)


def read_small_file(path: Path | str, max_bytes: int = MAX_SMALL_BYTES) -> bytes:
    """Read a whole regular file. Raises OSError for anything else, and for larger files."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "It is not a regular file", str(path))
        if status.st_size > max_bytes:
            raise OSError(errno.EFBIG, f"It is larger than {max_bytes // 1024:,} KiB", str(path))
        return file.read(min(max_bytes, status.st_size + GROWTH_BYTES))


def read_json(path: Path, kind: type[Kind], otherwise: Otherwise) -> Kind | Otherwise:
    """Read a JSON file that ollm wrote, or return `otherwise` if it is missing or damaged."""
    import msgspec

    try:
        return msgspec.json.decode(read_small_file(path), type=kind)
    except (OSError, UnicodeDecodeError, RecursionError, msgspec.MsgspecError):
        return otherwise


def write_private_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file in a directory that only its owner may enter, and create the directory if needed."""
    make_private_directory(path.parent)
    replace_file(path, data, durable=durable)
