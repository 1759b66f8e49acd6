"""The first start of a server, which installs it: watched while it downloads, and removed before the next try if it
failed."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from ollm.domain.errors import BusyError
from ollm.system.beneath import make_readable
from ollm.system.folders import measure_bytes
from ollm.system.locks import OwnerLock

INSTALLED = ".installed"  # A server that has answered once has this file in its folder.


class FirstStart:
    """The folder of a server for what it downloads. Until the server has answered, nothing in it is its data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = OwnerLock(folder.with_name(f"{folder.name}.lock"))
        self.runs = False

    def begin(self) -> None:
        """Remove what a failed first start left, unless another process is installing the server now."""
        self.runs = not (self._folder / INSTALLED).exists()
        if not self.runs:
            return
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(BusyError, FileNotFoundError):
            self._lock.acquire("The server's folder")
            make_readable(self._folder)
            shutil.rmtree(self._folder)

    def measure(self) -> int:
        """Return the bytes that were downloaded so far."""
        return measure_bytes(self._folder)

    def finish(self) -> None:
        if self.runs:
            (self._folder / INSTALLED).touch()
        self._lock.release()

    def end(self) -> None:
        self._lock.release()
