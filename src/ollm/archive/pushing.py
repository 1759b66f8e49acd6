"""Send sessions to the archive, two at a time where there are many."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

import msgspec

from ollm.archive.connection import ArchiveAwayError
from ollm.archive.outgoing import OutgoingSession
from ollm.archive.sending import ArchiveRecord, SessionMovedOnError, SessionSender, make_batches
from ollm.domain.errors import OllmError
from ollm.domain.struct import Data

if TYPE_CHECKING:
    from psycopg import Connection

Progress = Callable[[int, int], None]
MIN_SHARED_SESSIONS = 8  # from so many on a second connection is worth its start


class PushReport(Data, frozen=True):
    """Outcome of a push. `skipped` says why a session was not sent."""

    sessions: int = 0
    records: int = 0
    unchanged: int = 0
    deleted: int = 0
    skipped: dict[str, str] = msgspec.field(default_factory=dict)


class PushedArchive(Protocol):
    """Destination of a push."""

    def prepare(self) -> None:
        """Make what every thread uses, before two could do it at once."""

    def open_again(self) -> PushedArchive:
        """The same for another thread, with a state file and connections of its own."""

    def connect(self) -> AbstractContextManager[Connection]: ...

    def push_session(self, connection: Connection, session_id: str) -> int:
        """Send one session; gives how many records that took."""

    def close(self) -> None: ...


class SessionPusher:
    """One push. The server's absence, noticed by either connection, ends it and leaves the rest for the next time."""

    def __init__(self, archive: PushedArchive, names: Sequence[str], progress: Progress | None) -> None:
        self._archive = archive
        self._waiting = deque(dict.fromkeys(names))
        self._total = len(self._waiting)
        self._progress = progress
        self._counts: dict[str, int] = {}
        self._skipped: dict[str, str] = {}
        self._failures: list[BaseException] = []

    def push(self, connection: Connection) -> PushReport:
        self._archive.prepare()
        helper = threading.Thread(target=self._help, daemon=True)
        if self._total >= MIN_SHARED_SESSIONS:
            helper.start()
        try:
            self._push_waiting(self._archive, connection, self._progress)
        finally:
            self._waiting.clear()
        if helper.ident:
            helper.join()
        if self._failures:
            raise self._failures[0]
        if self._progress and self._total:
            self._progress(self._total, self._total)
        sent = [count for count in self._counts.values() if count]
        unchanged = len(self._counts) - len(sent)
        return PushReport(sessions=len(sent), records=sum(sent), unchanged=unchanged, skipped=self._skipped)

    def _help(self) -> None:
        """Send beside the other, over a connection of its own; without one the other sends everything."""
        with contextlib.closing(self._archive.open_again()) as archive, contextlib.ExitStack() as stack:
            try:
                connection = stack.enter_context(archive.connect())
            except OllmError:
                return
            try:
                self._push_waiting(archive, connection, None)
            except BaseException as error:  # noqa: BLE001 - raised where the push is waited for
                self._failures.append(error)

    def _push_waiting(self, archive: PushedArchive, connection: Connection, progress: Progress | None) -> None:
        while not self._failures:
            try:
                name = self._waiting.popleft()
            except IndexError:
                return
            if progress:
                progress(len(self._counts) + len(self._skipped), self._total)
            try:
                self._counts[name] = archive.push_session(connection, name)
            except ArchiveAwayError:
                raise
            except OllmError as error:
                self._skipped[name] = str(error)


OpenOutgoing = Callable[[], AbstractContextManager[OutgoingSession]]


def ship_session(open_outgoing: OpenOutgoing, sender: SessionSender, *, known: bool = True) -> int:
    """Bring the archive up to date with the session; gives how many records were sent. Safe to break off and repeat.
    Where it is not `known` whether this machine sent it before, what it holds decides whether it went on elsewhere."""
    try:
        sender.begin()
    except SessionMovedOnError:
        if known or not _has_all(open_outgoing, sender):
            raise
        sender.adopt()
    with open_outgoing() as outgoing:
        count, told = 0, None
        for batch in make_batches(outgoing.iter_records()):
            by_name = {(record.kind, record.key): record for record in batch}
            count += len(by_name)
            if new := sender.filter_new(list(by_name.values())):
                told = outgoing.describe()
                sender.send(new, told)
        head = outgoing.describe()
    if sender.count_keys() > count and (gone := _find_gone(open_outgoing, sender)):
        sender.send(gone, head)
    elif sender.sent and told != head:
        sender.send([], head)
    return sender.sent


def _has_all(open_outgoing: OpenOutgoing, sender: SessionSender) -> bool:
    with open_outgoing() as outgoing:
        here: dict[tuple[str, str], bytes] = {
            (record.kind, record.key): record.digest for record in outgoing.iter_records()
        }
    return all(here.get((kind, key)) == digest for kind, key, digest in sender.list_digests())


def _find_gone(open_outgoing: OpenOutgoing, sender: SessionSender) -> list[ArchiveRecord]:
    with open_outgoing() as outgoing:
        here = {(record.kind, record.key) for record in outgoing.iter_records()}
    return [
        ArchiveRecord(kind, key, None)
        for kind in ("message", "call", "file")
        for key in sender.list_keys(kind)
        if (kind, key) not in here
    ]
