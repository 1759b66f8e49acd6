"""Versions of files the model has seen, so that it does not overwrite others' changes, and copies to undo its edits.

An undo copy is written before the file is: one file per edit under `~/.ollm/undo/{session id}/`, a line of JSON and
then the bytes as they were.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from ollm.domain.errors import BusyError, StorageError
from ollm.domain.struct import Data
from ollm.system.atomic import make_private_directory, replace_file
from ollm.system.paths import Boundary

MAX_UNDO_COPIES = 200


class FileState(Data, frozen=True):
    """A file as it was last seen. `digest` is None when only a part of it was read."""

    device: int
    inode: int
    size: int
    changed: int
    digest: str | None = None


class UndoCopy(Data, frozen=True):
    """The head of an undo copy: which file, whether it was there, and what the edit made of it."""

    path: str
    existed: bool
    after: str


class LastEdit(Data, frozen=True):
    """The edit `/undo` would revert. `before` is None for a new file; `after` is a digest."""

    copy: Path
    path: Path
    before: bytes | None
    after: str

    def changes_file(self, now: bytes | None) -> bool:
        """False when the file already is as it was: the edit had not happened, or was taken back by hand. Raises
        BusyError when others changed it since."""
        if now == self.before:
            return False
        if now is not None and compute_digest(now) != self.after:
            raise BusyError(f"{self.path} has changed since the edit; not undone.", action="Undo it by hand.")
        return True


class UndoResult(Data, frozen=True):
    """Outcome of `/undo`: the file was restored, or removed because it was new."""

    path: Path
    removed: bool


def compute_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def get_no_folder() -> Path | None:
    """Nothing to undo with: calls outside a session."""
    return None


class EditLedger:
    """One per session. Paths are resolved ones; `folder` says where undo copies go, once there is a session."""

    def __init__(self, folder: Callable[[], Path | None] = get_no_folder) -> None:
        self._folder = folder
        self._seen: dict[Path, FileState] = {}

    def remember_file(self, path: Path, status: os.stat_result, content: bytes | None = None) -> None:
        """The model was shown this file (`content`: all of it), or wrote it."""
        self._seen[path] = make_file_state(status, content)

    def is_stale(self, path: Path, status: os.stat_result, content: bytes) -> bool:
        """Return True if the file differs from what the model last saw; False if it never saw it."""
        seen = self._seen.get(path)
        if seen is None:
            return False
        if seen.digest is not None:
            return seen.digest != compute_digest(content)
        return seen != make_file_state(status, None)

    def save_undo_copy(self, path: Path, before: bytes | None, after: bytes) -> Path | None:
        """Remember how a file was (`before` None: not there) before it becomes `after`. Says where the copy is."""
        folder = self._folder()
        if folder is None:
            return None
        make_private_directory(folder)
        names = self._list_copies(folder)
        number = int(names[-1].stem) + 1 if names else 1
        head = UndoCopy(path=str(path), existed=before is not None, after=compute_digest(after))
        copy = folder / f"{number:08d}.undo"
        replace_file(copy, msgspec.json.encode(head) + b"\n" + (before or b""))
        for old in names[: max(len(names) + 1 - MAX_UNDO_COPIES, 0)]:
            old.unlink(missing_ok=True)
        return copy

    def find_last_edit(self) -> LastEdit | None:
        """The edit that `undo` would take back."""
        folder = self._folder()
        names = self._list_copies(folder) if folder is not None else []
        if not names:
            return None
        head, before = _read_copy(names[-1])
        return LastEdit(copy=names[-1], path=Path(head.path), before=before if head.existed else None, after=head.after)

    def undo(self, boundary: Boundary) -> UndoResult | None:
        """Revert the last edit on disk, byte for byte; None if there is none left.

        Raises BusyError when the file was changed by others since, and leaves it alone.
        """
        while edit := self.find_last_edit():
            done = _restore_file(edit, boundary.approve_paths([edit.path]))
            edit.copy.unlink()
            if done:
                return UndoResult(path=edit.path, removed=edit.before is None)
        return None

    def _list_copies(self, folder: Path) -> list[Path]:
        return sorted(folder.glob("*.undo")) if folder.is_dir() else []


def make_file_state(status: os.stat_result, content: bytes | None) -> FileState:
    digest = None if content is None else compute_digest(content)
    return FileState(
        device=status.st_dev, inode=status.st_ino, size=status.st_size, changed=status.st_mtime_ns, digest=digest
    )


def _read_copy(copy: Path) -> tuple[UndoCopy, bytes]:
    line, _, before = copy.read_bytes().partition(b"\n")
    try:
        return msgspec.json.decode(line, type=UndoCopy), before
    except msgspec.MsgspecError as error:
        raise StorageError(f"The undo copy {copy} is damaged.", action="Delete it to continue.") from error


def _restore_file(edit: LastEdit, boundary: Boundary) -> bool:
    """False when the file already is as it was."""
    given = str(edit.path)
    if not edit.changes_file(_read_content(boundary, given)):
        return False
    if edit.before is None:
        boundary.remove_file(given)
    else:
        boundary.write_file(given, edit.before)
    return True


def _read_content(boundary: Boundary, given: str) -> bytes | None:
    if not Path(given).exists():
        return None
    with boundary.open_file(given) as file:
        return file.read()
