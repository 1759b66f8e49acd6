"""Separates the files in writable folders from their names outside: a command could change those through its own name.

`uv` and `pnpm` link installed packages to their caches, `git clone` links objects, and a person may have linked any
file. No mount or Landlock rule tells such a file from another, so each one is replaced by a copy before the first
command of a session. All files are looked at once; folders of packages again only if they have changed.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from ollm.domain.errors import ToolFailure
from ollm.system.atomic import make_private_directory, replace_file
from ollm.system.beneath import LinkFound, detach_file, open_parent_directory
from ollm.system.sandbox.names import INSTALLED_FOLDERS, is_inside

MAX_COPY_BYTES = 64 * 1024**2
SETTLED_NS = 2_000_000_000  # a folder that has changed since may change again without showing it
PACKAGE_FOLDERS = INSTALLED_FOLDERS - {"__pycache__"}


class HardLinks:
    """The files below roots that have other names. `kept` are folders to leave out, which no command can change;
    `memory` is a file with the states of the folders of packages that were looked at."""

    def __init__(self, roots: Iterable[str], kept: Container[str] = (), memory: Path | None = None) -> None:
        self._roots = tuple(roots)
        self._kept = kept
        self._memory = memory
        self._packages: dict[str, list[int]] | None = None  # folders, as they were when they were looked at
        self._shared: set[str] = set()  # could not be copied

    def separate(self) -> tuple[int, list[str]]:
        """Copy files that have names outside. Return how many, and those that could not be copied."""
        if self._packages is None:
            self._packages, remembered, tops = {}, self._load(), [*self._roots]
        else:
            remembered, tops = {}, [path for path, state in self._packages.items() if _read_state(path) != state]
        found = groupby(sorted(self._find(tops, remembered), key=os.path.dirname), os.path.dirname) if tops else ()
        copied = sum(self._separate_files(folder, paths) for folder, paths in found)
        if copied:
            self._packages = {path: _read_state(path) for path in self._packages}
        if self._memory and tops and self._packages != remembered:
            self._store(self._memory, self._packages)
        return copied, [path for path in self._shared if os.path.lexists(path)]

    def _find(self, tops: Iterable[str], remembered: Mapping[str, list[int]]) -> list[str]:
        """Return the files with more names than there are below these folders."""
        names: dict[tuple[int, int], list[str]] = {}
        counts: dict[tuple[int, int], int] = {}
        waiting = [(folder, False) for folder in tops]
        while waiting:
            folder, in_packages = waiting.pop()
            if not in_packages and os.path.basename(folder) in PACKAGE_FOLDERS and self._packages is not None:
                in_packages, self._packages[folder] = True, _read_state(folder)
                if self._packages[folder] == remembered.get(folder):
                    continue
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting += [] if entry.path in self._kept else [(entry.path, in_packages)]
                    elif entry.is_file(follow_symlinks=False):
                        about = entry.stat(follow_symlinks=False)
                        if about.st_nlink > 1:
                            names.setdefault((about.st_dev, about.st_ino), []).append(entry.path)
                            counts[about.st_dev, about.st_ino] = about.st_nlink
        return [path for file, paths in names.items() if len(set(paths)) < counts[file] for path in paths]

    def _separate_files(self, folder: str, paths: Iterable[str]) -> int:
        root, copied = next(root for root in self._roots if is_inside(folder, root)), 0
        durable = PACKAGE_FOLDERS.isdisjoint(folder.split("/"))  # packages can be installed again
        with suppress(OSError, LinkFound), open_parent_directory(Path(root), Path(folder, "_")) as parent:
            for path in paths:
                try:
                    detach_file(parent, os.path.basename(path), MAX_COPY_BYTES, durable=durable)
                    copied += 1
                except (OSError, ToolFailure):
                    self._shared.add(path)
        return copied

    def _load(self) -> dict[str, list[int]]:
        with suppress(OSError, ValueError, AttributeError):
            return dict(json.loads(self._memory.read_bytes())) if self._memory else {}
        return {}

    def _store(self, memory: Path, packages: Mapping[str, list[int]]) -> None:
        """Store the states of folders that cannot change unnoticed and in which every file could be copied."""
        newest = time.time_ns() - SETTLED_NS
        kept = {path: state for path, state in packages.items() if state and state[0] < newest}
        kept = {path: kept[path] for path in kept if not any(is_inside(file, path) for file in self._shared)}
        make_private_directory(memory.parent)
        replace_file(memory, json.dumps(kept).encode(), durable=False)


def _read_state(folder: str) -> list[int]:
    try:
        about = os.lstat(folder)
    except OSError:
        return []
    return [about.st_ctime_ns, about.st_ino] if stat.S_ISDIR(about.st_mode) else []
