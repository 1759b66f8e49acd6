"""The process whose call is being decided about: the text in its memory, and where its paths lead."""

from __future__ import annotations

import ctypes
import errno
import os
import re

from ollm.system.sandbox.kernel import AT_FDCWD, call

PAGE = 4096
LONGEST_PATH = 4096
_DESCRIPTORS = re.compile(r"/proc/[0-9]+(?:/task/[0-9]+)?/fd")
_STREAMS = {"/dev/stdin": "0", "/dev/stdout": "1", "/dev/stderr": "2"}


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class NamedPlace:
    """A name in a directory that is held open: where a path leads, but for a link that stands there itself."""

    def __init__(self, directory: int, above: str, name: str) -> None:
        self.directory = directory
        self.name = name
        self.path = f"{above.rstrip('/')}/{name}"
        self.is_descriptor = _DESCRIPTORS.fullmatch(above) is not None


class BoxedCaller:
    """A thread that waits for our answer. Directories opened for its paths stay open until `close`."""

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self._opened: list[int] = []

    def close(self) -> None:
        for descriptor in self._opened:
            os.close(descriptor)
        self._opened.clear()

    def read_text(self, address: int) -> str:
        """The text at an address, read page by page: it may end just before memory that is not there."""
        text = bytearray()
        while len(text) <= LONGEST_PATH:
            length = PAGE - (address + len(text)) % PAGE
            piece = self.read_bytes(address + len(text), length)
            end = piece.find(b"\0")
            if end >= 0:
                return os.fsdecode(bytes(text + piece[:end]))
            text += piece
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))

    def read_bytes(self, address: int, length: int) -> bytes:
        buffer = ctypes.create_string_buffer(length)
        ours = _Vector(ctypes.addressof(buffer), length)
        theirs = _Vector(address, length)
        at = [ctypes.addressof(vector) for vector in (ours, theirs)]
        read = call("process_vm_readv", self.thread, at[0], 1, at[1], 1, 0)
        return buffer.raw[:read]

    def umask(self) -> int:
        return int(self._status(b"Umask:"), 8)

    def _status(self, field: bytes) -> bytes:
        descriptor = os.open(f"/proc/{self.thread}/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(descriptor, PAGE)
        finally:
            os.close(descriptor)
        return text[text.index(field) + len(field) :].split(None, 1)[0]

    def take_descriptor(self, number: int) -> int:
        """A descriptor of our own for an open file of the caller."""
        process = call("pidfd_open", int(self._status(b"Tgid:")), 0)
        try:
            return call("pidfd_getfd", process, _to_signed(number), 0)
        finally:
            os.close(process)

    def find(self, directory: int, path: str) -> NamedPlace:
        """Where a path of the caller leads, taken from `directory` (a descriptor of theirs, or AT_FDCWD)."""
        if not path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        start = None
        if not path.startswith("/"):
            own = "cwd" if _to_signed(directory) == AT_FDCWD else f"fd/{_to_signed(directory)}"
            start = self._open(f"/proc/{self.thread}/{own}", None)
        return self._split(start, self._translate(path))

    def follow(self, place: NamedPlace) -> NamedPlace:
        """Where the link at a place leads."""
        target = os.readlink(place.name, dir_fd=place.directory)
        return self._split(None if target.startswith("/") else place.directory, self._translate(target))

    def descriptor_place(self, descriptor: int) -> NamedPlace:
        """The place of an open file of the caller."""
        return self._split(None, f"/proc/{self.thread}/fd/{_to_signed(descriptor)}")

    def check_process(self, path: str, *, writing: bool) -> None:
        """What /proc tells of us is ours: we would be let in where the caller is not. And a caller writes there only to
        what is its own."""
        process = path.split("/")[2] if path.startswith("/proc/") else ""
        if not process.isdigit() or (int(process) != os.getpid() and not writing):
            return
        if int(process) == os.getpid() or not os.path.exists(f"/proc/{process}/task/{self.thread}"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    def _split(self, start: int | None, path: str) -> NamedPlace:
        head, _, name = path.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            return self._split_directory(start, path)
        here = start if not head and not path.startswith("/") else None
        above = self._open(head or "/", start) if here is None else here
        return NamedPlace(above, os.readlink(f"/proc/self/fd/{above}"), name)

    def _split_directory(self, start: int | None, path: str) -> NamedPlace:
        """A path that ends in dots has no name of its own: that of the directory it leads to is taken."""
        real = os.readlink(f"/proc/self/fd/{self._open(path, start)}")
        if real == "/":
            return NamedPlace(self._open("/", None), "/", ".")
        above = self._open(os.path.dirname(real), None)
        return NamedPlace(above, os.path.dirname(real), os.path.basename(real))

    def _open(self, path: str, start: int | None) -> int:
        descriptor = os.open(
            path, os.O_PATH | os.O_CLOEXEC | (0 if path.startswith("/proc/") else os.O_DIRECTORY), dir_fd=start
        )
        self._opened.append(descriptor)
        return descriptor

    def _translate(self, path: str) -> str:
        """What means the process that asks must mean the caller, not us."""
        if path in _STREAMS:
            return f"/proc/{self.thread}/fd/{_STREAMS[path]}"
        for prefix, ours in (("/proc/self", ""), ("/proc/thread-self", ""), ("/dev/fd", "/fd")):
            if path == prefix or path.startswith(prefix + "/"):
                return f"/proc/{self.thread}{ours}{path[len(prefix) :]}"
        return path


def _to_signed(value: int) -> int:
    """A descriptor as the caller passed it: the lower half of a register."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
