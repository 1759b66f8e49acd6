"""One active session per workspace, by an operating system lock on `lease.lock` that is held while the session is open.

There is no heartbeat: the lock of a dead owner is free. The file names the owner, for people to read. Another process
requests the lease with a word in `asked.lock` beside it and a SIGUSR1: `close`, or `idle` to close only if the session
is not in use.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from pathlib import Path

from ollm.domain.clock import format_age
from ollm.domain.errors import BusyError, StorageError, WorkspaceBusyError
from ollm.domain.struct import Data
from ollm.system import locks
from ollm.system.atomic import read_json

DAEMON = "daemon"


class LeaseOwner(Data, frozen=True):
    """Process that holds a workspace, and since when."""

    pid: int
    host: str
    since: str
    start: str = ""
    session_id: str = ""
    holder: str = ""

    @property
    def is_daemon(self) -> bool:
        return self.holder == DAEMON

    def describe(self) -> str:
        who = "the ollm daemon" if self.is_daemon else "another ollm"
        host = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"{who} (process {self.pid}{host}, started {format_age(self.since)})"


class Lease:
    """The right to be the active session of one workspace."""

    def __init__(self, directory: Path, holder: str = "") -> None:
        self.path = directory / "lease.lock"
        self.request = directory / "asked.lock"
        self._holder = holder
        self._lock = locks.OwnerLock(self.path)

    @property
    def held(self) -> bool:
        return self._lock.held

    def acquire(self, session_id: str = "") -> None:
        """Acquire the lease, or raise BusyError naming its owner. Acquiring it again changes the session it names."""
        self._acquire_lock(self._lock)
        self.request.unlink(missing_ok=True)
        self._lock.name_owner(sessionId=session_id, holder=self._holder)

    def release(self) -> None:
        self._lock.release()

    def read_owner(self) -> LeaseOwner | None:
        """Read the owner from the file, or return None if it names none."""
        return read_json(self.path, LeaseOwner, None)

    def find_other_owner(self) -> LeaseOwner | None:
        """Return the owner of a lease that is not ours and cannot be acquired, or None if it is free."""
        lock = locks.OwnerLock(self.path)
        try:
            self._acquire_lock(lock)
        except BusyError:
            return self.read_owner() or LeaseOwner(pid=0, host=socket.gethostname(), since="")
        lock.release()
        return None

    def ask_owner_to_close(self, *, only_when_idle: bool = False) -> bool:
        """Ask the owning process to close. Returns False if it cannot be reached from this machine, or never
        gives way: a program that uses the library."""
        owner = self.read_owner()
        if owner is None or owner.host != socket.gethostname() or not locks.is_same_process(owner.pid, owner.start):
            return False
        if not _handles_request(owner.pid):
            return False
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.request, flags, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write("idle" if only_when_idle else "close")
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(owner.pid, signal.SIGUSR1)
            return True
        return False

    def withdraw_request(self) -> None:
        self.request.unlink(missing_ok=True)

    @property
    def is_requested(self) -> bool:
        """Return True if our request is still pending: neither withdrawn nor refused."""
        return self.request.exists()

    def is_asked_to_close(self, *, idle: bool = False) -> bool:
        """Return True if another process requests the lease. An `idle` request is only for an idle owner; any other
        owner refuses it at once by removing it."""
        if not self.held:
            return False
        with contextlib.suppress(OSError):  # There may be no request, or it was withdrawn.
            word = self.request.read_text(encoding="utf-8")
            if not idle and word == "idle":
                self.withdraw_request()
                return False
            return True
        return False

    def _acquire_lock(self, lock: locks.OwnerLock) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock.acquire("This workspace")
        except OSError as error:
            raise StorageError(f"Cannot open {self.path}: {error.strerror}.") from error
        except BusyError:
            owner = self.read_owner()
            raise WorkspaceBusyError(
                f"This workspace is in use by {owner.describe() if owner else 'another process'}.",
                action="Close it there, or pass beside=True to open beside it, or force=True to take over.",
            ) from None


def _handles_request(pid: int) -> bool:
    """Return False for a program that SIGUSR1 would end, as far as this system shows it."""
    with contextlib.suppress(OSError, LookupError, ValueError):
        status = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text("latin-1").splitlines())
        return bool(int(status["SigCgt"], 16) >> signal.SIGUSR1 - 1 & 1)
    return True
