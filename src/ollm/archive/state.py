"""This machine's record of sent sessions, and of deletions not yet made in the archive."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import msgspec

from ollm.domain.clock import Clock, now, to_epoch_ms
from ollm.store.database import ARCHIVE_STATE_MIGRATIONS, Database

FORGOTTEN = "forgotten"


class SentState(NamedTuple):
    """State of a session when it was last sent: the stamp of its files (FORGOTTEN if it was deleted from the archive
    but kept here), the target, and the last sequence number."""

    stamp: str
    target: str
    seq: int
    owner: str  # The name of the other user it was pulled from.


class ArchiveState:
    """A SQLite file in the home, used by one thread and shared by processes."""

    def __init__(self, path: Path, clock: Clock = now) -> None:
        self._database = Database(path, ARCHIVE_STATE_MIGRATIONS, report=lambda _text: None)
        self._clock = clock

    def close(self) -> None:
        self._database.close()

    def get_machine_id(self) -> str:
        with self._database.begin_write() as connection:
            query = "INSERT INTO facts VALUES ('machine', ?) ON CONFLICT DO NOTHING"
            connection.execute(query, (str(uuid4()),))
            return str(connection.execute("SELECT value FROM facts WHERE name = 'machine'").fetchone()[0])

    def get_fact(self, name: str) -> str:
        found = self._database.fetch("SELECT value FROM facts WHERE name = ?", name)
        return str(found[0]["value"]) if found else ""

    def set_fact(self, name: str, value: str) -> None:
        self._database.write("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, value)

    def get_sent(self, session_id: str) -> SentState | None:
        query = "SELECT stamp, target, seq, owner FROM sent WHERE session_id = ?"
        return next((SentState(*row) for row in self._database.fetch(query, session_id)), None)

    def set_sent(self, session_id: str, sent: SentState) -> None:
        self._database.write("INSERT OR REPLACE INTO sent VALUES (?, ?, ?, ?, ?)", session_id, *sent)

    def list_sent(self) -> dict[str, SentState]:
        rows = self._database.fetch("SELECT session_id, stamp, target, seq, owner FROM sent")
        return {row[0]: SentState(*row[1:]) for row in rows}

    def add_tombstone(self, session_id: str) -> None:
        """Record that the session was deleted here and must be deleted from the archive, unless this was a copy of
        another person's session."""
        query = (
            "INSERT OR REPLACE INTO tombstones SELECT ?, ?"
            " WHERE NOT EXISTS (SELECT 1 FROM sent WHERE session_id = ? AND owner <> '')"
        )
        self._database.write(query, session_id, to_epoch_ms(self._clock()), session_id)

    def list_tombstones(self) -> list[str]:
        return [row[0] for row in self._database.fetch("SELECT session_id FROM tombstones ORDER BY at")]

    def confirm_deletion(self, session_id: str) -> None:
        with self._database.begin_write() as connection:
            for table in ("tombstones", "sent"):
                connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))  # noqa: S608

    def remove_tombstone(self, session_id: str) -> None:
        self._database.write("DELETE FROM tombstones WHERE session_id = ?", session_id)

    def save_listed(self, rows: Iterable[object]) -> None:
        """Save the archive's list for when the server is unreachable."""
        self.set_fact("listed", msgspec.json.encode(list(rows)).decode())
        self.set_fact("listed-at", str(to_epoch_ms(self._clock())))


class ArchiveTombstones:
    """Record of deletions in a home that has sent something. The shipper, or the next push, sends them."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def add_deletion(self, session_id: str) -> None:
        self._change(lambda state: state.add_tombstone(session_id))

    def withdraw_deletion(self, session_id: str) -> None:
        self._change(lambda state: state.remove_tombstone(session_id))

    def _change(self, change: Callable[[ArchiveState], None]) -> None:
        if self._path.exists():
            with contextlib.closing(ArchiveState(self._path, self._clock)) as state:
                change(state)
