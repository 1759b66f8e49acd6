"""Empty files in place of approved ones outside that do not exist yet: only existing ones can be opened."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress


class Placeholders:
    def __init__(self) -> None:
        self._paths: set[str] = set()

    def make(self, paths: Iterable[str]) -> None:
        for path in paths:
            if path not in self._paths and os.path.isdir(os.path.dirname(path)):
                with suppress(OSError):
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
                    self._paths.add(path)

    def remove(self) -> None:
        """Remove those that no command has written to."""
        for path in self._paths:
            with suppress(OSError):
                if os.lstat(path).st_size == 0:
                    os.unlink(path)
        self._paths.clear()
