"""File versions the model has seen, so that it does not overwrite others' changes, and copies to undo its edits.

An undo copy is written before the file is changed: one file per edit under `~/.ollm/undo/{session id}/`, with a line
of JSON and then the original bytes. Undoing saves a copy for `/redo`, which lasts until the next edit.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from ollm.domain.errors import BusyError, StorageError
from ollm.domain.struct import Data
from ollm.system.atomic import make_private_directory, replace_file
from ollm.system.paths import join_path, show_name

MAX_UNDO_COPIES = 200
CopyKind = Literal["undo", "redo"]


class UndoCopy(Data, frozen=True):
    """The header of an undo copy: the path, whether the file existed, and the digest after the edit."""

    path: str
    existed: bool
    after: str


class LastEdit(Data, frozen=True):
    """The edit that `/undo` would revert or `/redo` repeat. `before` is None for a new file; `after` is a digest."""

    copy: Path
    path: Path
    before: bytes | None
    after: str

    def changes_file(self, now: bytes | None) -> bool:
        """Return False if the file already has its old content: the edit never happened or was reverted by hand. Raises
        BusyError if others have changed the file since."""
        if now == self.before:
            return False
        if now is not None and compute_digest(now) != self.after:
            done = f"{self.copy.suffix[1:-1]}one"  # The word is "undone" or "redone".
            raise BusyError(f"{self.path} has changed since the edit; not {done}.", action="Change it by hand.")
        return True


def compute_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class EditLedger:
    """The edit history of one session. Paths are resolved. `folder` returns the directory of undo copies, or None for
    calls outside a session."""

    def __init__(self, folder: Callable[[], Path | None] = lambda: None) -> None:
        self._folder = folder
        self._seen: dict[Path, str | tuple[int, ...]] = {}  # A digest, or the state of a partly read file.

    def remember_file(self, path: Path, status: os.stat_result, content: bytes | None = None) -> None:
        """Remember a file that the model read or wrote. `content` is given if it saw all of it."""
        self._seen[path] = _identify_state(status) if content is None else compute_digest(content)

    def is_stale(self, path: Path, status: os.stat_result, content: bytes) -> bool:
        """Return True if the file differs from the version the model last saw, False if it never saw the file."""
        seen = self._seen.get(path)
        if isinstance(seen, str):
            return seen != compute_digest(content)
        return seen is not None and seen != _identify_state(status)

    def save_undo_copy(self, path: Path, before: bytes | None, after: bytes) -> Path | None:
        """Save a file's content (`before`; None if new) before it becomes `after`. Returns the path of the copy."""
        self.forget_undone()
        return self.save_copy("undo", path, before, after)

    def forget_undone(self) -> None:
        if folder := self._folder():
            for copy in self._list_copies(folder, "redo"):
                copy.unlink(missing_ok=True)

    def save_copy(self, kind: CopyKind, path: Path, before: bytes | None, after: bytes) -> Path | None:
        folder = self._folder()
        if folder is None:
            return None
        make_private_directory(folder)
        names = self._list_copies(folder, kind)
        number = int(names[-1].stem) + 1 if names else 1
        copy = folder / f"{number:08d}.{kind}"
        _write_copy(copy, path, before, after)
        for old in names[: max(len(names) + 1 - MAX_UNDO_COPIES, 0)]:
            old.unlink(missing_ok=True)
        return copy

    def find_last_edit(self, kind: CopyKind = "undo") -> LastEdit | None:
        folder = self._folder()
        names = self._list_copies(folder, kind) if folder is not None else []
        if not names:
            return None
        line, _, before = names[-1].read_bytes().partition(b"\n")
        try:
            head = msgspec.json.decode(line, type=UndoCopy)
        except msgspec.MsgspecError as error:
            raise StorageError(f"The undo copy {names[-1]} is damaged.", action="Delete it to continue.") from error
        path = Path(join_path(head.path, Path()))
        return LastEdit(copy=names[-1], path=path, before=before if head.existed else None, after=head.after)

    def accept_change(self, path: Path, content: bytes) -> None:
        """Take over what a check made of an edited file, for later edits and for undo."""
        self.remember_file(path, path.stat(), content)
        edit = self.find_last_edit()
        if edit and edit.path == path:
            _write_copy(edit.copy, path, edit.before, content)

    def save_opposite(self, edit: LastEdit, now: bytes | None) -> None:
        """Save the content that an undo or redo is about to replace."""
        self.save_copy("redo" if edit.copy.suffix == ".undo" else "undo", edit.path, now, edit.before or b"")

    def _list_copies(self, folder: Path, kind: CopyKind) -> list[Path]:
        return sorted(folder.glob(f"*.{kind}")) if folder.is_dir() else []


def _write_copy(copy: Path, path: Path, before: bytes | None, after: bytes) -> None:
    head = UndoCopy(path=show_name(str(path)), existed=before is not None, after=compute_digest(after))
    replace_file(copy, msgspec.json.encode(head) + b"\n" + (before or b""))


def _identify_state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
