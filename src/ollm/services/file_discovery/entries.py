"""Listings of a walk as the entries a caller asked for."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import msgspec

from ollm.domain.files import DiscoveryOptions, EntryType, FileEntry
from ollm.services.file_discovery.globs import compile_globs
from ollm.services.file_discovery.walk import DirectoryListing


class EntryMaker:
    """Picks what the include globs want, and adds size and time where they are asked for."""

    def __init__(self, options: DiscoveryOptions) -> None:
        self._options = options
        self._include = compile_globs(options.include_patterns)

    def make_entries(self, listing: DirectoryListing) -> list[FileEntry]:
        prefix, root = listing.place.prefix, self._options.root
        files = self._filter_included(prefix, listing.files)
        if not self._options.directories and not self._options.stat:
            return [FileEntry(root, prefix + name) for name in files]
        made = [self._make_entry(prefix + name, "file") for name in files]
        if self._options.directories:
            made += [
                self._make_entry(prefix + name, "directory") for name in self._filter_included(prefix, listing.folders)
            ]
        return made

    def list_paths(self, listing: DirectoryListing) -> list[str]:
        """The paths of the files alone, which is all that most ask for."""
        prefix = listing.place.prefix
        return [prefix + name for name in self._filter_included(prefix, listing.files)]

    def _filter_included(self, prefix: str, names: list[str]) -> list[str]:
        if self._include is None:
            return names
        included = self._include.find_matches(prefix, names)
        return [name for name in names if name in included]

    def _make_entry(self, relative: str, kind: EntryType) -> FileEntry:
        entry = FileEntry(root=self._options.root, relative_path=relative, type=kind)
        if not self._options.stat:
            return entry
        try:
            status = os.stat(entry.path)  # noqa: PTH116 - called for every file of a tree
        except OSError:
            return entry
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
        return msgspec.structs.replace(entry, size=status.st_size, modified=modified)
