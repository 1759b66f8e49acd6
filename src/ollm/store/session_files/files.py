"""Open a session's files for reading, split them into lines, and collect the damage found in them."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ollm.domain.errors import StorageError

MAX_BYTES = 500_000_000
MAX_NOTES = 5
LAST_MESSAGE = "lastMessage"  # The metadata has the number of the document's last message.
MISSING = "missing"  # The metadata has the gaps that the user was told about.
CONTAINED = "containedJournal"  # It has the checksum of a journal that the document holds already.
MAX_MESSAGE_NUMBER = 10**7  # Files of MAX_BYTES hold fewer messages, so a higher number is damage.


class DamageReport:
    """Damage found while files are read. `too_large` means that the session can be viewed but must not be written."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.lost = 0
        self.missing = ""  # This sentence names missing messages and calls.
        self.too_large = False
        self.size = 0  # The files that are read have so many bytes.

    def note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES and text not in self.notes:
            self.notes.append(text)

    def count_lost_entry(self, text: str = "") -> None:
        """Count one more entry that could not be read."""
        self.lost += 1
        if text:
            self.note(text)

    def refuse(self, text: str) -> None:
        self.too_large = True
        if text not in self.notes:
            self.notes.insert(0, text)

    @property
    def text(self) -> str | None:
        """Description of the damage, or None if everything was read."""
        said = "; ".join(filter(None, (*self.notes, self.missing)))
        lost = f"{self.lost} {'entry' if self.lost == 1 else 'entries'} could not be read" if self.lost else ""
        return f"{said} ({lost})" if said and lost else said or lost or None


BUFFER_BYTES = 1 << 18
_BLOCK_BYTES = 1 << 14


class SessionFile:
    """A file read by position, with its size fixed when opened; `waiting` is read after its end."""

    def __init__(self, descriptor: int | None, waiting: bytes = b"") -> None:
        self.descriptor = descriptor
        self._on_disk, self.inode, self.stamp = 0, 0, ""  # Inode, size and time tell it from a later file.
        if descriptor is not None:
            found = os.fstat(descriptor)
            self._on_disk, self.inode = found.st_size, found.st_ino
            self.stamp = f"{found.st_ino},{found.st_size},{found.st_mtime_ns}"
        self._waiting = waiting
        self._buffer, self._buffered = b"", 0  # These bytes were read before, from that place on.
        self.size = self._on_disk + len(waiting)

    def compute_checksum(self) -> str:
        """Compute a checksum of the size and the last few kilobytes: enough for a file that only grows."""
        import zlib  # It is rarely needed.

        return f"{self.size},{zlib.crc32(self.read(max(0, self.size - _BLOCK_BYTES), self.size))}"

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def read(self, start: int, end: int) -> bytes:
        """Read the bytes between two places, as far as there are any."""
        on_disk, data = self._on_disk, b""
        if start < on_disk:
            assert self.descriptor is not None
            data = os.pread(self.descriptor, min(end, on_disk) - start, start)
        return data if end <= on_disk else data + self._waiting[max(0, start - on_disk) : end - on_disk]

    def read_buffered(self, start: int, end: int) -> bytes:
        """Read like `read`, for many short reads one after the other."""
        if not self._buffered <= start <= end <= self._buffered + len(self._buffer):
            self._buffer, self._buffered = self.read(start, max(end, start + _BLOCK_BYTES)), start
        return self._buffer[start - self._buffered : end - self._buffered]

    def iter_lines(self, place: int = 0) -> Iterator[tuple[int, int, bytes]]:
        """Iterate over the lines from `place` on: start, end, and the line with its end, which the last may lack."""
        read, rest = place, [b""]
        while block := self.read(read, read + BUFFER_BYTES):
            read += len(block)
            if b"\n" not in block:
                rest.append(block)
                continue
            # The method `split` is slow, because it looks at each byte by itself.
            lines = io.BytesIO(b"".join((*rest, block))).readlines()
            rest = [b"" if lines[-1].endswith(b"\n") else lines.pop()]
            for line in lines:
                start, place = place, place + len(line)
                yield start, place, line
        if last := b"".join(rest):
            yield place, read, last


def open_file(path: Path, damage: DamageReport) -> int | None:
    """Open a file for reading, or return None if it is not there; never through a link, never a device."""
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
    return descriptor


def get_file_time(*paths: Path | None) -> datetime:
    """Return the time when the newest of these files was last written."""
    times = [0.0]
    for path in filter(None, paths):
        with contextlib.suppress(OSError):
            times.append(path.lstat().st_mtime)
    return datetime.fromtimestamp(max(times), UTC)
