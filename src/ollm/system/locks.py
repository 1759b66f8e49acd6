"""Lock files that record their owner. `flock` releases a dead owner's lock: no heartbeat, no expiry."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import Any

from ollm.domain.clock import format_age, format_stamp, now
from ollm.domain.errors import BusyError
from ollm.system.atomic import read_json


class OwnerLock:
    """An exclusive lock on a file, which contains pid, process start time, host and lock time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def acquire(self, what: str) -> None:
        """Take the lock immediately, or raise `BusyError` with the owner of `what` and its lock time."""
        import fcntl

        if self.held:
            return
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                raise BusyError(
                    f"{what} is in use by {describe_owner(read_owner(self.path))}.",
                    action="Close it there, or wait.",
                ) from error
            if os.fstat(descriptor).st_nlink:  # The file may have been removed before it was locked.
                break
            os.close(descriptor)
        self._descriptor = descriptor
        self.name_owner()

    def name_owner(self, **more: str) -> None:
        """Write this process, and what else is to be known of it, to the file."""
        if self._descriptor is not None:
            import msgspec  # A list of sessions takes no lock, and starts faster without it.

            with contextlib.suppress(OSError):  # On a full disk the lock holds without a name.
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, msgspec.json.encode(_describe_self() | more), 0)

    def release(self) -> None:
        """Release the lock, deleting the file while still holding it."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):  # Closing the descriptor releases the lock in any case.
                self.path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    def renew(self) -> None:
        """Recreate the file if another program removed it. Raises `BusyError` if another owner was faster."""
        before = self._descriptor
        if before is None or os.fstat(before).st_nlink:
            return
        self._descriptor = None
        try:
            self.acquire(self.path.stem)
        except BaseException:
            self._descriptor = before
            raise
        os.close(before)


def read_owner(path: Path) -> dict[str, Any] | None:
    """Return the owner recorded in the file, or None if the lock is free or its owner dead. Changes nothing."""
    found = read_json(path, dict[str, Any], None)
    return found if found is not None and _is_alive(found) else None


def describe_owner(found: dict[str, Any] | None) -> str:
    if not found:
        return "another process"
    return f"process {found.get('pid')} on {found.get('host')} started {format_age(str(found.get('since')))}"


def get_process_start(pid: int) -> str:
    """Return the start time of a process, in the system's format: distinguishes processes with the same pid."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib would cost an import at start-up
            fields = file.read().rpartition(b")")[2].split()
            return "" if fields[0] in (b"Z", b"X") else fields[19].decode()  # A zombie holds no locks.
    except (OSError, IndexError):
        return ""


def _describe_self() -> dict[str, Any]:
    pid = os.getpid()
    return {"pid": pid, "start": get_process_start(pid), "host": socket.gethostname(), "since": format_stamp(now())}


def _is_alive(found: dict[str, Any]) -> bool:
    pid = found.get("pid")
    if found.get("host") != socket.gethostname() or not isinstance(pid, int) or pid <= 0:
        return True
    return is_same_process(pid, found.get("start", ""))


def is_same_process(pid: int, start: str) -> bool:
    """Return True if the process that had this start time is still running."""
    return is_process_alive(pid) and start in ("", get_process_start(pid))


def is_process_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
