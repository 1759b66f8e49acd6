"""A walk that gets help when the tree turns out to be large: the answer, and its order, are those of the walk alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ollm.services.file_discovery.parallel_reader import MOST_PATHS, SecondReader, spare_core
from ollm.services.file_discovery.walk import Listing, Place, Walk

ALONE = 150  # directories that one process has read before another could have started
ENOUGH = 8  # directories that must wait for two to have something to do
AHEAD = 2  # orders under way, so that the other is never without one
_OWN = 8  # directories read here between two looks at what has come back


def listings(walk: Walk, alone: int = ALONE) -> Iterator[Listing]:
    """One directory after the other, each before what is below it."""
    waiting, count = [walk.start], 0
    while waiting:
        if count >= alone and len(waiting) >= ENOUGH and walk.any_order and spare_core():
            yield from _in_order(waiting, _Shared(walk, waiting).read())
            return
        listing = walk.visit(waiting.pop())
        count += 1
        if listing is not None:
            waiting.extend(reversed(listing.below))
            yield listing


def _in_order(starts: list[Place], found: dict[str, Listing]) -> Iterator[Listing]:
    waiting = list(starts)
    while waiting:
        listing = found.get(waiting.pop().relative)
        if listing is not None:
            waiting.extend(reversed(listing.below))
            yield listing


class _Shared:
    """What is left of a walk, read by two: the other gets what would come last here."""

    def __init__(self, walk: Walk, waiting: list[Place]) -> None:
        self._walk = walk
        self._waiting = list(waiting)
        self._asked: deque[list[Place]] = deque()
        self._found: dict[str, Listing] = {}
        self._other: SecondReader | None = None

    def read(self) -> dict[str, Listing]:
        """All that is left, by path from the root."""
        try:
            self._start()
            while self._waiting or self._asked:
                self._hand_over()
                if not self._take_back():
                    self._read_some()
        except (OSError, ValueError, EOFError, TypeError):
            self._alone()
        finally:
            if self._other:
                self._other.close()
        return self._found

    def _start(self) -> None:
        """Empty orders first: nothing waits for the other while it is still starting."""
        self._other = SecondReader()
        for _ in range(AHEAD):
            self._other.ask([])
            self._asked.append([])

    def _hand_over(self) -> None:
        assert self._other
        while len(self._asked) < AHEAD and len(self._waiting) >= ENOUGH:
            share = self._waiting[: min(len(self._waiting) // 2, MOST_PATHS)]
            count = self._other.ask([self._walk.path(place.relative) for place in share])
            self._asked.append(share[:count])
            del self._waiting[:count]

    def _read_some(self) -> None:
        for _ in range(min(_OWN, len(self._waiting))):
            place = self._waiting.pop()
            self._keep(place, self._walk.visit(place))

    def _take_back(self) -> bool:
        """Whether something had come, or is to be waited for since there is nothing else to do."""
        assert self._other
        readings = self._other.answer(wait=not self._waiting) if self._asked else None
        if readings is None:
            return False
        for place, reading in zip(self._asked[0], readings, strict=True):
            self._keep(place, self._walk.judged(place, reading))
        self._asked.popleft()
        return True

    def _keep(self, place: Place, listing: Listing | None) -> None:
        if listing is not None:
            self._found[place.relative] = listing
            self._waiting.extend(reversed(listing.below))

    def _alone(self) -> None:
        """The other is gone: what it was asked for is read here."""
        waiting = [*(place for share in self._asked for place in share), *self._waiting]
        while waiting:
            place = waiting.pop()
            if place.relative not in self._found:
                self._waiting = []
                self._keep(place, self._walk.visit(place))
                waiting.extend(self._waiting)
