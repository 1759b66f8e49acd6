"""The directories of a tree again and again: one in which no name came or went since the last time is not read anew."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from ollm.services.file_discovery.parallel_walk import iter_listings
from ollm.services.file_discovery.reading import Reading, read_directory
from ollm.services.file_discovery.walk import DirectoryListing, PendingDirectory, Walk

_CLOCK_STEP_NANOSECONDS = 20_000_000  # a directory's time moves in steps: what is younger than one proves nothing
_COARSE_STEP_NANOSECONDS = 2_000_000_000  # of file systems that keep whole seconds

DirectoryStamp = tuple[int, int, int, int]


class TreeScanner:
    """Remembers the names of one tree. Rules are applied each time: they may have changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[DirectoryStamp, Reading]] = {}
        self._scanned = False

    def iter_listings(self, walk: Walk) -> Iterator[DirectoryListing]:
        """One directory after the other, each before what is below it. The first time others may help."""
        if not self._scanned:
            self._scanned = True
            yield from iter_listings(walk)
            return
        known, self._known = self._known, {}
        waiting = [walk.start]
        while waiting:
            listing = self._visit(walk, waiting.pop(), known)
            if listing is not None:
                waiting.extend(reversed(listing.below))
                yield listing

    def _visit(
        self, walk: Walk, place: PendingDirectory, known: dict[str, tuple[DirectoryStamp, Reading]]
    ) -> DirectoryListing | None:
        path = walk.get_path(place.relative)
        began = time.time_ns()
        try:
            status = os.lstat(path)
        except OSError:
            return walk.visit(place)
        stamp = status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode
        found = known.get(path)
        reading = found[1] if found is not None and found[0] == stamp else read_directory(path)
        if not reading[1] and _is_settled(stamp, began):
            self._known[path] = stamp, reading
        return walk.apply_rules(place, reading)


def _is_settled(stamp: DirectoryStamp, began: int) -> bool:
    """Whether a name that comes or goes later must show in the directory's times."""
    modified, changed, _, _ = stamp
    coarse = not modified % 1_000_000_000 and not changed % 1_000_000_000
    return max(modified, changed) < began - (_COARSE_STEP_NANOSECONDS if coarse else _CLOCK_STEP_NANOSECONDS)
