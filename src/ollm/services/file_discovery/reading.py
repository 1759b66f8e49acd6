"""One directory as the system shows it, before any rule speaks.

Also a program of its own, started by `parallel_reader`: it reads directories beside us while a large tree is walked. So
that it starts at once, nothing but the interpreter's own modules is imported here.
"""

from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

Signature = tuple[int, int, int] | None
Reading = tuple[Signature, str, list[str], list[str], list[str]]
"""When it was touched, why it could not be read, its files, its directories, all other names; the first two in order.
A plain tuple, since it travels between processes."""
GONE = "gone"
UNREADABLE = "unreadable"
SIZE_BYTES = 4


def read_signature(path: str) -> Signature:
    """What changes when a file or directory does; None while there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called for every directory of a tree
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_directory(path: str) -> Reading:
    """The signature is taken first: a change while the names are read shows as one."""
    seen, others = read_signature(path), _EntryList()
    try:
        with os.scandir(path) as entries:
            files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False) or others.add(entry)]
    except FileNotFoundError:
        return seen, GONE, [], [], []
    except OSError:
        return seen, UNREADABLE, [], [], []
    files.sort()
    if not others:
        return seen, "", files, [], []
    folders = [entry.name for entry in others if entry.is_dir(follow_symlinks=False)]
    folders.sort()
    return seen, "", files, folders, [entry.name for entry in others if not entry.is_dir(follow_symlinks=False)]


class _EntryList(list["os.DirEntry[str]"]):
    """The entries that are no files, gathered while the names of those are read: no other entry is kept in memory."""

    def add(self, entry: os.DirEntry[str]) -> bool:
        self.append(entry)
        return False


def send_value(stream: BinaryIO, value: list[str] | list[Reading]) -> None:
    data = marshal.dumps(value)
    stream.write(len(data).to_bytes(SIZE_BYTES, "big") + data)
    stream.flush()


def serve_requests(requests: BinaryIO, answers: BinaryIO) -> None:
    """Lists of paths come in, the readings of each list go out, until nothing comes any more."""
    while size := requests.read(SIZE_BYTES):
        paths = marshal.loads(requests.read(int.from_bytes(size, "big")))  # noqa: S302 - from our own parent
        send_value(answers, [read_directory(path) for path in paths])


if __name__ == "__main__":
    serve_requests(sys.stdin.buffer, sys.stdout.buffer)
