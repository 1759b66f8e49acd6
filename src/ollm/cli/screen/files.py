"""Files and directories that complete `@`: listed in the background, queried from a thread."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ollm.services.file_discovery.fuzzy import PathFinder
    from ollm.services.file_discovery.service import FileDiscoveryService

FRESH_SECONDS = 1.0  # how long a list counts
RELOAD_LOAD_FACTOR = 10  # a list that takes long to make is made less often
MAX_RESULTS = 12
MAX_DIRECTORIES = 4  # of the results
TYPING_PAUSE_SECONDS = 0.025  # seconds in which the letter itself is drawn, before anything is looked for
SWITCH_INTERVAL_SECONDS = 0.0005  # seconds a search may hold up the one who types


def list_directories(paths: Sequence[str]) -> list[str]:
    """List the directories that contain these files, each with a trailing slash, shortest first."""
    found: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return sorted((f"{directory}/" for directory in found), key=lambda name: (len(name), name))


def find_directories(typed: str, directories: Sequence[str]) -> list[str]:
    """Find a few directories whose path or name starts with the typed text, ignoring case."""
    wanted = typed.removeprefix("./").lower()
    if not wanted:
        return []
    inside = f"/{wanted}"
    fits = (name for name in directories if name.lower().startswith(wanted) or inside in f"/{name.lower()}")
    return [name for name in islice(fits, MAX_DIRECTORIES + 1) if name.lower() != wanted][:MAX_DIRECTORIES]


class WorkspaceFiles:
    """Files of the workspace. Typing is never blocked: an old list is used while a new one loads."""

    def __init__(self, discovery: Callable[[], FileDiscoveryService], root: Path) -> None:
        self._discovery = discovery
        self._root = root
        self._finder: PathFinder | None = None
        self._known: Sequence[str] = ()
        self._directories: list[str] = []
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
        if self._finder is None:
            return []
        directories = find_directories(typed, self._directories)
        return [*directories, *self._finder.find_best(typed, MAX_RESULTS - len(directories))]

    def _load(self) -> None:
        """Reload the list, unless another thread is doing so."""
        from ollm.domain.errors import OllmError
        from ollm.domain.files import DiscoveryOptions
        from ollm.services.file_discovery.fuzzy import PathFinder

        if not self._lock.acquire(blocking=self._finder is None):
            return
        start = time.monotonic()
        try:
            paths = asyncio.run(self._discovery().find_paths(DiscoveryOptions(root=str(self._root)))).paths
            if self._finder is None or self._known != paths:
                self._finder, self._known = PathFinder(paths), paths
                self._directories = list_directories(paths)
        except OllmError:
            return
        finally:
            now = time.monotonic()
            self._fresh_until = now + max(FRESH_SECONDS, RELOAD_LOAD_FACTOR * (now - start))
            self._lock.release()
