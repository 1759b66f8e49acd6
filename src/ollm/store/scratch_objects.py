"""The saved files of a workspace, looked at without writing there: for what is only said, also on a full disk."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ollm.domain.errors import BusyError
from ollm.store.file_objects import FileObjects


class ScratchObjects(FileObjects):
    """Trees that are put are kept in memory, contents are only named. Whoever only looks needs the lock no longer than
    others leave it free."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._trees: dict[bytes, bytes] = {}

    @contextmanager
    def put_together(self) -> Iterator[None]:
        yield

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Take the lock if there is one: reading makes no files."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError, BusyError):
                stack.callback(os.close, self.open_lock(os.O_RDWR))
            yield

    def put(self, content: bytes) -> bytes:
        return hashlib.sha256(content).digest()

    def put_tree(self, content: bytes) -> bytes:
        digest = self.put(content)
        self._trees[digest] = content
        return digest

    def has(self, digest: bytes) -> bool:
        return digest in self._trees or super().has(digest)

    def read(self, digest: bytes) -> bytes:
        found = self._trees.get(digest)
        return super().read(digest) if found is None else found
