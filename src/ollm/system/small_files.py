"""Reading a small file whose place is known: a pipe, a device or an endless file in that place keeps nobody waiting."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAX_SMALL_BYTES = 16 << 20
GROWTH_BYTES = 1 << 16  # that a file may grow by while it is read; some say that they are empty and are not


def read_small_file(path: Path | str, max_bytes: int = MAX_SMALL_BYTES) -> bytes:
    """All of a regular file. Raises OSError for anything else, and for one that is larger."""
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
