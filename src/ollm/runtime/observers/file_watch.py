"""Keeps the list of the workspace's files warm: once a tool has asked for it, the tree is watched (S6.7)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ollm.domain.errors import OllmError
from ollm.runtime.turn_observer import TurnObserver, TurnReport

if TYPE_CHECKING:
    from pathlib import Path

    from ollm.domain.files import ChangeKind
    from ollm.domain.lazy import Lazy
    from ollm.services.file_discovery import FileDiscoveryService


class FileWatchObserver(TurnObserver):
    """Watches from the end of the first turn that looked for files until the conversation ends. A tree that the system
    cannot watch is not: looking at it again and again costs more than it saves."""

    def __init__(self, discovery: Lazy[FileDiscoveryService], root: Path) -> None:
        self._discovery = discovery
        self._root = str(root)
        self._starting: asyncio.Task[None] | None = None

    async def after_turn(self, report: TurnReport) -> None:
        discovery = self._discovery.built
        if discovery and self._starting is None:
            self._starting = asyncio.create_task(asyncio.to_thread(self._watch, discovery), name="watch files")

    async def session_closed(self, session_id: str) -> None:
        """The watch itself ends with the service."""
        if self._starting:
            await self._starting

    def _watch(self, discovery: FileDiscoveryService) -> None:
        with contextlib.suppress(OllmError, OSError):
            watch = discovery.watch_changes(self._root, ignore_change)
            if discovery.get_watch_state(self._root) == "polling":
                watch.dispose()


def ignore_change(kind: ChangeKind, path: str) -> None:
    """The service itself notes that its list is old."""
