"""Open a session's files for reading, split them into lines, and collect what is damaged in them."""

from __future__ import annotations

import codecs
import errno
import io
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ollm.domain.errors import StorageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


MAX_BYTES = 500_000_000
MAX_DEPTH = 100
FIND_SECONDS = 4.5  # to find the entries; of this process, so that a busy machine does not make a file unreadable
LOADING_SECONDS = 6.5  # to read all of them
MAX_NOTES = 5


class DamageReport:
    """Grows while files are read. `too_large` means: can be looked at, must not be written.

    With more `patience` reading may take that many times as long.
    """

    def __init__(self, patience: float = 1) -> None:
        self.notes: list[str] = []
        self.lost = 0
        self.too_large = False
        self.size = 0  # of the files that are read, in bytes
        begun = time.process_time()
        self.find_until = begun + FIND_SECONDS * patience
        self._until = begun + LOADING_SECONDS * patience

    def note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES and text not in self.notes:
            self.notes.append(text)

    def count_lost_entry(self, text: str) -> None:
        """One more entry that could not be read."""
        self.lost += 1
        self.note(text)

    def refuse(self, text: str) -> None:
        self.too_large = True
        if text not in self.notes:
            self.notes.insert(0, text)

    def refuse_depth(self) -> None:
        self.refuse(f"too large to read ({_format_size(self.size)}, nested deeper than {MAX_DEPTH} levels)")

    def extend_time(self, seconds: float) -> None:
        """Somebody works on the entries while they are read: that much more time."""
        self._until += seconds

    def is_late(self, entries: int) -> bool:
        """Return True if reading damaged data took too long; checked now and then. It must not be written then.

        What is whole is read to its end, however long that takes.
        """
        if not self.notes or time.process_time() < self._until:
            return False
        self.refuse(f"the file takes too long to read; entries after {entries} are not shown")
        return True

    @property
    def text(self) -> str | None:
        """None when everything was read."""
        if not self.notes:
            return None
        counted = f" ({self.lost} {'entry' if self.lost == 1 else 'entries'} could not be read)" if self.lost else ""
        return "; ".join(self.notes) + counted


class DamageFoundError(Exception):
    """Something is wrong: whoever wants to know what has to read on."""


class StrictDamageReport(DamageReport):
    """Ends the reading with a `DamageFoundError` at the first thing that is wrong."""

    def note(self, text: str) -> None:
        raise DamageFoundError(text)

    def refuse(self, text: str) -> None:
        raise DamageFoundError(text)


def _format_size(size: int) -> str:
    return f"{size} bytes" if size < 1_000_000 else f"{size // 1_000_000} MB"


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
    """Return the place of the next data after a hole at `place`; `place` itself if there is data."""
    return _seek_apart(descriptor, place, getattr(os, "SEEK_DATA", None))


def find_data_end(descriptor: int) -> int:
    """Find the end of a file's data, before a hole that may follow to its end."""
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
    """Find the end of the line that continues at `place`, without keeping it; skips a hole in the file."""
    while data := source.readline(LONG_LINE_BYTES):
        place += len(data)
        if data.endswith(b"\n") or place > MAX_BYTES:
            break
        if not data.strip(b"\0") and not isinstance(file, io.BytesIO):
            place = skip_hole(file.fileno(), place)
            source.seek(place)
    return place


_CHUNK_BYTES = 1 << 20
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FIRST_BYTES = ((b"{\0\0\0", "utf-32-le"), (b"\0\0\0{", "utf-32-be"), (b"{\0", "utf-16-le"), (b"\0{", "utf-16-be"))


def detect_encoding(beginning: bytes) -> tuple[str, int] | None:
    """The encoding of a file that begins so, and the length of its mark; None for plain UTF-8."""
    for mark, name in _MARKS:
        if beginning.startswith(mark):
            return name, len(mark)
    return next(((name, 0) for first, name in _FIRST_BYTES if beginning.startswith(first)), None)


def convert_to_utf8(file: BinaryIO) -> BinaryIO | None:
    """The same text as UTF-8 in a file without a name; None when it is UTF-8 without a mark already."""
    descriptor = file.fileno()
    found = detect_encoding(os.pread(descriptor, 4, 0))
    if found is None:
        return None
    import tempfile

    name, place = found
    decoder = codecs.getincrementaldecoder(name)("replace")
    converted = tempfile.TemporaryFile()  # noqa: SIM115 - the reader closes it
    while place < MAX_BYTES and (chunk := os.pread(descriptor, _CHUNK_BYTES, place)):
        place += len(chunk)
        converted.write(decoder.decode(chunk).encode("utf-8", "replace"))
    converted.write(decoder.decode(b"", final=True).encode("utf-8", "replace"))
    converted.flush()
    return converted
