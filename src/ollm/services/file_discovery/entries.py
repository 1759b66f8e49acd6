"""Listings of a walk as the entries a caller asked for."""

from __future__ import annotations

from datetime import UTC, datetime

from ollm.domain.files import DiscoveryOptions, EntryType, FileEntry
from ollm.services.file_discovery.globs import compile_globs
from ollm.services.file_discovery.walk import Listed, Listing


class EntryMaker:
    """Picks what the include globs want, and adds size and time where they are asked for."""

    def __init__(self, options: DiscoveryOptions) -> None:
        self._options = options
        self._include = compile_globs(options.include_patterns)

    def entries(self, listing: Listing) -> list[FileEntry]:
        prefix, root = listing.place.prefix, self._options.root
        files = self._wanted(prefix, listing.files)
        if not self._options.directories and not self._options.stat:
            return [FileEntry(root, prefix + entry.name) for entry in files]
        made = [self._entry(prefix, entry, "file") for entry in files]
        if self._options.directories:
            made += [self._entry(prefix, entry, "directory") for entry in self._wanted(prefix, listing.folders)]
        return made

    def _wanted(self, prefix: str, entries: list[Listed]) -> list[Listed]:
        if self._include is None:
            return entries
        included = self._include.among(prefix, [entry.name for entry in entries])
        return [entry for entry in entries if entry.name in included]

    def _entry(self, prefix: str, entry: Listed, kind: EntryType) -> FileEntry:
        relative = prefix + entry.name
        if not self._options.stat:
            return FileEntry(root=self._options.root, relative_path=relative, type=kind)
        try:
            status = entry.stat()
        except OSError:
            return FileEntry(root=self._options.root, relative_path=relative, type=kind)
        return FileEntry(
            root=self._options.root,
            relative_path=relative,
            type=kind,
            size=status.st_size,
            modified=datetime.fromtimestamp(status.st_mtime, UTC),
        )
