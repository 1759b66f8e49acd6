"""What a watch knows of a tree: every kept directory with its files, and what is new when one is read again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from ollm.domain.files import ChangeKind
from ollm.services.file_discovery.reading import Signature, read_signature
from ollm.services.file_discovery.walk import DirectoryListing, PendingDirectory, Walk

Change = tuple[ChangeKind, str]


class TreeState:
    """The state of a tree at one time. `refresh` and `relearn` bring it up to date and say what changed."""

    def __init__(self, new_walk: Callable[[], Walk]) -> None:
        self._new_walk = new_walk
        self._walk = new_walk()
        self._places: dict[str, PendingDirectory] = {}
        self._files: dict[str, dict[str, Signature]] = {}

    @property
    def directories(self) -> set[str]:
        """The kept ones, as paths."""
        return {self._walk.get_path(relative) for relative in self._places}

    @property
    def stale_directories(self) -> list[str]:
        """The directories that were touched since they were read, from the root."""
        return [
            relative
            for relative in self._places
            if read_signature(path := self._walk.get_path(relative)) != self._walk.directories.get(path)
        ]

    def reread_tree(self) -> list[Change]:
        """Read the whole tree again, the rules too."""
        self._walk = self._new_walk()
        before = set(self._places)
        self._places.clear()
        changes = list(self._read_below(self._walk.start, everything=True))
        for relative in before - set(self._places):
            changes += self._drop_directory(relative)
        return changes

    def refresh(self, relatives: Iterable[str]) -> list[Change]:
        """Read these directories again, and with them what is new below."""
        changes: list[Change] = []
        for relative in sorted(relatives):
            if relative in self._places:
                changes += self._read_below(self._places[relative], everything=False)
        return changes

    def _read_below(self, start: PendingDirectory, *, everything: bool) -> Iterator[Change]:
        waiting = [start]
        while waiting:
            place = waiting.pop()
            listing = self._walk.visit(place)
            if listing is None:
                yield from self._drop_tree(place.relative)
                continue
            self._places[place.relative] = place
            yield from self._compare_listing(listing)
            below = {inner.relative: inner for inner in listing.below}
            waiting.extend(inner for name, inner in below.items() if everything or name not in self._places)
            if not everything:
                for relative in self._list_children(place) - set(below):
                    yield from self._drop_tree(relative)

    def _compare_listing(self, listing: DirectoryListing) -> Iterator[Change]:
        before = self._files.get(listing.place.relative, {})
        folder = self._walk.get_path(listing.place.relative)
        now = {name: read_signature(f"{folder}/{name}") for name in listing.files}
        self._files[listing.place.relative] = now
        for name in before.keys() - now.keys():
            yield from _report_unlink(f"{folder}/{name}")
        for name, seen in now.items():
            if name not in before:
                yield "add", f"{folder}/{name}"
            elif before[name] != seen:
                yield "change", f"{folder}/{name}"

    def _list_children(self, place: PendingDirectory) -> set[str]:
        depth = place.relative.count("/") + 1 if place.relative else 0
        prefix = place.prefix
        return {name for name in self._places if name and name.startswith(prefix) and name.count("/") == depth}

    def _drop_tree(self, relative: str) -> list[Change]:
        """A directory is gone, or hidden now, with all below it."""
        prefix = f"{relative}/" if relative else ""
        below = [name for name in self._places if name == relative or name.startswith(prefix)]
        return [change for name in below for change in self._drop_directory(name)]

    def _drop_directory(self, relative: str) -> list[Change]:
        self._places.pop(relative, None)
        folder = self._walk.get_path(relative)
        names = self._files.pop(relative, {})
        return [change for name in names for change in _report_unlink(f"{folder}/{name}")]


def _report_unlink(path: str) -> Iterator[Change]:
    """An unlink, if the file is really gone: one that a rule hides from now on is no news."""
    if not os.path.lexists(path):
        yield "unlink", path
