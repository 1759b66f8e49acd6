"""The files and directories `@` completes: listed behind the input, kept warm by a watch, asked from a thread."""

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
    from ollm.domain.files import ChangeKind
    from ollm.services.file_discovery import FileDiscoveryService
    from ollm.services.file_discovery.fuzzy import PathFinder

FRESH_SECONDS = 10.0  # how long a list counts where nothing says that it changed
RELOAD_DELAY_SECONDS = 0.2  # changes within this time are listed together
RELOAD_LOAD_FACTOR = 10  # a list that takes long to make is made less often
MAX_RESULTS = 12
MAX_DIRECTORIES = 4  # of the results
WATCH_PAUSE_SECONDS = 1.5  # after the last question: beginning to watch a large tree would hold up the letters
TYPING_PAUSE_SECONDS = 0.025  # seconds in which the letter itself is drawn, before anything is looked for
SWITCH_INTERVAL_SECONDS = 0.0005  # seconds a search may hold up the one who types


def list_directories(paths: Sequence[str]) -> list[str]:
    """The directories that hold these files, each with a slash at its end, the shortest first."""
    found: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return sorted((f"{directory}/" for directory in found), key=lambda name: (len(name), name))


def find_directories(typed: str, directories: Sequence[str]) -> list[str]:
    """A few directories whose path or own name begins with what was typed; case makes no difference."""
    wanted = typed.removeprefix("./").lower()
    if not wanted:
        return []
    inside = f"/{wanted}"
    fits = (name for name in directories if name.lower().startswith(wanted) or inside in f"/{name.lower()}")
    return [name for name in islice(fits, MAX_DIRECTORIES + 1) if name.lower() != wanted][:MAX_DIRECTORIES]


class WorkspaceFiles:
    """Never blocks whoever types: an old list answers while a new one is made. Once the first questions are over the
    tree is watched, and a change makes the list anew before anybody asks again."""

    def __init__(self, discovery: Callable[[], FileDiscoveryService], root: Path) -> None:
        self._discovery = discovery
        self._root = root
        self._finder: PathFinder | None = None
        self._known: Sequence[str] = ()
        self._directories: list[str] = []
        self._made_at = 0.0
        self._load_seconds = 0.0
        self._watched: bool | None = None  # None: not tried yet
        self._reload: threading.Timer | None = None
        self._asked = ""
        self._asked_at = 0.0
        self._lock = threading.Lock()
        sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)

    def find(self, typed: str) -> list[str]:
        """The likeliest files; the first time it waits for the list. Nothing when more was typed meanwhile."""
        self._asked, self._asked_at = typed, time.monotonic()
        time.sleep(TYPING_PAUSE_SECONDS)
        if self._asked != typed:
            return []
        if self._finder is None:
            self._load()
        elif not self._watched and time.monotonic() - self._made_at > FRESH_SECONDS:
            threading.Thread(target=self._load, daemon=True).start()
        if self._finder is None:
            return []
        directories = find_directories(typed, self._directories)
        return [*directories, *self._finder.find_best(typed, MAX_RESULTS - len(directories))]

    def _load(self, *, wait: bool = False, anew: bool = False) -> None:
        from ollm.domain.errors import OllmError
        from ollm.domain.files import DiscoveryOptions
        from ollm.services.file_discovery.fuzzy import PathFinder

        if not self._lock.acquire(blocking=wait or self._finder is None):
            return
        start = time.monotonic()
        try:
            if anew or self._finder is None or start - self._made_at > RELOAD_DELAY_SECONDS / 2:
                found = asyncio.run(self._discovery().find_paths(DiscoveryOptions(root=str(self._root))))
                if self._finder is None or self._known != found.paths:
                    finder = PathFinder(found.paths)
                    self._finder, self._known = finder, found.paths
                    self._directories = list_directories(found.paths)
                self._made_at, self._load_seconds = start, time.monotonic() - start
        except OllmError:
            self._made_at = time.monotonic()
        finally:
            self._lock.release()
        if self._watched is None:
            self._watched, self._asked_at = False, time.monotonic()
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """Hear of changes from here on; where the system cannot report them the list grows old by time alone."""
        from ollm.domain.errors import OllmError

        while (left := self._asked_at + WATCH_PAUSE_SECONDS - time.monotonic()) > 0:
            time.sleep(left)
        try:
            watch = self._discovery().watch_changes(str(self._root), self._schedule_reload)
            if self._discovery().get_watch_state(str(self._root)) == "polling":
                watch.dispose()
                return
        except (OllmError, OSError):
            return
        self._watched = True
        self._load(wait=True, anew=True)  # what changed before the watch began

    def _schedule_reload(self, kind: ChangeKind, path: str) -> None:
        """A file came, changed or went. Changed ones are in the list already."""
        if kind == "change" or self._reload:
            return
        delay = max(RELOAD_DELAY_SECONDS, RELOAD_LOAD_FACTOR * self._load_seconds)
        self._reload = threading.Timer(delay, self._run_reload)
        self._reload.daemon = True
        self._reload.start()

    def _run_reload(self) -> None:
        self._reload = None
        self._load(wait=True)
