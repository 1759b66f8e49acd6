"""How many tasks of a conversation run at a time, and for how long each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress


class TaskPlaces:
    """The tasks that may run at a time. `count` is asked when none runs, since the model may have changed."""

    def __init__(self, count: Callable[[], Awaitable[int]]) -> None:
        self._count = count
        self._entrance = asyncio.Lock()
        self._places = asyncio.Semaphore()
        self.count = 1
        self._open = 0

    @asynccontextmanager
    async def take(self, side_by_side: bool, emit: Callable[[str], None]) -> AsyncIterator[None]:
        """Wait for a place, in the order of the calls."""
        async with self._entrance:
            if not self._open:
                self.count = await self._count() if side_by_side else 1
                self._places = asyncio.Semaphore(self.count)
            self._open += 1
        try:
            if self._places.locked():
                emit("waiting for another task\n")
            async with self._places:
                yield
        finally:
            self._open -= 1


class TaskLimit:
    """The time of a task, which starts now and stands still while a question waits for the person."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.timer = asyncio.timeout(seconds)

    @contextmanager
    def pause(self) -> Iterator[None]:
        now, end = asyncio.get_running_loop().time, self.timer.when()
        if end is None or self.timer.expired():
            yield
            return
        left = end - now()
        self.timer.reschedule(None)
        try:
            yield
        finally:
            with suppress(RuntimeError):  # The task may have ended.
                self.timer.reschedule(now() + left)
