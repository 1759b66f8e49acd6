"""Deletions that the team archive is to follow: kept as tombstones until it confirms them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.domain.clock import Clock

if TYPE_CHECKING:
    from ollm.store.team_archive.state import ArchiveState


class ArchiveTombstones:
    """Remembers what is deleted in a home that has sent something. The shipper, or the next push, does the rest."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def add_deletion(self, session_id: str) -> None:
        if self._path.exists():
            with contextlib.closing(self._open_state()) as state:
                state.add_tombstone(session_id)

    def withdraw_deletion(self, session_id: str) -> None:
        if self._path.exists():
            with contextlib.closing(self._open_state()) as state:
                state.remove_tombstone(session_id)

    def _open_state(self) -> ArchiveState:
        from ollm.store.team_archive.state import ArchiveState

        return ArchiveState(self._path, self._clock)
