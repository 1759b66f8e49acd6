"""Restoring files. Each step is atomic, checks the present state first, and can be repeated after a kill.

Symbolic links in paths are never followed: if a directory has become a link, its files are left alone.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from ollm.domain.errors import StorageError
from ollm.domain.struct import Data
from ollm.services.file_checkpoints.records import CheckpointRecord, EditorChange
from ollm.services.file_checkpoints.tree import (
    PathChange,
    RestorePlan,
    SkippedPath,
    TreeEntry,
    is_same_state,
    keep_mode,
    must_go,
)
from ollm.store.file_objects import FileObjects
from ollm.system.atomic import replace_file, sync, sync_directory, write_all
from ollm.system.beneath import READ_FLAGS, LinkFound, open_parent_directory

MAX_SYNCED_FILES = 500
CHANGED_MEANWHILE = "changed while it was restored"
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class RestoreSteps:
    """The steps of one restore below `root`. A repeated restore has the same `name`, by which half-written files are
    found."""

    def __init__(self, root: Path, objects: FileObjects, steps: Iterable[PathChange], name: str) -> None:
        self._root = root
        self._objects = objects
        self._steps = tuple(steps)
        self._temporary = f".ollm-{name}.tmp"
        self._written = 0
        self._done: dict[str, PathChange] = {}
        self._skipped: dict[str, SkippedPath] = {}

    def run(self) -> RestoreResult:
        """Perform all possible steps."""
        removed: set[str] = set()
        self._remove_leftovers()
        self._open_directories()
        for step in self._steps:
            going = must_go(step) and step.path not in removed
            if going:
                removed.add(step.path)
            try:
                self._do_step(step, going=going)
            except (OSError, StorageError, LinkFound) as error:
                self._skipped.setdefault(step.path, SkippedPath(path=step.path, why=_describe_error(error)))
        self._set_directory_modes()
        if self._written > MAX_SYNCED_FILES:
            os.sync()
        done = tuple(step for path, step in self._done.items() if path not in self._skipped)
        return RestoreResult(restored=done, skipped=tuple(self._skipped.values()))

    def _remove_leftovers(self) -> None:
        """Remove half-written files of the same restore after a kill."""
        one_each = {step.path.rpartition("/")[0]: step.path for step in self._steps}
        for folder in (self._root / path for path in one_each.values()):
            with suppress(OSError, LinkFound), open_parent_directory(self._root, folder) as parent:
                os.unlink(self._temporary, dir_fd=parent)

    def _do_step(self, step: PathChange, *, going: bool) -> None:
        now = observe_path(self._root, step.path)
        if is_same_state(now, step.after):
            self._done[step.path] = step
        elif not self._matches(now, step):
            self._skipped.setdefault(step.path, SkippedPath(path=step.path, why=CHANGED_MEANWHILE))
        elif going:
            if now is not None:  # The interrupted restore may have removed it already.
                self._remove(step)
        elif step.after is not None:
            self._create(step, step.after)

    def _matches(self, now: TreeEntry | None, step: PathChange) -> bool:
        """Return True if the present entry is the one the restore was planned for. The restore itself may have changed
        a directory's mode, or removed an entry before replacing it."""
        before = step.before
        if now is None:
            return before is None or must_go(step)
        return before is not None and (is_same_state(now, before) or now.kind == before.kind == "d")

    def _remove(self, step: PathChange) -> None:
        assert step.before is not None
        with self._open_parent(step.path) as (parent, name):
            if step.before.kind == "d":
                try:
                    os.rmdir(name, dir_fd=parent)
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or step.after is not None:
                        raise
            else:
                os.unlink(name, dir_fd=parent)
        if step.after is None:
            self._done[step.path] = step

    def _create(self, step: PathChange, entry: TreeEntry) -> None:
        content = self._objects.read(entry.value) if entry.kind == "f" else b""
        with self._open_parent(step.path, create=True) as (parent, name):
            if entry.kind == "d":
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700 | entry.mode, dir_fd=parent)
            else:
                self._put_in_place(parent, name, entry, content)
        self._done[step.path] = step

    def _put_in_place(self, parent: int, name: str, entry: TreeEntry, content: bytes) -> None:
        try:
            if entry.kind == "l":
                os.symlink(os.fsdecode(entry.value), self._temporary, dir_fd=parent)
            else:
                self._write(parent, content, entry.mode)
            os.rename(self._temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(self._temporary, dir_fd=parent)
            raise

    def _write(self, parent: int, content: bytes, mode: int) -> None:
        descriptor = os.open(self._temporary, _CREATE_FLAGS, 0o600, dir_fd=parent)
        try:
            write_all(descriptor, content)
            os.fchmod(descriptor, keep_mode(mode))
            self._written += 1
            if self._written <= MAX_SYNCED_FILES:
                sync(descriptor)
        finally:
            os.close(descriptor)

    def _open_directories(self) -> None:
        """Make directories accessible while their files are changed."""
        for step in self._steps:
            if step.before and step.before.kind == "d" and (step.before.mode & 0o700) != 0o700:
                with suppress(OSError, LinkFound):
                    self._set_mode(step.path, step.before.mode | 0o700)

    def _set_directory_modes(self) -> None:
        for step in reversed(self._steps):
            if step.after and step.after.kind == "d" and step.path not in self._skipped:
                with suppress(OSError, LinkFound):
                    self._set_mode(step.path, step.after.mode)

    def _set_mode(self, path: str, mode: int) -> None:
        with self._open_parent(path) as (parent, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                os.chmod(name, mode, dir_fd=parent)

    @contextmanager
    def _open_parent(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        full = self._root / path
        with open_parent_directory(self._root, full, create=create) as parent:
            yield parent, full.name


def observe_path(root: Path, path: str) -> TreeEntry | None:
    """Read the present entry of a path, or None if it or a parent directory is missing. Raises LinkFound."""
    full = root / path
    try:
        with open_parent_directory(root, full) as parent:
            return _read_entry(parent, full.name)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _read_entry(parent: int, name: str) -> TreeEntry:
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return TreeEntry("l", 0, os.fsencode(os.readlink(name, dir_fd=parent)))
    if stat.S_ISDIR(status.st_mode):
        return TreeEntry("d", mode, b"")
    if not stat.S_ISREG(status.st_mode):
        return TreeEntry("x", mode, b"is not a regular file")
    try:
        descriptor = os.open(name, READ_FLAGS, dir_fd=parent)
    except PermissionError:
        return TreeEntry("x", mode, b"cannot be read")
    with os.fdopen(descriptor, "rb") as file:
        return TreeEntry("f", keep_mode(mode), hashlib.file_digest(file, "sha256").digest())


def _describe_error(error: Exception) -> str:
    if isinstance(error, LinkFound):
        return "a directory above it is a link now"
    if isinstance(error, OSError):
        return f"could not be restored: {error.strerror or error}"
    return str(error)


RestoreScope = Literal["talk", "files", "both"]
RestoreKind = Literal["rewind", "redo"]


class RestoreJournal(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of a restore, enough to finish it. `number` is its record in the session's list."""

    id: str
    root: str
    session_id: str
    number: int
    message_id: int
    scope: RestoreScope
    kind: RestoreKind = "rewind"
    left: int = 0  # Number of paths that the restore leaves alone.
    steps: list[tuple[bytes, TreeEntry | None, TreeEntry | None]]


class RestoreResult(Data, frozen=True):
    """Outcome for each path."""

    restored: tuple[PathChange, ...] = ()
    skipped: tuple[SkippedPath, ...] = ()

    @property
    def files(self) -> list[PathChange]:
        """The changes to report, without directories: they come and go with their files."""
        return [step for step in self.restored if not step.is_directory_only]


class InterruptedRestore(Data, frozen=True):
    """An interrupted restore, with its result or its remaining steps."""

    journal: RestoreJournal
    result: RestoreResult


def write_journal(objects: FileObjects, journal: RestoreJournal) -> None:
    """Write the journal. From now on, a killed restore is finished later."""
    contents = [entry.value for _, *both in journal.steps for entry in both if entry and entry.kind == "f"]
    if len(contents) > MAX_SYNCED_FILES:
        os.sync()
    else:
        for digest in contents:
            objects.sync_object(digest)
    replace_file(objects.journal, msgspec.msgpack.encode(journal))


def peek_journal(objects: FileObjects) -> RestoreJournal | None:
    """Return the unfinished restore, or None. An unreadable one never started."""
    try:
        return msgspec.msgpack.decode(objects.journal.read_bytes(), type=RestoreJournal)
    except (OSError, msgspec.MsgspecError):
        return None


def remove_journal(objects: FileObjects) -> None:
    objects.journal.unlink(missing_ok=True)
    sync_directory(objects.folder)


def list_changes(journal: RestoreJournal) -> list[PathChange]:
    return [PathChange(os.fsdecode(path), before, after) for path, before, after in journal.steps]


def is_done(root: Path, step: PathChange) -> bool:
    try:
        return is_same_state(observe_path(root, step.path), step.after)
    except (OSError, LinkFound):
        return False


def run_journal(objects: FileObjects, journal: RestoreJournal, root: Path) -> RestoreResult:
    """Run the steps of a journal, for the first time or again."""
    return RestoreSteps(root, objects, list_changes(journal), journal.id).run()


CHANGED_IN_EDITOR = "changed in the editor since"
UNSAVED = "has changes in the editor that are not saved"
NOT_SHOWN = "was changed in the editor, which does not give it now"
NOT_WRITABLE = "the editor does not let it be changed"
FILE_MODE = 0o644

WriteInEditor = Callable[[Sequence[PathChange]], RestoreResult]


def join_changes(records: Iterable[CheckpointRecord]) -> dict[str, EditorChange]:
    """Join records: each file's text in the editor before the first change and after the last."""
    found: dict[str, EditorChange] = {}
    for change in (change for record in records for change in record.in_editor):
        first = found.get(change.path, change)
        found[change.path] = EditorChange(path=change.path, before=first.before, after=change.after)
    return found


def list_unsaved(record: CheckpointRecord, root: Path, saved: set[str]) -> list[PathChange]:
    """List changes in the editor outside the `saved` paths."""
    shown = [change for change in join_changes([record]).values() if change.path not in saved]
    return [make_step(one.path, root / one.path, one.before, one.after) for one in shown]


def make_step(path: str, place: Path, before: str, after: str) -> PathChange:
    """Make a step that replaces a file's content and keeps its mode."""
    mode = keep_mode(place.stat().st_mode) if place.is_file() else FILE_MODE
    return PathChange(path, TreeEntry("f", mode, bytes.fromhex(before)), TreeEntry("f", mode, bytes.fromhex(after)))


def make_editor_change(step: PathChange) -> EditorChange:
    assert step.before is not None
    assert step.after is not None
    return EditorChange(path=step.path, before=step.before.value.hex(), after=step.after.value.hex())


def drop_paths(plan: RestorePlan, paths: Iterable[str]) -> RestorePlan:
    gone = set(paths)
    return replace(
        plan,
        steps=tuple(step for step in plan.steps if step.path not in gone),
        skipped=tuple(one for one in plan.skipped if one.path not in gone),
    )


def join_results(*results: RestoreResult) -> RestoreResult:
    return RestoreResult(
        restored=tuple(step for one in results for step in one.restored),
        skipped=tuple(path for one in results for path in one.skipped),
    )
