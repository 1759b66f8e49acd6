"""What changes when a file or directory does."""

from __future__ import annotations

import os

Signature = tuple[int, int, int] | None


def signature(path: str) -> Signature:
    """What changes when a file does; None while there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called for every directory of a tree
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
