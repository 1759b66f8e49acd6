"""Hard links: names of one file that go back to one content stay names of one file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ollm.services.file_checkpoints.tree import PathChange, TreeEntry
from ollm.system.beneath import LinkFound, open_parent_directory


def find_joined_names(root: Path, steps: Iterable[PathChange]) -> list[list[bytes]]:
    """The paths among a restore's steps that are one file now and become equal files: each list in order."""
    found: dict[tuple[int, int, TreeEntry], list[bytes]] = {}
    for path, before, after in steps:
        if before is None or after is None or not before.kind == after.kind == "f":
            continue
        try:
            status = os.lstat(root / path)
        except OSError:
            continue
        if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
            found.setdefault((status.st_dev, status.st_ino, after), []).append(os.fsencode(path))
    return [sorted(names) for names in found.values() if len(names) > 1]


def link_beside(root: Path, leader: str, parent: int, name: str) -> bool:
    """Give a file below the root another name in the directory `parent`; False where that cannot be done."""
    full = root / leader
    try:
        with open_parent_directory(root, full) as source:
            os.link(full.name, name, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False)
    except (OSError, LinkFound, NotImplementedError):
        return False
    return True
