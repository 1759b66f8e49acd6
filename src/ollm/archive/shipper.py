"""The shipper: one process per home that sends new records, renews leases of open sessions, and tracks other machines.

It retries with growing pauses while the server is unreachable, and exits when no session is open and everything is
sent.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ollm.archive import reading
from ollm.archive.connection import ArchiveAwayError, translate_faults
from ollm.archive.process import LOCK_NAME, TROUBLE_NAME, WAKE_NAME
from ollm.archive.pulling import write_pulled
from ollm.archive.reading import HEARTBEAT_SECONDS, release_lease, take_lease
from ollm.archive.sending import CHANNEL, ArchivedSession
from ollm.archive.state import FORGOTTEN
from ollm.domain.errors import BusyError, OllmError
from ollm.system.atomic import make_private_directory, replace_file
from ollm.system.locks import OwnerLock, is_process_alive

if TYPE_CHECKING:
    from contextlib import ExitStack

    from psycopg import Connection

    from ollm.archive.team_archive import TeamArchive

log = logging.getLogger("ollm.archive")
LOOK_SECONDS = 1.0
LINGER_SECONDS = 5.0  # The shipper stays this long without work.
GIVE_UP_SECONDS = 600.0  # The next turn starts another shipper.
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 60.0


class ArchiveShipper:
    """Shipper of one home. `keeper` is the pid of a daemon for which it keeps running."""

    def __init__(self, archive: TeamArchive, *, keeper: int | None = None, linger: float = LINGER_SECONDS) -> None:
        self.archive = archive
        self._keeper = keeper
        self._linger = linger
        self._run = archive.host.home.run
        self._leases: dict[str, float] = {}
        self._reported: set[str] = set()
        self._busy_at = time.monotonic()
        self._woken_at = 0.0

    def run(self) -> None:
        """Ship until nothing is left to do. Raises BusyError if another process of this home ships."""
        make_private_directory(self._run)
        lock = OwnerLock(self._run / LOCK_NAME)
        lock.acquire("The archive's shipper")
        try:
            while not self._run_connected():
                log.info("the archive's server went away", extra={"operation": "ship"})
        finally:
            lock.release()

    def _run_connected(self) -> bool:
        with contextlib.ExitStack() as stack:
            connection = self._connect(stack)
            if connection is None:
                return True
            try:
                with translate_faults():
                    self._serve(connection)
            except ArchiveAwayError as error:
                self._note_error(error)
                return False
        return True

    def _connect(self, stack: ExitStack) -> Connection | None:
        """Connect, retrying with growing pauses. Returns None once the connection is no longer needed."""
        import stamina

        begun = time.monotonic()

        def is_worth_another(error: Exception) -> bool:
            if not isinstance(error, ArchiveAwayError):
                return False
            self._note_error(error)
            return time.monotonic() - begun < GIVE_UP_SECONDS or self._is_needed()

        try:
            for attempt in stamina.retry_context(
                on=is_worth_another,
                attempts=None,
                timeout=None,
                wait_initial=FIRST_PAUSE_SECONDS,
                wait_max=MAX_PAUSE_SECONDS,
            ):
                with attempt:
                    return stack.enter_context(self.archive.connect())
        except OllmError as error:
            self._note_error(error)
        return None

    def _serve(self, connection: Connection) -> None:
        connection.execute(f"LISTEN {CHANNEL}".encode())
        self._refresh(connection)
        self.archive.state.set_fact("last-error", "")
        while True:
            shipped = self._ship(connection)
            self._keep_leases(connection)
            if self._is_done() and not shipped:  # New messages may have arrived during a long push.
                break
            if any(connection.notifies(timeout=LOOK_SECONDS, stop_after=1)):
                self._refresh(connection)
        for session_id in list(self._leases):
            release_lease(connection, session_id, self.archive.machine)

    def _ship(self, connection: Connection) -> bool:
        """Send new records and return True if there were any. Open sessions are sent only with `live`."""
        unsent = self.archive.list_unsent()
        if self.archive.settings.push != "live":
            unsent = {name: stamp for name, stamp in unsent.items() if not self._is_open(name)}
        wanted = [name for name in unsent if f"{name} {unsent[name].text}" not in self._reported]
        if not wanted and not self.archive.state.list_tombstones():
            return False
        self._busy_at = time.monotonic()
        report = self.archive.push(connection, wanted)
        for name, why in report.skipped.items():
            self._reported.add(f"{name} {unsent[name].text}")
            log.warning("%s", why, extra={"operation": "ship"})
            self._tell(why)
        return True

    def _keep_leases(self, connection: Connection) -> None:
        """Renew the lease of every open archived session; release those of closed ones."""
        sent = self.archive.state.list_sent()
        own = [name for name, known in sent.items() if not known.owner and known.stamp != FORGOTTEN]
        opened = set(filter(self._is_open, own))
        for session_id in opened:
            if time.monotonic() - self._leases.get(session_id, -HEARTBEAT_SECONDS) >= HEARTBEAT_SECONDS:
                try:
                    with translate_faults():
                        take_lease(connection, session_id, self.archive.machine)
                    self._leases[session_id] = time.monotonic()
                except BusyError as error:
                    self._tell(str(error))
                except ArchiveAwayError:
                    raise
                except OllmError as error:  # The session may be gone from the archive.
                    log.warning("%s", error, extra={"operation": "lease"})
        for session_id in self._leases.keys() - opened:
            release_lease(connection, session_id, self.archive.machine)
            del self._leases[session_id]

    def _refresh(self, connection: Connection) -> None:
        """Save the list of all sessions, and update copies that were pulled here."""
        rows = reading.list_sessions(connection, tasks=True)
        self.archive.state.save_listed(rows)
        for row in rows:
            self._follow(connection, row)

    def _follow(self, connection: Connection, row: ArchivedSession) -> None:
        known, stamp = self.archive.state.get_sent(row.session_id), self.archive.read_stamp(row.session_id)
        if known is None or not stamp or known.stamp != stamp or known.seq >= row.last_seq:
            return
        try:
            with reading.open_records(connection, row.session_id) as records:
                write_pulled(self.archive.host.session_files, row.session_id, records)
        except BusyError:
            return  # The session is open here.
        now = self.archive.read_stamp(row.session_id)
        self.archive.state.set_sent(row.session_id, known._replace(stamp=now, seq=row.last_seq))

    def _is_open(self, session_id: str) -> bool:
        return self.archive.host.session_files.is_open(session_id)

    def _is_needed(self) -> bool:
        if self._keeper and is_process_alive(self._keeper):
            return True
        return any(self._is_open(path.stem) for path in self.archive.host.sessions_directory.glob("*.lock"))

    def _is_done(self) -> bool:
        path = self._run / WAKE_NAME
        woken = path.stat().st_mtime if path.exists() else 0.0
        if woken != self._woken_at:
            self._woken_at, self._busy_at = woken, time.monotonic()
            text = path.read_text(encoding="ascii", errors="replace").strip()
            self._keeper = int(text) if text.isdigit() else self._keeper
        return time.monotonic() - self._busy_at > self._linger and not self._is_needed()

    def _tell(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            replace_file(self._run / TROUBLE_NAME, text.encode(), durable=False)

    def _note_error(self, error: OllmError) -> None:
        log.warning("%s", error, extra={"operation": "ship", "action": error.action})
        self.archive.state.set_fact("last-error", str(error))


def run_quietly(shipper: Callable[[], None]) -> None:
    """Run the shipper unless this home already has one."""
    with contextlib.suppress(BusyError):
        os.nice(5)
        shipper()
