"""Watching a root (S6.7-8): only its visible directories.

After an event the tree is read again and compared with its last state. So the order of events does not matter, nor
whether some are merged or lost in a flood. A rename is an unlink and an add. A file that was created and deleted in
between is not reported.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from ollm.domain.files import ChangeKind
from ollm.services.file_discovery.rules import Signature, read_signature
from ollm.services.file_discovery.walk import Walk

Change = tuple[ChangeKind, str]
Callback = Callable[[ChangeKind, str], None]
Words = set[tuple[int, str]]
_MODIFIED = 2
_DEBOUNCE_MILLISECONDS, _STEP_MILLISECONDS, _WAIT_MILLISECONDS = 50, 10, 1000  # milliseconds
_POLL_SECONDS = 1.0
_MAX_ATTEMPTS = 5
_MAX_REST_SECONDS = 1.0

log = logging.getLogger(__name__)


class RootWatch:
    """Calls back for every change of a visible file after `start` returns, in the event loop that created it, if any,
    else in its own thread."""

    def __init__(self, root: str, new_walk: Callable[[], Walk], callback: Callback) -> None:
        self._root, self._new_walk, self._callback = root, new_walk, _bind_to_loop(callback)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"ollm watch {root}", daemon=True)
        self._files: dict[str, Signature] = {}
        self._directories: set[str] = set()
        self._listened: set[str] = set()
        self._notify: Any = None
        self._polling = False

    def start(self) -> None:
        self._refresh()
        self._thread.start()

    def dispose(self) -> None:
        """End the watch and its thread. Doing so twice is harmless."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if not self._wait_for_events():
                    continue
                start = time.monotonic()
                self._call_back(self._refresh())
                self._stop.wait(min(time.monotonic() - start, _MAX_REST_SECONDS))  # a flood takes half a core at most
        finally:
            self._close_notify()

    def _wait_for_events(self) -> bool:
        """Wait for system events. Returns False after a timeout. Directories that were added or removed are watched
        again, since a name may be reused."""
        if self._polling:
            return not self._stop.wait(_POLL_SECONDS)
        try:
            words: Words | str = self._notify.watch(
                _DEBOUNCE_MILLISECONDS, _STEP_MILLISECONDS, _WAIT_MILLISECONDS, self._stop
            )
        except Exception as error:  # noqa: BLE001 - whatever the library met (a name that is not text): look ourselves
            log.debug("Watching %s again: %s", self._root, error)
            self._listened = set()
            return True
        if isinstance(words, str):
            return False
        self._listened -= {path for kind, path in words if kind != _MODIFIED}
        return True

    def _refresh(self) -> list[Change]:
        """Read the tree and watch its directories. A watch that starts later has missed changes, so that the tree is
        read again."""
        changes = self._read_tree()
        for _ in range(_MAX_ATTEMPTS):
            if self._polling or self._directories == self._listened:
                break
            self._start_watching()
            changes += self._read_tree()
        return changes

    def _read_tree(self) -> list[Change]:
        walk, before = self._new_walk(), self._files
        paths = [walk.get_path(listing.place.prefix + name) for listing in walk for name in listing.files]
        self._files = {path: seen for path in paths if (seen := read_signature(path))}
        self._directories = {path for path, seen in walk.directories.items() if seen}
        changes: list[Change] = [
            ("unlink", path) for path in before if path not in self._files and not os.path.lexists(path)
        ]
        for path, seen in self._files.items():
            if path not in before:
                changes.append(("add", path))
            elif before[path] != seen:
                changes.append(("change", path))
        return changes

    def _start_watching(self) -> None:
        from watchfiles._rust_notify import RustNotify

        try:
            notify = RustNotify([*self._directories], False, False, 0, False, True)
        except FileNotFoundError:
            self._listened = set()
            return
        except Exception as error:  # noqa: BLE001 - no more watches or descriptors: look every now and then
            log.warning("Cannot watch %s (%s); polling every %g seconds.", self._root, error, _POLL_SECONDS)
            self._close_notify()
            self._polling = True
            return
        self._close_notify()
        self._notify, self._listened = notify, self._directories

    def _close_notify(self) -> None:
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def _call_back(self, changes: list[Change]) -> None:
        for kind, path in changes:
            try:
                self._callback(kind, path)
            except Exception:
                log.exception("A callback for %s failed.", path)


def _bind_to_loop(callback: Callback) -> Callback:
    """Wrap the callback so that it runs in the current event loop, if any."""
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return callback

    def deliver(kind: ChangeKind, path: str) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(callback, kind, path)

    return deliver
