"""What the model knows of files, so that it does not overwrite what others changed, and copies to undo its edits."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ollm.domain.struct import Data


class Sight(Data, frozen=True):
    """A file as it was last seen. `digest` is None when only a part of it was read."""

    device: int
    inode: int
    size: int
    changed: int
    digest: bytes | None = None


def sight_of(status: os.stat_result, content: bytes | None = None) -> Sight:
    digest = None if content is None else hashlib.sha256(content).digest()
    return Sight(
        device=status.st_dev, inode=status.st_ino, size=status.st_size, changed=status.st_mtime_ns, digest=digest
    )


class EditLedger:
    """One per session. Paths are resolved ones."""

    def __init__(self) -> None:
        self._seen: dict[Path, Sight] = {}

    def saw(self, path: Path, status: os.stat_result, content: bytes | None = None) -> None:
        """The model was shown this file (`content`: all of it), or wrote it."""
        self._seen[path] = sight_of(status, content)

    def is_stale(self, path: Path, status: os.stat_result, content: bytes) -> bool:
        """Whether the file is no longer what the model last saw; False when it never saw it."""
        seen = self._seen.get(path)
        if seen is None:
            return False
        now = sight_of(status, content)
        if seen.digest is not None:
            return seen.digest != now.digest
        return (seen.device, seen.inode, seen.size, seen.changed) != (now.device, now.inode, now.size, now.changed)
