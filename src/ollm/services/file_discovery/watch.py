"""Watching a root (S6.7-8).

After an event the visible files are compared with those of the last look. So the order of events does not matter, nor
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
from ollm.system.folders import FolderMemory

Callback = Callable[[ChangeKind, str], None]
_DEBOUNCE_MILLISECONDS, _STEP_MILLISECONDS, _WAIT_MILLISECONDS = 50, 10, 1000
_POLL_SECONDS = 1.0
_MAX_REST_SECONDS = 1.0

log = logging.getLogger(__name__)


class RootWatch:
    """Calls back for every change of a visible file after `start` returns, in the event loop that created it, if any,
    else in its own thread."""

    def __init__(self, root: str, new_walk: Callable[[], Walk], callback: Callback) -> None:
        self._root, self._new_walk, self._callback = root, new_walk, _bind_to_loop(callback)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"ollm watch {root}", daemon=True)
        self._folders = FolderMemory()
        self._files: dict[str, Signature] = {}
        self._notify: Any = None

    def start(self) -> None:
        self._start_listening()
        self._look()
        self._thread.start()

    def dispose(self) -> None:
        """End the watch and its thread. Doing so twice is harmless."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _start_listening(self) -> None:
        """Listen to the system's events below the root. Without watches or descriptors, look every now and then."""
        from watchfiles._rust_notify import RustNotify

        try:
            self._notify = RustNotify([self._root], False, False, 0, True, True)
        except Exception as error:  # noqa: BLE001 - the library raises what the system says
            log.warning("Cannot watch %s (%s); polling every %g seconds.", self._root, error, _POLL_SECONDS)
            self._notify = None

    def _run(self) -> None:
        while not self._stop.is_set():
            if not self._wait_for_events():
                continue
            start = time.monotonic()
            for kind, path in self._look():
                try:
                    self._callback(kind, path)
                except Exception:
                    log.exception("A callback for %s failed.", path)
            self._stop.wait(min(time.monotonic() - start, _MAX_REST_SECONDS))  # Many changes use half a core at most.
        self._notify = None

    def _wait_for_events(self) -> bool:
        if self._notify is None:
            return not self._stop.wait(_POLL_SECONDS)
        try:
            words = self._notify.watch(_DEBOUNCE_MILLISECONDS, _STEP_MILLISECONDS, _WAIT_MILLISECONDS, self._stop)
        except Exception as error:  # noqa: BLE001 - whatever the library met, such as a name that is not text
            log.debug("Watching %s again: %s", self._root, error)
            self._start_listening()
            return True
        return not isinstance(words, str)  # A string is "timeout" or "stop".

    def _look(self) -> list[tuple[ChangeKind, str]]:
        walk, before = self._new_walk(), self._files
        self._folders.look()
        visible = ((content.prefix, name) for content in walk.iter_directories(self._folders) for name in content.files)
        paths = [walk.get_path(prefix + name) for prefix, name in visible]
        self._files = {path: seen for path in paths if (seen := read_signature(path))}
        changes: list[tuple[ChangeKind, str]] = [
            ("unlink", path) for path in before if path not in self._files and not os.path.lexists(path)
        ]
        for path, seen in self._files.items():
            if path not in before:
                changes.append(("add", path))
            elif before[path] != seen:
                changes.append(("change", path))
        return changes


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
