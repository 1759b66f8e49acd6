"""The names in folders, read again only if a folder has changed: one look at a tree serves all who ask about it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from operator import attrgetter
from typing import Literal, NamedTuple

CLOCK_STEP_NANOSECONDS = 20_000_000  # a folder's time moves in steps: what is younger than one proves nothing
COARSE_STEP_NANOSECONDS = 2_000_000_000  # of file systems that keep whole seconds
FolderStamp = tuple[int, int, int, int]
_get_stamp = attrgetter("st_ctime_ns", "st_mtime_ns", "st_ino", "st_mode")


class FolderNames(NamedTuple):
    """The names in a folder: files and folders in order, then all others. An unreadable or missing one has none."""

    files: list[str]
    folders: list[str]
    others: list[str]
    failure: OSError | None = None


def read_names(path: str) -> FolderNames:
    others = _EntryList()
    try:
        with os.scandir(path) as entries:
            files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False) or others.add(entry)]
    except OSError as error:
        return FolderNames([], [], [], error)
    files.sort()
    if not others:
        return FolderNames(files, [], [])
    folders = [entry.name for entry in others if entry.is_dir(follow_symlinks=False)]
    if len(folders) == len(others):
        folders.sort()
        return FolderNames(files, folders, [])
    links = sorted(entry.name for entry in others if not entry.is_dir(follow_symlinks=False))
    return FolderNames(files, sorted(folders), links)


class _EntryList(list["os.DirEntry[str]"]):
    """The entries that are no files, gathered while the names of those are read: no other entry is kept in memory."""

    def add(self, entry: os.DirEntry[str]) -> bool:
        self.append(entry)
        return False


class FolderMemory:
    """Folders as they were at the last look; a change shows in their times, which no program can set back. `state` is
    another object whenever anything in here has changed, `looked` the moment of the last look. A look that was
    taken right `before` a command, or `after` one, serves whoever else needs one then: it is `offered`."""

    def __init__(self) -> None:
        self.state = object()
        self.looked = 0.0
        self.offered: Literal["", "before", "after"] = ""
        self._names: dict[str, FolderNames] = {}
        self._stamps: dict[str, FolderStamp] = {}
        self._unsettled: set[str] = set()

    def look(self, since: float = float("inf")) -> None:
        """Forget the folders that have changed, unless the last look was after the moment `since`."""
        if self.looked >= since:
            return
        self.looked = time.monotonic()
        self._forget(list(self._unsettled))
        known = list(self._stamps.items())
        try:
            stamps: list[FolderStamp | None] = list(map(_get_stamp, map(os.lstat, (path for path, _ in known))))
        except OSError:
            stamps = [_read_stamp(path) for path, _ in known]
        self._forget([path for (path, before), now in zip(known, stamps, strict=True) if before != now])

    def take_offer(self, moment: Literal["before", "after"]) -> bool:
        """Return True if the last look was offered for this moment, once."""
        offered, self.offered = self.offered, ""
        return offered == moment

    def read(self, path: str) -> FolderNames:
        """The names in a folder as they were at the last look, or as they are if it is not known."""
        names = self._names.get(path)
        if names is not None:
            return names
        began, stamp, names = time.time_ns(), _read_stamp(path), read_names(path)
        if stamp is not None and names.failure is None:
            self._names[path], self._stamps[path] = names, stamp
            if not _is_settled(stamp, began):
                self._unsettled.add(path)
            self.state = object()
        return names

    def _forget(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._unsettled.discard(path)
            self._stamps.pop(path, None)
            self._names.pop(path, None)
            self.state = object()


def _read_stamp(path: str) -> FolderStamp | None:
    with suppress(OSError):
        stamp: FolderStamp = _get_stamp(os.lstat(path))
        return stamp
    return None


def _is_settled(stamp: FolderStamp, began: int) -> bool:
    """Return True if a name that comes or goes later must show in the folder's times."""
    changed, modified, _, _ = stamp
    coarse = not modified % 1_000_000_000 and not changed % 1_000_000_000
    return max(modified, changed) < began - (COARSE_STEP_NANOSECONDS if coarse else CLOCK_STEP_NANOSECONDS)
