"""A session's file, opened with care, and its lines, read once and forward: no file is ever held whole, and several can
read it side by side."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ollm.domain.errors import StorageError
from ollm.store.session_files.damage import MAX_BYTES, DamageReport

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BUFFER_BYTES = 1 << 18
LONG_LINE_BYTES = 1 << 20
MAX_EXTENTS = 1000


Range = tuple[int, int]
Line = tuple[int, int, bytes]
"""Where a line starts and ends, and the line with its end, which only the last of a file may lack. Of a long one that
cannot be an entry, or is longer than any that is asked for, only the beginning is kept."""


def open_regular_file(path: Path, damage: DamageReport) -> BinaryIO | None:
    """The file for reading, or None when it is not there; never through a link, never a device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if path.is_symlink():
            damage.refuse(f"{path.name} is a symbolic link and is not followed")
            return None
        raise StorageError(
            f"Cannot read {path}: {error.strerror}.", action="Check the permissions of the file."
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        damage.refuse(f"{path.name} is not a regular file")
        return None
    return os.fdopen(descriptor, "rb", buffering=BUFFER_BYTES)


class _FilePosition(io.RawIOBase):
    """A place of its own in a file that is open already."""

    def __init__(self, descriptor: int, place: int) -> None:
        self._descriptor = descriptor
        self._place = place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = os.preadv(self._descriptor, [buffer], self._place)
        self._place += count
        return count

    def seek(self, offset: int, whence: int = 0) -> int:
        self._place = offset if whence == 0 else self._place + offset
        return self._place

    def tell(self) -> int:
        return self._place


def get_size(file: BinaryIO) -> int:
    return len(file.getbuffer()) if isinstance(file, io.BytesIO) else os.fstat(file.fileno()).st_size


def read_range(file: BinaryIO, place: Range) -> bytes:
    """The bytes between two places, and no others."""
    start, end = place
    if isinstance(file, io.BytesIO):
        return bytes(file.getbuffer()[start:end])
    return os.pread(file.fileno(), end - start, start)


def skip_hole(descriptor: int, place: int) -> int:
    """Where data goes on, when nothing was ever written at `place`; `place` itself when there is data."""
    return _seek_apart(descriptor, place, getattr(os, "SEEK_DATA", None))


def find_data_end(descriptor: int) -> int:
    """Where the data of a file ends, before the hole that may follow to its end."""
    size = os.fstat(descriptor).st_size
    end = place = 0
    for _ in range(MAX_EXTENTS):
        place = skip_hole(descriptor, place)
        if place >= size:
            return end
        end = place = _seek_apart(descriptor, place, getattr(os, "SEEK_HOLE", None))
        if end >= size:
            return size
    return size


def _seek_apart(descriptor: int, place: int, whence: int | None) -> int:
    """Ask the file system without moving anybody's place in the file."""
    size = os.fstat(descriptor).st_size
    try:
        apart = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)
    except OSError:
        return place if whence == getattr(os, "SEEK_DATA", None) else size
    try:
        return os.lseek(apart, place, whence) if whence is not None else size
    except OSError as error:
        return size if error.errno == errno.ENXIO else place
    finally:
        os.close(apart)


def iter_lines(file: BinaryIO, place: int = 0, longest: int = MAX_BYTES) -> Iterator[Line]:
    """The lines from `place` on. Moves nothing in `file`, which several may read at once."""
    if isinstance(file, io.BytesIO):
        source: BinaryIO = io.BytesIO(file.getbuffer())
        source.seek(place)
    else:
        source = io.BufferedReader(_FilePosition(file.fileno(), place), BUFFER_BYTES)
    while data := source.readline(LONG_LINE_BYTES):
        start, place = place, place + len(data)
        if len(data) == LONG_LINE_BYTES and not data.endswith(b"\n"):
            place = _find_line_end(source, place, file)
            if data.startswith(b"{") and place - start <= longest:
                source.seek(start)
                data = source.read(place - start)
            source.seek(place)
        yield start, place, data


def _find_line_end(source: BinaryIO, place: int, file: BinaryIO) -> int:
    """Where the line that goes on at `place` ends, without keeping it; a hole in the file is passed over."""
    while data := source.readline(LONG_LINE_BYTES):
        place += len(data)
        if data.endswith(b"\n") or place > MAX_BYTES:
            break
        if not data.strip(b"\0") and not isinstance(file, io.BytesIO):
            place = skip_hole(file.fileno(), place)
            source.seek(place)
    return place
