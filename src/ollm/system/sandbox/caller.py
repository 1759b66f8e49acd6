"""The process that made a call we answer: its memory, its open files, and the paths it names. Standard library only."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
from contextlib import suppress
from typing import NamedTuple

from ollm.system.sandbox.kernel import AT_EMPTY_PATH, AT_FDCWD, call

_RESOLVE_NO_MAGICLINKS = 2
_OWN_FILES = re.compile(r"/(?:proc/(?:self|thread-self)|dev)/fd/([0-9]{1,9})(/.*)?", re.DOTALL)
_STREAMS = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
AT_SYMLINK_NOFOLLOW = 0x100
MAX_PATH_BYTES, PAGE_BYTES = 4096, 4096


class BoxDeniedError(OSError):
    """The box does not allow it; `filename` is the path."""

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

    @property
    def words(self) -> tuple[int, bytes]:
        return self.folder, os.fsencode(self.name)


class Caller:
    """A thread in a call with these arguments. Descriptors that are opened for it are closed with it."""

    def __init__(self, thread: int, words: list[int]) -> None:
        self.words = words
        self._thread = thread
        self._held: list[int] = []

    def close(self) -> None:
        for descriptor in self._held:
            with suppress(OSError):
                os.close(descriptor)

    def keep(self, descriptor: int) -> int:
        self._held.append(descriptor)
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
        """Open what a path names, without access to its contents. Of the links of /proc, which would mean us instead of
        the caller, those to its own open files are understood and the others refused."""
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
            return self.keep(call("openat2", start, os.fsencode(below), how, len(how)))
        except OSError as error:
            raise BoxDeniedError(path) if error.errno == errno.ELOOP else error from None

    def locate(self, directory: int, path: str) -> NamedPlace:
        """Open the folder that a path ends in; the name may not be there yet."""
        above, slash, name = path.rstrip("/").rpartition("/")
        if path and not name:
            return NamedPlace(self.open_path(directory, path), ".")
        return NamedPlace(self.open_path(directory, above + slash or "."), name)

    def _open_start(self, directory: int, path: str) -> tuple[int, str]:
        """Open the directory at which a path begins; also return the rest of the path."""
        if path in _STREAMS:
            return self.take_descriptor(_STREAMS[path]), ""
        if found := _OWN_FILES.fullmatch(path):
            return self.take_descriptor(int(found[1])), (found[2] or "").lstrip("/")
        if path.startswith("/"):
            return AT_FDCWD, path
        own = "cwd" if to_signed(directory) == AT_FDCWD else f"fd/{to_signed(directory)}"
        return self.keep(os.open(f"/proc/{self._thread}/{own}", os.O_PATH | os.O_CLOEXEC)), path

    def take_descriptor(self, number: int) -> int:
        """Duplicate an open file."""
        process = call("pidfd_open", int(self._read_status(b"Tgid:")), 0)
        try:
            return self.keep(call("pidfd_getfd", process, to_signed(number), 0))
        finally:
            os.close(process)

    def _read_status(self, name: bytes) -> bytes:
        with open(f"/proc/{self._thread}/status", "rb", buffering=0) as status:
            return status.read(PAGE_BYTES).partition(name)[2].split(None, 1)[0]


def to_signed(value: int) -> int:
    """A descriptor as the caller passed it: the lower half of a register."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
