"""The files `@` completes: listed behind the input, asked from the thread that completes."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ollm.services.file_discovery import FileDiscoveryService
    from ollm.services.file_discovery.fuzzy import PathFinder

FRESH_SECONDS = 10.0
MAX_RESULTS = 12
TYPING_PAUSE_SECONDS = 0.025  # seconds in which the letter itself is drawn, before anything is looked for
SWITCH_INTERVAL_SECONDS = 0.0005  # seconds a search may hold up the one who types


class WorkspaceFiles:
    """Never blocks whoever types: an old list answers while a new one is made."""

    def __init__(self, discovery: Callable[[], FileDiscoveryService], root: Path) -> None:
        self._discovery = discovery
        self._root = root
        self._finder: PathFinder | None = None
        self._known: Sequence[str] = ()
        self._made = 0.0
        self._asked = ""
        self._lock = threading.Lock()
        sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)

    def find(self, typed: str) -> list[str]:
        """The likeliest files; the first time it waits for the list. Nothing when more was typed meanwhile."""
        self._asked = typed
        time.sleep(TYPING_PAUSE_SECONDS)
        if self._asked != typed:
            return []
        if self._finder is None:
            self._load()
        elif time.monotonic() - self._made > FRESH_SECONDS:
            threading.Thread(target=self._load, daemon=True).start()
        return self._finder.find_best(typed, MAX_RESULTS) if self._finder else []

    def _load(self) -> None:
        from ollm.domain.errors import OllmError
        from ollm.domain.files import DiscoveryOptions
        from ollm.services.file_discovery.fuzzy import PathFinder

        if not self._lock.acquire(blocking=self._finder is None):
            return
        try:
            if self._finder is None or time.monotonic() - self._made > FRESH_SECONDS:
                found = asyncio.run(self._discovery().find_paths(DiscoveryOptions(root=str(self._root))))
                if self._finder is None or self._known != found.paths:
                    finder = PathFinder(found.paths)
                    finder.warm_up()
                    self._finder, self._known = finder, found.paths
                self._made = time.monotonic()
        except OllmError:
            self._made = time.monotonic()
        finally:
            self._lock.release()
