"""Erases what other parts keep under a session's id, when the session is deleted."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from ollm.domain.errors import StorageError
from ollm.store.session_files.places import parse_id
from ollm.system.atomic import replace_file


class SessionDirectories:
    """Directories with one subdirectory per session: snapshots, undo copies."""

    def __init__(self, parents: Iterable[Path]) -> None:
        self._parents = tuple(parents)

    def erase(self, session_id: str) -> None:
        for parent in self._parents:
            target = parent / parse_id(session_id)
            try:
                if target.is_symlink():
                    target.unlink()
                elif target.exists():
                    shutil.rmtree(target)
            except OSError as error:
                raise StorageError(f"Cannot remove {target}: {error.strerror}.") from error


class InputHistoryFile:
    """The input history: each line is a JSON object that names its session."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def erase(self, session_id: str) -> None:
        try:
            lines = self._path.read_bytes().splitlines(keepends=True)
        except OSError:
            return
        kept = [line for line in lines if session_id.encode() not in line]
        if len(kept) != len(lines):
            replace_file(self._path, b"".join(kept))
