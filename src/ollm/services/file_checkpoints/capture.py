"""Capturing the state of a workspace's files. Unchanged files are not read again."""

from __future__ import annotations

import gc
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import NamedTuple

import msgspec

from ollm.config.settings import CheckpointSettings
from ollm.domain.errors import StorageError, UsageError
from ollm.domain.files import DirectoryContent, TreeTooLarge
from ollm.domain.struct import Data
from ollm.services.file_checkpoints.records import collect_garbage, drop_to_size
from ollm.services.file_checkpoints.tree import (
    IGNORED,
    CheckpointPlace,
    Entries,
    EntryKind,
    TreeEntry,
    encode_tree,
    find_reason_off,
    keep_mode,
)
from ollm.store.file_objects import FileObjects
from ollm.system.atomic import replace_file
from ollm.system.beneath import READ_FLAGS
from ollm.system.folders import is_settled

INDEX_VERSION = 1
INDEX_SHARE = 100  # The index is rewritten when it lacks one in this many files.

ScanTree = Callable[[str, int], Sequence[DirectoryContent]]
FileStamp = tuple[int, int, int, int, int]
"""Modified, changed, size, inode, mode: as long as all five are the same, so is the content."""


class CapturedTree(Data, frozen=True):
    """A captured tree. `ignored` and `uncovered` count names that cannot be restored."""

    digest: bytes
    files: int
    read: int
    ignored: int
    uncovered: int


class KnownFile(NamedTuple):
    stamp: FileStamp
    entry: TreeEntry


class KnownDirectory(NamedTuple):
    """A directory that contains only known files. While names and stamps are unchanged, so are its entries."""

    names: list[str]
    stamps: list[FileStamp]
    entries: Entries
    files: dict[str, KnownFile]


KnownFiles = dict[str, dict[str, KnownFile]]  # The keys are the directory and then the name.
_get_stamp = attrgetter("st_mtime_ns", "st_ctime_ns", "st_size", "st_ino", "st_mode")


class SavedIndex(msgspec.Struct, array_like=True):
    """The file index, saved between processes."""

    version: int
    generation: int
    files: dict[bytes, tuple[int, int, int, int, int, bytes]]


class TooManyBytes(Exception):  # noqa: N818 - not a fault: the settings name the limit
    """The files of this workspace exceed the limit for all checkpoints."""


class CheckpointsOffError(UsageError):
    """Checkpoints are off here; the message gives the reason."""


class TreeTaker:
    """Captures the files of a place as trees. `off` is the reason checkpoints are off, or "". `scan` lists the
    files."""

    def __init__(
        self, place: CheckpointPlace, settings: CheckpointSettings, scan: ScanTree, objects: FileObjects
    ) -> None:
        self.off = find_reason_off(place, settings)
        self._place = place
        self._root = f"{place.root}/"
        self._settings = settings
        self._scan = scan
        self._objects = objects
        self._unsaved_reads = 0
        self._files: KnownFiles | None = None
        self._trees: dict[str, tuple[Entries, bytes]] = {}
        self._directories: dict[str, KnownDirectory] = {}
        self._generation = 0
        self._began = 0
        self._read = 0

    def take(self, needed: bytes | None = None) -> CapturedTree:
        """Capture the current tree with all contents, or nothing. Objects of the tree `needed` are not deleted to make
        room. The caller holds the lock."""
        tree = self._look()
        self._unsaved_reads += tree.read
        limit = self._settings.max_total
        if self._objects.save_growth().bytes > limit:
            used = [tree.digest, *([needed] if needed else [])]
            if drop_to_size(self._objects, limit, used).bytes > limit and needed is None:
                raise self._turn_off_for_size()
        return tree

    def view_tree(self, objects: FileObjects) -> CapturedTree:
        viewer = TreeTaker(self._place, self._settings, self._scan, objects)
        try:
            return viewer._look()
        finally:
            self.off = self.off or viewer.off

    def _look(self) -> CapturedTree:
        try:
            with self._objects.put_together(), pause_collection():
                return self._take()
        except BaseException as error:
            self._files, self._trees, self._directories = None, {}, {}  # The discarded objects must not count as saved.
            if isinstance(error, TreeTooLarge):
                self.off = f"Checkpoints are off: this workspace has {error} (checkpoints.maxFiles)."
                raise CheckpointsOffError(self.off) from error
            if isinstance(error, TooManyBytes):
                raise self._turn_off_for_size() from error
            raise

    def _turn_off_for_size(self) -> CheckpointsOffError:
        collect_garbage(self._objects)
        self.off = "Checkpoints are off: the files here take more than checkpoints.maxTotal."
        return CheckpointsOffError(self.off)

    def _take(self) -> CapturedTree:
        self._check_generation()
        directories = self._scan(str(self._place.root), self._settings.max_files)
        self._began, self._read = time.time_ns(), 0
        known, self._files = self._files or {}, {}
        digests: dict[str, bytes] = {}
        counts: Counter[EntryKind] = Counter()
        for directory in reversed(directories):
            if not self._is_excluded(directory.path):
                entries = self._read_directory(directory, known, digests)
                counts.update(entry.kind for entry in entries.values())
                digests[directory.path] = self._put_tree(directory.path, entries)
        if "" not in digests:
            raise StorageError(f"{self._root} cannot be read.")
        self._trees = {path: self._trees[path] for path in digests}
        self._directories = {path: found for path, found in self._directories.items() if path in digests}
        return CapturedTree(
            digest=digests[""],
            files=counts["f"] + counts["l"],
            read=self._read,
            ignored=counts["i"],
            uncovered=counts["x"],
        )

    def save_index(self, count: int) -> None:
        """Save the index for the next process, if a notable share of `count` files is not in it yet."""
        if self._files is None or (self._unsaved_reads <= count // INDEX_SHARE and self._objects.index.exists()):
            return
        files = {
            os.fsencode(f"{folder}/{name}"): (*known.stamp, known.entry.value)
            for folder, names in self._files.items()
            for name, known in names.items()
        }
        saved = SavedIndex(version=INDEX_VERSION, generation=self._generation, files=files)
        replace_file(self._objects.index, msgspec.msgpack.encode(saved), durable=False)
        self._unsaved_reads = 0

    def _check_generation(self) -> None:
        """Drop index entries whose objects were deleted since."""
        generation = self._objects.load_state().generation
        if self._files is None:
            self._files = self._load_index(generation)
        elif generation != self._generation:
            self._trees, self._directories = {}, {}
            self._files = {
                folder: {name: known for name, known in names.items() if self._objects.has(known.entry.value)}
                for folder, names in self._files.items()
            }
        self._generation = generation

    def _load_index(self, generation: int) -> KnownFiles:
        try:
            saved = msgspec.msgpack.decode(self._objects.index.read_bytes(), type=SavedIndex)
        except (OSError, msgspec.MsgspecError):
            return {}
        if saved.version != INDEX_VERSION:
            return {}
        checked = saved.generation != generation
        found: KnownFiles = {}
        for path, (modified, changed, size, inode, mode, digest) in saved.files.items():
            if not checked or self._objects.has(digest):
                folder, _, name = os.fsdecode(path).rpartition("/")
                entry = TreeEntry("f", keep_mode(mode), digest)
                found.setdefault(folder, {})[name] = KnownFile((modified, changed, size, inode, mode), entry)
        return found

    def _is_excluded(self, path: str) -> bool:
        return bool(path) and any(path == own or path.startswith(f"{own}/") for own in self._place.excluded)

    def _put_tree(self, path: str, entries: Entries) -> bytes:
        known = self._trees.get(path)
        if known is not None and (known[0] is entries or known[0] == entries):
            return known[1]
        digest = self._objects.put_tree(encode_tree(entries))
        self._trees[path] = entries, digest
        return digest

    def _read_directory(self, directory: DirectoryContent, known: KnownFiles, digests: dict[str, bytes]) -> Entries:
        assert self._files is not None
        prefix, hidden = directory.prefix, directory.hidden
        if (found := self._find_unchanged(directory, prefix)) is not None:
            self._files[directory.path] = found.files
            files = found.entries
        else:
            files = self._read_files(directory, prefix, known.get(directory.path, {}))
        if not hidden and not directory.folders:
            return files
        entries: Entries = {**dict.fromkeys(hidden, IGNORED), **files}
        for name in directory.folders:
            if entry := self._read_folder(prefix + name, digests):
                entries[name] = entry
        return entries

    def _find_unchanged(self, directory: DirectoryContent, prefix: str) -> KnownDirectory | None:
        """Return the known directory if all its files are unchanged."""
        found = self._directories.get(directory.path)
        if found is None or directory.others or found.names != directory.files:
            return None
        try:
            stamps = list(map(_get_stamp, map(os.lstat, map((self._root + prefix).__add__, found.names))))
        except OSError:
            return None  # One of the files is gone.
        return found if stamps == found.stamps else None

    def _read_files(self, directory: DirectoryContent, prefix: str, before: dict[str, KnownFile]) -> Entries:
        """Read every file and link of a directory. Unchanged files are taken from the index."""
        assert self._files is not None
        entries: Entries = {}
        after = self._files.setdefault(directory.path, {})
        full, lstat = self._root + prefix, os.lstat
        for name in (*directory.files, *directory.others) if directory.others else directory.files:
            try:
                status = lstat(full + name)
            except OSError:
                continue  # The file is gone.
            found = before.get(name)
            if found is not None and found[0] == _get_stamp(status):
                after[name] = found
                entries[name] = found[1]
            elif entry := self._read_name(prefix + name, status, after):
                entries[name] = entry
        self._directories.pop(directory.path, None)
        if len(after) == len(entries) == len(directory.files) and not directory.others:
            stamps = [after[name].stamp for name in directory.files]
            self._directories[directory.path] = KnownDirectory(directory.files, stamps, entries, after)
        return entries

    def _read_folder(self, path: str, digests: dict[str, bytes]) -> TreeEntry | None:
        if self._is_excluded(path):
            return IGNORED
        try:
            mode = stat.S_IMODE(os.lstat(self._root + path).st_mode)
        except OSError:
            return None
        digest = digests.get(path)
        return TreeEntry("d", mode, digest) if digest is not None else TreeEntry("x", mode, b"cannot be read")

    def _read_name(self, path: str, status: os.stat_result, known: dict[str, KnownFile]) -> TreeEntry | None:
        """Read a new or changed file or link. Returns None if it has disappeared."""
        try:
            return self._read_anew(path, status, known)
        except FileNotFoundError:
            return None
        except OSError:
            return TreeEntry("x", stat.S_IMODE(status.st_mode), b"cannot be read")

    def _read_anew(self, path: str, status: os.stat_result, known: dict[str, KnownFile]) -> TreeEntry:
        if stat.S_ISLNK(status.st_mode):
            return TreeEntry("l", 0, os.fsencode(os.readlink(self._root + path)))  # noqa: PTH115
        mode = stat.S_IMODE(status.st_mode)
        if not stat.S_ISREG(status.st_mode):
            return TreeEntry("x", mode, b"is not a regular file")
        if status.st_size > self._settings.max_file_bytes:
            return _make_large_entry(mode, status)
        descriptor = os.open(self._root + path, READ_FLAGS)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return TreeEntry("x", mode, b"is not a regular file")
            content = os.read(descriptor, min(status.st_size, self._settings.max_file_bytes) + 1)
        finally:
            os.close(descriptor)
        if len(content) > self._settings.max_file_bytes:
            return _make_large_entry(mode, status)
        entry = TreeEntry("f", keep_mode(status.st_mode), self._objects.put(content))
        self._read += 1
        if self._objects.added_bytes > self._settings.max_total:
            raise TooManyBytes
        if is_settled((status.st_ctime_ns, status.st_mtime_ns, 0, 0), self._began):
            known[path.rpartition("/")[2]] = KnownFile(_get_stamp(status), entry)
        return entry


@contextmanager
def pause_collection() -> Iterator[None]:
    """Pause garbage collection. A scan makes many live objects without cycles; collection took 25 % of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _make_large_entry(mode: int, status: os.stat_result) -> TreeEntry:
    """Compare large files by size and mtime."""
    return TreeEntry("x", mode, f"is too large ({status.st_size:,} bytes)\0{status.st_mtime_ns}".encode())
