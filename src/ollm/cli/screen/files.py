"""Files and directories that complete `@`: listed in the background, queried from a thread."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ollm.domain.errors import OllmError
from ollm.domain.files import DiscoveryOptions

if TYPE_CHECKING:
    from ollm.services.file_discovery.fuzzy import NameFinder
    from ollm.services.file_discovery.service import FileDiscoveryService

FRESH_SECONDS = 1.0  # how long a list counts
RELOAD_LOAD_FACTOR = 10  # a list that takes long to make is made less often
TYPING_PAUSE_SECONDS = 0.025  # seconds in which the letter itself is drawn, before anything is looked for
SWITCH_INTERVAL_SECONDS = 0.0005  # seconds a search may hold up the one who types


class WorkspaceFiles:
    """Files of the workspace. Typing is never blocked: an old list is used while a new one loads."""

    def __init__(self, discovery: Callable[[], FileDiscoveryService], root: Path) -> None:
        self._discovery = discovery
        self._root = root
        self._finder: NameFinder | None = None
        self._fresh_until = 0.0
        self._asked = ""
        self._lock = threading.Lock()
        sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)

    def find(self, typed: str) -> list[str]:
        """Find the best matches. The first call waits for the list. Returns [] if more was typed meanwhile."""
        self._asked = typed
        time.sleep(TYPING_PAUSE_SECONDS)
        if self._asked != typed:
            return []
        if self._finder is None:
            self._load()
        elif time.monotonic() > self._fresh_until:
            threading.Thread(target=self._load, daemon=True).start()
        return self._finder.find_best(typed) if self._finder else []

    def _load(self) -> None:
        from ollm.services.file_discovery.fuzzy import NameFinder

        if not self._lock.acquire(blocking=self._finder is None):
            return
        start = time.monotonic()
        try:
            paths = asyncio.run(self._discovery().find_paths(DiscoveryOptions(root=str(self._root)))).paths
            if self._finder is None or self._finder.paths != paths:
                self._finder = NameFinder(paths)
        except OllmError:
            return
        finally:
            now = time.monotonic()
            self._fresh_until = now + max(FRESH_SECONDS, RELOAD_LOAD_FACTOR * (now - start))
            self._lock.release()
