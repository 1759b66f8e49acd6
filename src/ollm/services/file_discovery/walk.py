"""The walk: directory by directory, pruned by the rules, one search of them for all names of a directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ollm.domain.files import DiscoveryOptions, EntryType
from ollm.services.file_discovery.globs import compile_globs
from ollm.services.file_discovery.layers import Layers, RuleReader
from ollm.services.file_discovery.signatures import Signature, signature

_BY_NAME = attrgetter("name")
Listed = os.DirEntry[str]


class Place(NamedTuple):
    """A directory to be read, with the rules in force above it. `linked`: a symbolic link led here or above."""

    relative: str
    prefix: str
    depth: int
    layers: Layers
    linked: bool = False


class Listing(NamedTuple):
    """What a directory holds that no rule hides, by name."""

    place: Place
    files: list[Listed]
    folders: list[Listed]
    below: list[Place]


class Walk:
    """One walk below `options.root`, which is a real, absolute path here, with every option set."""

    def __init__(self, options: DiscoveryOptions, reader: RuleReader, layers: Layers) -> None:
        self._options = options
        self.reader = reader
        self._layers = layers
        self._offset = os.fsdecode(reader.offset) + "/" if reader.offset else ""
        self._exclude = compile_globs(options.exclude_patterns)
        self._seen_by_link: set[tuple[int, int]] = set()
        self.unreadable: list[str] = []
        self.too_deep: list[str] = []
        self.directories: dict[str, Signature] = {}

    @property
    def start(self) -> Place:
        return Place("", "", 0, self._layers)

    def __iter__(self) -> Iterator[Listing]:
        """One directory after the other, each before what is below it."""
        waiting = [self.start]
        while waiting:
            listing = self.visit(waiting.pop())
            if listing is not None:
                waiting.extend(reversed(listing.below))
                yield listing

    def visit(self, place: Place) -> Listing | None:
        """Read one directory; None when it is gone or may not be read."""
        path = self.path(place.relative)
        self.directories[path] = signature(path)
        try:
            with os.scandir(path) as scanned:
                listed = sorted(scanned, key=_BY_NAME)
        except FileNotFoundError:
            return None
        except OSError:
            self.unreadable.append(place.relative or ".")
            return None
        base = self._offset + place.prefix
        names = [entry.name for entry in listed]
        layers = place.layers
        if names and names[0] < "/":  # by name, so that those with a dot come before
            layers = self.reader.below(layers, path, base, names)
            listed = self._without_dots(listed, names)
        files, folders = self._sorted_out(listed)
        if spoken_of := layers.matcher.spoken_of(base, names):
            shown = _Shown(layers, base, spoken_of)
            files = [entry for entry in files if shown.file(entry.name)]
            folders = [entry for entry in folders if shown.folder(entry.name)]
        if self._exclude is not None:
            files, folders = self._without_excluded(place, files), self._without_excluded(place, folders)
        return Listing(place, files, folders, self._below(place, layers, folders) if folders else [])

    def from_top(self, relative: str) -> str:
        """A path from the root as the rules see it: from the top of the repository."""
        return self._offset + relative

    def path(self, relative: str) -> str:
        return f"{self._options.root}/{relative}" if relative else self._options.root

    def _without_dots(self, listed: list[Listed], names: list[str]) -> list[Listed]:
        """`.git` is never shown; other names with a dot are unless they are unwanted."""
        if not self._options.hidden:
            return [entry for entry in listed if entry.name[0] != "."]
        return [entry for entry in listed if entry.name != ".git"] if ".git" in names else listed

    def _sorted_out(self, listed: list[Listed]) -> tuple[list[Listed], list[Listed]]:
        """The regular files and the directories, and what links lead to where they are followed."""
        files = [entry for entry in listed if entry.is_file(follow_symlinks=False)]
        if len(files) == len(listed):
            return files, []
        folders = [entry for entry in listed if entry.is_dir(follow_symlinks=False)]
        if self._options.follow_symlinks and len(files) + len(folders) < len(listed):
            behind = {entry: self._behind_link(entry) for entry in listed if entry.is_symlink()}
            files = sorted([*files, *(link for link, kind in behind.items() if kind == "file")], key=_BY_NAME)
            folders = sorted([*folders, *(link for link, kind in behind.items() if kind == "directory")], key=_BY_NAME)
        return files, folders

    def _behind_link(self, entry: Listed) -> EntryType | None:
        """What a link leads to, if it stays below the root."""
        try:
            target, status = os.path.realpath(entry.path, strict=True), entry.stat()
        except OSError:
            return None
        if not Path(target).is_relative_to(self._options.root):
            return None
        if stat.S_ISREG(status.st_mode):
            return "file"
        return "directory" if stat.S_ISDIR(status.st_mode) else None

    def _without_excluded(self, place: Place, entries: list[Listed]) -> list[Listed]:
        assert self._exclude is not None
        excluded = self._exclude.among(place.prefix, [entry.name for entry in entries])
        return [entry for entry in entries if entry.name not in excluded] if excluded else entries

    def _below(self, place: Place, layers: Layers, folders: list[Listed]) -> list[Place]:
        limit = self._options.max_depth
        if limit is not None and place.depth >= limit:
            self.too_deep.extend(place.prefix + entry.name for entry in folders)
            return []
        below = []
        for entry in folders:
            linked = place.linked or entry.is_symlink()
            if not linked or self._first_time(entry):
                relative = place.prefix + entry.name
                below.append(Place(relative, f"{relative}/", place.depth + 1, layers, linked))
        return below

    def _first_time(self, entry: Listed) -> bool:
        """Whether no link has led to this directory yet: circles end here, and knots of links stay small."""
        try:
            status = entry.stat()
        except OSError:
            return False
        identity = status.st_dev, status.st_ino
        if identity in self._seen_by_link:
            return False
        self._seen_by_link.add(identity)
        return True


class _Shown(NamedTuple):
    """The rules' verdict on names of one directory."""

    layers: Layers
    base: str
    spoken_of: frozenset[str] | set[str]

    def file(self, name: str) -> bool:
        return name not in self.spoken_of or not self._hides(name, directory=False)

    def folder(self, name: str) -> bool:
        return name not in self.spoken_of or not self._hides(name, directory=True)

    def _hides(self, name: str, *, directory: bool) -> bool:
        return self.layers.matcher.hides(os.fsencode(self.base + name), directory=directory)
