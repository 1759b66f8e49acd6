"""The process whose call is being decided about: the text in its memory, and where its paths lead."""

from __future__ import annotations

import ctypes
import errno
import os
import re

from ollm.system.sandbox.kernel import AT_FDCWD, call

PAGE = 4096
LONGEST_PATH = 4096
USUAL_PATH = 256
MAX_KNOWN_THREADS = 1024
_DESCRIPTORS = re.compile(r"/proc/[0-9]+(?:/task/[0-9]+)?/fd")
_STREAMS = {"/dev/stdin": "0", "/dev/stdout": "1", "/dev/stderr": "2"}


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class CallerMemory:
    """Reads what callers have in their memory, into a buffer that is made once."""

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(PAGE)
        self._ours, self._theirs = _Vector(ctypes.addressof(self._buffer), PAGE), _Vector(0, 0)
        at = [ctypes.c_void_p(ctypes.addressof(vector)) for vector in (self._ours, self._theirs)]
        one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
        self._rest = (at[0], one, at[1], one, none)
        self._read = ctypes.CDLL(None, use_errno=True).process_vm_readv
        self._read.restype = ctypes.c_ssize_t

    def read_bytes(self, thread: int, address: int, length: int) -> bytes:
        """At most a page of it, as far as it is there."""
        self._theirs.base, self._theirs.length = address, min(length, PAGE)
        count = self._read(thread, *self._rest)
        if count < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return ctypes.string_at(self._buffer, count)

    def read_text(self, thread: int, address: int) -> str:
        """The text at an address, read page by page: it may end just before memory that is not there."""
        text = b""
        while len(text) <= LONGEST_PATH:
            place = address + len(text)
            piece = self.read_bytes(thread, place, min(PAGE - place % PAGE, PAGE if text else USUAL_PATH))
            end = piece.find(b"\0")
            if end >= 0:
                return os.fsdecode(text + piece[:end])
            text += piece
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))


class CallerMasks:
    """The umask of every thread that has made a file. The kernel tells it in a long text only, so it is asked once and
    then known, until any thread of the box changes its own."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def get(self, caller: BoxedCaller) -> int:
        known = self._known.get(caller.thread)
        if known is None:
            if len(self._known) >= MAX_KNOWN_THREADS:
                self._known.clear()
            known = self._known[caller.thread] = int(caller.read_status(b"Umask:"), 8)
        return known

    def note_change(self, thread: int, mask: int) -> None:
        """This thread is about to change its umask; threads may share one, so of the others nothing is known now."""
        self._known = {thread: mask & 0o777}


class NamedPlace:
    """A name in a directory that is held open: where a path leads, but for a link that is there itself."""

    def __init__(self, directory: int, above: str, name: str) -> None:
        self.directory = directory
        self.name = name
        self.path = f"{above.rstrip('/')}/{name}"
        self.is_descriptor = above.startswith("/proc/") and _DESCRIPTORS.fullmatch(above) is not None


class BoxedCaller:
    """A thread that waits for our answer. Directories opened for its paths stay open until `close`."""

    def __init__(self, thread: int, memory: CallerMemory, masks: CallerMasks) -> None:
        self.thread = thread
        self._memory = memory
        self._masks = masks
        self._opened: list[int] = []

    def close(self) -> None:
        for descriptor in self._opened:
            os.close(descriptor)
        self._opened.clear()

    def read_text(self, address: int) -> str:
        return self._memory.read_text(self.thread, address)

    def read_bytes(self, address: int, length: int) -> bytes:
        return self._memory.read_bytes(self.thread, address, length)

    def umask(self) -> int:
        return self._masks.get(self)

    def read_status(self, field: bytes) -> bytes:
        descriptor = os.open(f"/proc/{self.thread}/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(descriptor, PAGE)
        finally:
            os.close(descriptor)
        return text[text.index(field) + len(field) :].split(None, 1)[0]

    def take_descriptor(self, number: int) -> int:
        """A descriptor of our own for an open file of the caller."""
        process = call("pidfd_open", int(self.read_status(b"Tgid:")), 0)
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
            start = self._open_path(f"/proc/{self.thread}/{own}", None)
        return self._split(start, self._translate(path))

    def follow(self, place: NamedPlace) -> NamedPlace:
        """Where the link at a place leads."""
        target = os.readlink(place.name, dir_fd=place.directory)
        return self._split(None if target.startswith("/") else place.directory, self._translate(target))

    def locate_descriptor(self, descriptor: int) -> NamedPlace:
        """The place of an open file of the caller."""
        return self._split(None, f"/proc/{self.thread}/fd/{_to_signed(descriptor)}")

    def check_process(self, path: str, *, writing: bool) -> None:
        """What /proc says about us is ours: we would be let in where the caller is not. And a caller writes there only
        to what is its own."""
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
        above = self._open_path(head or "/", start) if here is None else here
        return NamedPlace(above, os.readlink(f"/proc/self/fd/{above}"), name)

    def _split_directory(self, start: int | None, path: str) -> NamedPlace:
        """A path that ends in dots has no name of its own: that of the directory it leads to is taken."""
        real = os.readlink(f"/proc/self/fd/{self._open_path(path, start)}")
        if real == "/":
            return NamedPlace(self._open_path("/", None), "/", ".")
        above = self._open_path(os.path.dirname(real), None)
        return NamedPlace(above, os.path.dirname(real), os.path.basename(real))

    def _open_path(self, path: str, start: int | None) -> int:
        descriptor = os.open(
            path, os.O_PATH | os.O_CLOEXEC | (0 if path.startswith("/proc/") else os.O_DIRECTORY), dir_fd=start
        )
        self._opened.append(descriptor)
        return descriptor

    def _translate(self, path: str) -> str:
        """What means the process that asks must mean the caller, not us."""
        if not path.startswith(("/proc", "/dev")):
            return path
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
