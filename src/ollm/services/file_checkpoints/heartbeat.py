"""Signs of life: until when a process that was killed is known to have run, and whether one still does."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from ollm.system.atomic import FILE_MODE

BEAT_SECONDS = 0.1
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class Heartbeat:
    """Holds a file and touches it again and again. Where it cannot be made nothing is proved."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        with contextlib.suppress(OSError):
            self._descriptor = os.open(path, _FLAGS | os.O_CREAT, FILE_MODE)
            _hold_lock(self._descriptor)
            self._beat()
            threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def stop(self) -> None:
        """One more sign, and then none."""
        self._stopped.set()
        with self._lock:
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.utime(descriptor)
                os.close(descriptor)

    def _run(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            with contextlib.suppress(OSError):
                self._beat()

    def _beat(self) -> None:
        with self._lock:  # a number that was closed may be another file's
            if self._descriptor is not None:
                os.utime(self._descriptor)


def read_last_beat(path: Path) -> int | None:
    """When the last sign was, in nanoseconds; 0 where there never was one, None while somebody still gives them."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return 0
    try:
        _hold_lock(descriptor)
        return os.fstat(descriptor).st_mtime_ns
    except BlockingIOError:
        return None
    finally:
        os.close(descriptor)


def _hold_lock(descriptor: int) -> None:
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
