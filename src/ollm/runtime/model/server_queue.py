"""Requests of several programs to one model server, one after the other.

Each request is a file that its program keeps locked. The system frees the lock of a program that died.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path

from ollm.providers.base import AnyPiece, ProgressPiece

in_background: ContextVar[bool] = ContextVar("in_background", default=False)
POLL_SECONDS = 0.2
RUNNING, INTERACTIVE, BACKGROUND = "0", "1", "2"  # File names start with one of these, so they sort in this order.


class ServerQueue:
    """The queue of the server at `base_url`, which runs `places` requests at a time."""

    def __init__(self, folder: Path, base_url: str, places: int) -> None:
        self._folder = folder / f"server-{sha256(base_url.encode()).hexdigest()[:16]}"
        self.places = places

    async def relay(self, pieces: AsyncGenerator[AnyPiece, None]) -> AsyncGenerator[AnyPiece, None]:
        """Yield the pieces of a request when it is its turn, and before that how many requests are ahead."""
        place = WaitingPlace(self._folder, BACKGROUND if in_background.get() else INTERACTIVE)
        shown = 0
        try:
            while ahead := place.count_ahead(self.places):
                if ahead != shown:
                    yield ProgressPiece(total=ahead, stage="queued")
                shown = ahead
                await asyncio.sleep(POLL_SECONDS)
            if shown:
                yield ProgressPiece()
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
        finally:
            place.leave()


class WaitingPlace:
    """The file of one request. If the folder cannot be written, the request does not wait."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._name = f"{kind}-{time.time_ns():020d}-{os.getpid()}"
        self._descriptor: int | None = None

    def count_ahead(self, places: int) -> int:
        """Count the requests ahead. If a place is free and none waits in front, take it and return 0."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            guard = _lock_file(self._folder / "guard")
        except OSError:
            return 0
        if guard is None:
            return 1  # Another program holds the guard now.
        try:
            if self._descriptor is None:
                self._descriptor = _lock_file(self._folder / self._name)
            return self._take_place(places)
        except OSError:
            return 0
        finally:
            os.close(guard)

    def _take_place(self, places: int) -> int:
        found = sorted(path.name for path in self._folder.iterdir())
        names = [name for name in found if name != "guard" and self._is_alive(name)]
        running = sum(name.startswith(RUNNING) for name in names)
        if names.index(self._name) > running or running >= places:
            return max(1, names.index(self._name) - places + 1)
        started = RUNNING + self._name[1:]
        (self._folder / self._name).rename(self._folder / started)
        self._name = started
        return 0

    def _is_alive(self, name: str) -> bool:
        """Return True if a program holds the file. Otherwise delete it."""
        if name == self._name:
            return True
        descriptor = _lock_file(self._folder / name)
        if descriptor is None:
            return True
        (self._folder / name).unlink(missing_ok=True)
        os.close(descriptor)
        return False

    def leave(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                (self._folder / self._name).unlink(missing_ok=True)
            os.close(self._descriptor)


def _lock_file(path: Path) -> int | None:
    """Open and lock a file. Return None if another program holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
