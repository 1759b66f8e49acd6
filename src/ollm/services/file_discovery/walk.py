"""The walk: directory by directory, pruned by the rules, one search of them for all names of a directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ollm.domain.files import DiscoveryOptions, EntryType
from ollm.services.file_discovery.expressions import matching
from ollm.services.file_discovery.globs import compile_globs
from ollm.services.file_discovery.layers import Layers, RuleReader, Signature, signature

_BY_NAME = attrgetter("name")
Listed = os.DirEntry[str]


class Place(NamedTuple):
    """A directory to be read, with the rules in force above it. `linked`: a symbolic link led here or above."""

    relative: str
    depth: int
    layers: Layers
    linked: bool = False

    @property
    def prefix(self) -> str:
        return f"{self.relative}/" if self.relative else ""


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
        self._offset = reader.offset + b"/" if reader.offset else b""
        self._exclude = compile_globs(options.exclude_patterns)
        self._seen_by_link: set[tuple[int, int]] = set()
        self.unreadable: list[str] = []
        self.too_deep: list[str] = []
        self.directories: dict[str, Signature] = {}

    @property
    def start(self) -> Place:
        return Place("", 0, self._layers)

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
        base = self._offset + os.fsencode(place.prefix)
        layers = self.reader.below(place.layers, path, base[:-1], [entry.name for entry in listed])
        files, folders = self._kept(listed, layers, base)
        folders = self._without_excluded(place, folders)
        return Listing(place, self._without_excluded(place, files), folders, self._below(place, layers, folders))

    def from_top(self, relative: bytes) -> bytes:
        """A path from the root as the rules see it: from the top of the repository."""
        return (self._offset + relative).rstrip(b"/")

    def path(self, relative: str) -> str:
        return f"{self._options.root}/{relative}" if relative else self._options.root

    def _kept(self, listed: list[Listed], layers: Layers, base: bytes) -> tuple[list[Listed], list[Listed]]:
        """The files and directories among the names that no rule hides. `.git` is never one; special files neither."""
        spoken_of = layers.matcher.spoken_of(base, [entry.name for entry in listed])
        hidden = self._options.hidden
        files: list[Listed] = []
        folders: list[Listed] = []
        for entry in listed:
            name = entry.name
            if name[0] == "." and (name == ".git" or not hidden):
                continue
            kept = files if entry.is_file(follow_symlinks=False) else self._other(entry, files, folders)
            if kept is None:
                continue
            if name in spoken_of and layers.matcher.hides(base + os.fsencode(name), directory=kept is folders):
                continue
            kept.append(entry)
        return files, folders

    def _other(self, entry: Listed, files: list[Listed], folders: list[Listed]) -> list[Listed] | None:
        if entry.is_dir(follow_symlinks=False):
            return folders
        kind = self._behind_link(entry)
        return None if kind is None else files if kind == "file" else folders

    def _behind_link(self, entry: Listed) -> EntryType | None:
        """What a link leads to, if links are followed and it stays below the root."""
        if not self._options.follow_symlinks or not entry.is_symlink():
            return None
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
        excluded = matching(self._exclude, os.fsencode(place.prefix), [entry.name for entry in entries])
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
                below.append(Place(place.prefix + entry.name, place.depth + 1, layers, linked))
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
