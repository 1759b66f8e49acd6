"""Cached folder listings, read again only if a folder has changed; one scan of a tree serves all callers."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ollm.domain.lazy import compile_late

CLOCK_STEP_NANOSECONDS = 20_000_000  # A folder's time moves in steps, so a younger stamp proves nothing.
COARSE_STEP_NANOSECONDS = 2_000_000_000  # Some file systems keep whole seconds.
FolderStamp = tuple[int, int, int, int]
_DEFINED_NAME = compile_late(r"[a-z0-9][a-z0-9_-]{0,63}")
_get_stamp = attrgetter("st_ctime_ns", "st_mtime_ns", "st_ino", "st_mode")


def find_named_files(folders: Iterable[Path]) -> dict[str, Path]:
    """Find the Markdown files that define something by their name, such as an agent, sorted. If two have the same name,
    the earlier folder wins. Links are left out."""
    found: dict[str, Path] = {}
    for file in (file for folder in folders if folder.is_dir() for file in folder.glob("*.md")):
        if _DEFINED_NAME.fullmatch(file.stem) and file.is_file() and not file.is_symlink():
            found.setdefault(file.stem, file)
    return dict(sorted(found.items()))


class FolderNames(NamedTuple):
    """The names in a folder: files, folders and others, each sorted. Empty if unreadable or missing."""

    files: list[str]
    folders: list[str]
    others: list[str]
    failure: OSError | None = None


def read_names(path: str) -> FolderNames:
    files, folders, others = list[str](), list[str](), list[str]()
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
                else:
                    (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    except OSError as error:
        return FolderNames([], [], [], error)
    return FolderNames(sorted(files), sorted(folders), sorted(others))


class FolderMemory:
    """Folders as of the last scan. Changes show in their times, which no program can set back."""

    def __init__(self) -> None:
        self._names: dict[str, FolderNames] = {}
        self._stamps: dict[str, FolderStamp] = {}
        self._unsettled: set[str] = set()

    def look(self) -> None:
        """Drop the folders that have changed."""
        self._forget(list(self._unsettled))
        self._forget(list_changed(self._stamps))

    def read(self, path: str) -> FolderNames:
        """Return the names in a folder as of the last scan, or the current names if it is not cached."""
        names = self._names.get(path)
        if names is not None:
            return names
        began, stamp, names = time.time_ns(), read_stamp(path), read_names(path)
        if stamp is not None and names.failure is None:
            self._names[path], self._stamps[path] = names, stamp
            if not is_settled(stamp, began):
                self._unsettled.add(path)
        return names

    def _forget(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._unsettled.discard(path)
            self._stamps.pop(path, None)
            self._names.pop(path, None)


def list_changed(stamps: Mapping[str, FolderStamp]) -> list[str]:
    """Return the folders that no longer have the stamps that they had."""
    try:
        now: list[FolderStamp | None] = list(map(_get_stamp, map(os.lstat, stamps)))
    except OSError:
        now = list(map(read_stamp, stamps))
    return [path for (path, before), stamp in zip(stamps.items(), now, strict=True) if before != stamp]


def read_stamp(path: str) -> FolderStamp | None:
    with suppress(OSError):
        stamp: FolderStamp = _get_stamp(os.lstat(path))
        return stamp
    return None


def is_settled(stamp: FolderStamp, began: int) -> bool:
    """Return True if any later change of names is certain to show in the folder's times."""
    changed, modified, _, _ = stamp
    coarse = not modified % 1_000_000_000 and not changed % 1_000_000_000
    return max(modified, changed) < began - (COARSE_STEP_NANOSECONDS if coarse else CLOCK_STEP_NANOSECONDS)


def measure_bytes(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder. Links are not followed and count as nothing."""
    walked = () if path.is_symlink() else os.walk(path)
    below = (f"{above}/{name}" for above, _, names in walked for name in names)
    return _measure_file(path) + sum(map(_measure_file, below))


def _measure_file(path: str | Path) -> int:
    with suppress(OSError):
        about = os.lstat(path)
        return min(about.st_size, about.st_blocks * 512) if stat.S_ISREG(about.st_mode) else 0  # A file may have holes.
    return 0
