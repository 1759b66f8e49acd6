"""Finds the `.env` files of a workspace, so that a reading box can hide them. Standard library only."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from ollm.system.file_names import is_environment_file

MAX_DIRECTORIES = 20_000
SETTLED_NANOSECONDS = 50_000_000  # a directory changed this shortly before it was read may have changed again unseen


class TooManyDirectoriesError(Exception):
    """The workspace is too large to be looked through before every command."""


class EnvironmentFileListing(NamedTuple):
    """What is known of a directory: when it was changed and read, and what of it matters."""

    changed: int
    read: int
    directories: tuple[str, ...]
    found: tuple[str, ...]


class EnvironmentFiles:
    """Knows a tree from the last time, and reads again only the directories that have changed."""

    def __init__(self) -> None:
        self._listings: dict[str, EnvironmentFileListing] = {}

    def find(self, root: str) -> list[str]:
        """Every file or directory at any depth whose name is `.env*`, but for examples. Links are not followed."""
        found: list[str] = []
        seen: dict[str, EnvironmentFileListing] = {}
        waiting = [root]
        while waiting:
            directory = waiting.pop()
            listing = self._list(directory)
            if listing is None:
                continue
            seen[directory] = listing
            found += listing.found
            waiting += listing.directories
            if len(seen) > MAX_DIRECTORIES:
                raise TooManyDirectoriesError
        self._listings = seen
        return found

    def _list(self, directory: str) -> EnvironmentFileListing | None:
        try:
            changed = os.stat(directory, follow_symlinks=False).st_mtime_ns
        except OSError:
            return None
        known = self._listings.get(directory)
        if known is not None and known.changed == changed and known.read - changed > SETTLED_NANOSECONDS:
            return known
        now = time.time_ns()
        directories, found = [], []
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if is_environment_file(entry.name):
                        found.append(entry.path)
                    elif entry.is_dir(follow_symlinks=False):
                        directories.append(entry.path)
        except OSError:
            return None
        return EnvironmentFileListing(changed, now, tuple(directories), tuple(found))
