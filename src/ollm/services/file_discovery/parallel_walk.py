"""A walk that gets help when the tree turns out to be large: the answer, and its order, are those of the walk alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ollm.services.file_discovery.parallel_reader import MAX_REQUEST_PATHS, ReaderProcess, has_spare_core
from ollm.services.file_discovery.walk import DirectoryListing, PendingDirectory, Walk

MIN_ALONE_DIRECTORIES = 150  # directories that one process has read before another could have started
MIN_WAITING_DIRECTORIES = 8  # directories that must wait for two to have something to do
MAX_PENDING_REQUESTS = 2  # orders under way, so that the other is never without one
_OWN_DIRECTORIES = 8  # directories read here between two looks at what has come back


def iter_listings(walk: Walk, alone: int = MIN_ALONE_DIRECTORIES) -> Iterator[DirectoryListing]:
    """One directory after the other, each before what is below it."""
    waiting, count = [walk.start], 0
    while waiting:
        if count >= alone and len(waiting) >= MIN_WAITING_DIRECTORIES and walk.allows_any_order and has_spare_core():
            yield from _order_listings(waiting, _SharedWalk(walk, waiting).read())
            return
        listing = walk.visit(waiting.pop())
        count += 1
        if listing is not None:
            waiting.extend(reversed(listing.below))
            yield listing


def _order_listings(starts: list[PendingDirectory], found: dict[str, DirectoryListing]) -> Iterator[DirectoryListing]:
    waiting = list(starts)
    while waiting:
        listing = found.get(waiting.pop().relative)
        if listing is not None:
            waiting.extend(reversed(listing.below))
            yield listing


class _SharedWalk:
    """What is left of a walk, read by two: the other gets what would come last here."""

    def __init__(self, walk: Walk, waiting: list[PendingDirectory]) -> None:
        self._walk = walk
        self._waiting = list(waiting)
        self._asked: deque[list[PendingDirectory]] = deque()
        self._found: dict[str, DirectoryListing] = {}
        self._other: ReaderProcess | None = None

    def read(self) -> dict[str, DirectoryListing]:
        """All that is left, by path from the root."""
        try:
            self._start()
            while self._waiting or self._asked:
                self._hand_over()
                if not self._take_back():
                    self._read_some()
        except (OSError, ValueError, EOFError, TypeError):
            self._read_alone()
        finally:
            if self._other:
                self._other.close()
        return self._found

    def _start(self) -> None:
        """Empty orders first: nothing waits for the other while it is still starting."""
        self._other = ReaderProcess(self._walk.get_path(""))
        for _ in range(MAX_PENDING_REQUESTS):
            self._other.send_request([])
            self._asked.append([])

    def _hand_over(self) -> None:
        assert self._other
        while len(self._asked) < MAX_PENDING_REQUESTS and len(self._waiting) >= MIN_WAITING_DIRECTORIES:
            share = self._waiting[: min(len(self._waiting) // 2, MAX_REQUEST_PATHS)]
            count = self._other.send_request([self._walk.get_path(place.relative) for place in share])
            self._asked.append(share[:count])
            del self._waiting[:count]

    def _read_some(self) -> None:
        for _ in range(min(_OWN_DIRECTORIES, len(self._waiting))):
            place = self._waiting.pop()
            self._keep(place, self._walk.visit(place))

    def _take_back(self) -> bool:
        """Whether something had come, or is to be waited for since there is nothing else to do."""
        assert self._other
        readings = self._other.receive_readings(wait=not self._waiting) if self._asked else None
        if readings is None:
            return False
        for place, reading in zip(self._asked[0], readings, strict=True):
            self._keep(place, self._walk.apply_rules(place, reading))
        self._asked.popleft()
        return True

    def _keep(self, place: PendingDirectory, listing: DirectoryListing | None) -> None:
        if listing is not None:
            self._found[place.relative] = listing
            self._waiting.extend(reversed(listing.below))

    def _read_alone(self) -> None:
        """The other is gone: what it was asked for is read here."""
        waiting = [*(place for share in self._asked for place in share), *self._waiting]
        while waiting:
            place = waiting.pop()
            if place.relative not in self._found:
                self._waiting = []
                self._keep(place, self._walk.visit(place))
                waiting.extend(self._waiting)
