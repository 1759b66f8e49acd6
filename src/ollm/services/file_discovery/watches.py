"""All watches of a service: one for each root, however many listen to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from ollm.domain.files import ChangeKind
from ollm.services.file_discovery.walk import Walk
from ollm.services.file_discovery.watch import Callback, RootWatch


class RootWatches:
    """Starts a root's watch with its first listener and ends it with the last."""

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
        """How a root is watched, if it is."""
        watch = self._roots.get(root)
        return None if watch is None else "polling" if watch.polling else "events"

    def get_generation(self, root: str) -> int | None:
        """A number that moves with every change below a root; None where nobody watches, or only looks now and then."""
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
    """A listener's place. Disposing twice is once."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave: Callable[[], None] | None = leave

    def dispose(self) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


def _bind_to_loop(callback: Callback) -> Callback:
    """The callback, called in the event loop it was given in."""
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return callback

    def deliver(kind: ChangeKind, path: str) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(callback, kind, path)

    return deliver
