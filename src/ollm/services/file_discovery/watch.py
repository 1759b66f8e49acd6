"""Watching a root (S6.7-8): only its visible directories.

An event names a directory, which is read again and compared with its known state. So the order of events does not
matter, nor whether some are merged or lost in a flood. A rename is an unlink and an add. A file that was created and
deleted in between is not reported.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from ollm.domain.files import ChangeKind
from ollm.services.file_discovery.rules import GIT_IGNORE, OLLM_IGNORE, Signature, read_signature
from ollm.services.file_discovery.walk import DirectoryListing, PendingDirectory, Walk

Change = tuple[ChangeKind, str]


class TreeState:
    """The state of a tree at one time. `refresh` and `reread_tree` update it and return the changes."""

    def __init__(self, new_walk: Callable[[], Walk]) -> None:
        self._new_walk = new_walk
        self._walk = new_walk()
        self._places: dict[str, PendingDirectory] = {}
        self._files: dict[str, dict[str, Signature]] = {}

    @property
    def directories(self) -> set[str]:
        return {self._walk.get_path(relative) for relative in self._places}

    @property
    def stale_directories(self) -> list[str]:
        """The directories changed since they were read, as paths from the root."""
        return [
            relative
            for relative in self._places
            if read_signature(path := self._walk.get_path(relative)) != self._walk.directories.get(path)
        ]

    def reread_tree(self) -> list[Change]:
        """Read the whole tree again, including the rules."""
        self._walk = self._new_walk()
        before = set(self._places)
        self._places.clear()
        changes = list(self._read_below(self._walk.start, everything=True))
        for relative in before - set(self._places):
            changes += self._drop_directory(relative)
        return changes

    def refresh(self, relatives: Iterable[str]) -> list[Change]:
        """Read these directories again, and new directories below them."""
        changes: list[Change] = []
        for relative in sorted(relatives):
            if relative in self._places:
                changes += self._read_below(self._places[relative], everything=False)
        return changes

    def _read_below(self, start: PendingDirectory, *, everything: bool) -> Iterator[Change]:
        waiting = [start]
        while waiting:
            place = waiting.pop()
            listing = self._walk.visit(place)
            if listing is None:
                yield from self._drop_tree(place.relative)
                continue
            self._places[place.relative] = place
            yield from self._compare_listing(listing)
            below = {inner.relative: inner for inner in listing.below}
            waiting.extend(inner for name, inner in below.items() if everything or name not in self._places)
            if not everything:
                for relative in self._list_children(place) - set(below):
                    yield from self._drop_tree(relative)

    def _compare_listing(self, listing: DirectoryListing) -> Iterator[Change]:
        before = self._files.get(listing.place.relative, {})
        folder = self._walk.get_path(listing.place.relative)
        now = {name: read_signature(f"{folder}/{name}") for name in listing.files}
        self._files[listing.place.relative] = now
        for name in before.keys() - now.keys():
            yield from _report_unlink(f"{folder}/{name}")
        for name, seen in now.items():
            if name not in before:
                yield "add", f"{folder}/{name}"
            elif before[name] != seen:
                yield "change", f"{folder}/{name}"

    def _list_children(self, place: PendingDirectory) -> set[str]:
        depth = place.relative.count("/") + 1 if place.relative else 0
        prefix = place.prefix
        return {name for name in self._places if name and name.startswith(prefix) and name.count("/") == depth}

    def _drop_tree(self, relative: str) -> list[Change]:
        """Drop a directory that is gone or hidden now, with everything below it."""
        prefix = f"{relative}/" if relative else ""
        below = [name for name in self._places if name == relative or name.startswith(prefix)]
        return [change for name in below for change in self._drop_directory(name)]

    def _drop_directory(self, relative: str) -> list[Change]:
        self._places.pop(relative, None)
        folder = self._walk.get_path(relative)
        names = self._files.pop(relative, {})
        return [change for name in names for change in _report_unlink(f"{folder}/{name}")]


def _report_unlink(path: str) -> Iterator[Change]:
    """Report an unlink if the file is really gone. A file that a rule now hides is not reported."""
    if not os.path.lexists(path):
        yield "unlink", path


log = logging.getLogger(__name__)

Callback = Callable[[ChangeKind, str], None]
Words = set[tuple[int, str]]
_MODIFIED = 2
_DEBOUNCE_MILLISECONDS, _STEP_MILLISECONDS, _WAIT_MILLISECONDS = 50, 10, 1000  # milliseconds
_POLL_SECONDS = 1.0
_MAX_WORDS = 4000  # this many words at once: some may have been lost (the system's queue holds 16,384)
_MAX_ATTEMPTS = 5
_MAX_REST_SECONDS = 1.0


class RootWatch:
    """One watch of one root, for any number of callbacks. After `start` returns, every change is detected."""

    def __init__(self, root: str, new_walk: Callable[[], Walk]) -> None:
        self._root = root
        self._known = TreeState(new_walk)
        self._callbacks: list[Callback] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"ollm watch {root}", daemon=True)
        self._notify: Any = None
        self._listened: set[str] = set()
        self._unheard: Words = set()
        self.generation = 0
        self.polling = False

    def start(self) -> None:
        for _ in range(_MAX_ATTEMPTS):
            self._known.reread_tree()
            self._start_watching()
            if not self._known.stale_directories:
                break
        self._thread.start()

    def add(self, callback: Callback) -> None:
        self._callbacks.append(callback)

    def remove(self, callback: Callback) -> int:
        """Remove a callback, and return the number left."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)
        return len(self._callbacks)

    def close(self) -> None:
        """End the watch and its thread."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                words = self._wait_for_words()
                start = time.monotonic()
                changes = self._known.reread_tree() if words is None else self._handle_words(words) if words else []
                self._call_back(changes + self._keep_listening())
                self._stop.wait(min(time.monotonic() - start, _MAX_REST_SECONDS))  # a flood takes half a core at most
        finally:
            self._close_notify()

    def _wait_for_words(self) -> Words | None:
        """Wait for system events. Returns an empty set after a timeout, or None if the whole tree must be read."""
        if self.polling:
            return set() if self._stop.wait(_POLL_SECONDS) else None
        try:
            words: Words | str = self._notify.watch(
                _DEBOUNCE_MILLISECONDS, _STEP_MILLISECONDS, _WAIT_MILLISECONDS, self._stop
            )
        except Exception as error:  # noqa: BLE001 - whatever the library met (a name that is not text): look ourselves
            log.debug("Watching %s again: %s", self._root, error)
            self._listened = set()
            return None
        return set() if isinstance(words, str) else words

    def _keep_listening(self) -> list[Change]:
        """Watch the current directories, and catch up with changes made meanwhile."""
        changes: list[Change] = []
        for _ in range(_MAX_ATTEMPTS):
            if self.polling or self._known.directories == self._listened:
                break
            self._start_watching()
            changes += self._known.refresh(self._known.stale_directories) + self._handle_words(self._unheard)
        return changes

    def _handle_words(self, words: Words) -> list[Change]:
        """Handle events. Directories that were added or removed are watched again, since a name may be reused."""
        self.generation += 1
        self._listened -= {path for kind, path in words if kind != _MODIFIED}
        paths = {path for _, path in words}
        if len(paths) > _MAX_WORDS or any(path.endswith((GIT_IGNORE, OLLM_IGNORE)) for path in paths):
            return self._known.reread_tree()
        return self._known.refresh({self._find_directory(path) for path in paths})

    def _find_directory(self, path: str) -> str:
        """Return the directory, from the root, that an event for this path refers to."""
        folder = path if path == self._root else os.path.dirname(path)  # noqa: PTH120 - strings in, strings out
        return folder[len(self._root) + 1 :]

    def _start_watching(self) -> None:
        """Watch all visible directories. The new watch starts before the old one ends, so that no event is lost."""
        from watchfiles._rust_notify import RustNotify

        wanted = self._known.directories
        try:
            notify = RustNotify(
                [path for path in wanted if os.path.isdir(path)],  # noqa: PTH112 - strings in, strings out
                False, False, 0, False, True,
            )  # fmt: skip
        except FileNotFoundError:
            self._listened = set()
            return
        except Exception as error:  # noqa: BLE001 - no more watches or descriptors: look every now and then
            self._start_polling(error)
            return
        self._unheard = self._read_leftover_words()
        self._close_notify()
        self._notify, self._listened = notify, wanted

    def _read_leftover_words(self) -> Words:
        """Read events that arrived between two waits."""
        if self._notify is None:
            return set()
        try:
            words: Words | str = self._notify.watch(1, 1, 1, None)
        except Exception:  # noqa: BLE001 - as above; a word about rules makes us look at everything
            return {(_MODIFIED, GIT_IGNORE)}
        return set() if isinstance(words, str) else words

    def _start_polling(self, error: Exception) -> None:
        log.warning("Cannot watch %s (%s); polling every %g seconds.", self._root, error, _POLL_SECONDS)
        self._close_notify()
        self.polling = True

    def _close_notify(self) -> None:
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def _call_back(self, changes: list[Change]) -> None:
        if changes:
            self.generation += 1
        for kind, path in changes:
            for callback in tuple(self._callbacks):
                try:
                    callback(kind, path)
                except Exception:
                    log.exception("A callback for %s failed.", path)


class RootWatches:
    """Starts the watch of a root with its first listener and ends it with the last."""

    def __init__(self, new_walk: Callable[[str], Walk]) -> None:
        self._new_walk = new_walk
        self._roots: dict[str, RootWatch] = {}
        self._lock = threading.Lock()

    def watch(self, root: str, callback: Callback) -> WatchSubscription:
        deliver = _bind_to_loop(callback)
        with self._lock:
            watch = self._roots.get(root)
            if watch is None:
                watch = RootWatch(root, lambda: self._new_walk(root))
                watch.start()
                self._roots[root] = watch
            watch.add(deliver)
        return WatchSubscription(lambda: self._unsubscribe(root, deliver))

    def get_state(self, root: str) -> Literal["events", "polling"] | None:
        watch = self._roots.get(root)
        return None if watch is None else "polling" if watch.polling else "events"

    def get_generation(self, root: str) -> int | None:
        """Return a number that grows with every change below a root, or None if it is not watched by events."""
        watch = self._roots.get(root)
        return None if watch is None or watch.polling else watch.generation

    def close(self) -> None:
        with self._lock:
            watches = list(self._roots.values())
            self._roots.clear()
        for watch in watches:
            watch.close()

    def _unsubscribe(self, root: str, deliver: Callback) -> None:
        with self._lock:
            watch = self._roots.get(root)
            if watch is None or watch.remove(deliver):
                return
            del self._roots[root]
        watch.close()


class WatchSubscription:
    """A listener's subscription. Disposing it twice is harmless."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave: Callable[[], None] | None = leave

    def dispose(self) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


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
