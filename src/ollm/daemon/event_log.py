"""The newest events of a session, kept for clients that come late or come back.

Delivery: a client gets every event after the one it names, in order and without gaps, as long as that one is among the
newest thousands; otherwise it starts with the oldest that is kept. A client that does not read is let go.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from functools import cached_property

from ollm.daemon.sse import encoded
from ollm.domain.events import AnyEvent

KEPT = 5_000
WAITING = 10_000


class Frame:
    """An event and how it is sent; put into bytes once, for however many readers."""

    def __init__(self, event: AnyEvent) -> None:
        self.event = event

    @cached_property
    def data(self) -> bytes:
        return encoded(self.event)


class EventLog:
    """Fed with every event of one conversation; any number of readers."""

    def __init__(self) -> None:
        self._frames: deque[Frame] = deque(maxlen=KEPT)
        self._readers: set[asyncio.Queue[Frame | None]] = set()
        self._closed = False

    @property
    def last(self) -> int:
        return self._frames[-1].event.seq if self._frames else 0

    @property
    def readers(self) -> int:
        return len(self._readers)

    def add(self, event: AnyEvent) -> None:
        frame = Frame(event)
        self._frames.append(frame)
        for queue in tuple(self._readers):
            if queue.qsize() < WAITING:
                queue.put_nowait(frame)
            else:
                self._readers.discard(queue)
                queue.put_nowait(None)

    def close(self) -> None:
        self._closed = True
        for queue in self._readers:
            queue.put_nowait(None)

    async def after(self, seq: int) -> AsyncIterator[Frame]:
        """Everything after number `seq`, then what comes; ends when the session is closed."""
        queue: asyncio.Queue[Frame | None] = asyncio.Queue()
        known = [frame for frame in self._frames if frame.event.seq > (seq if seq <= self.last else 0)]
        self._readers.add(queue)
        try:
            for frame in known:
                yield frame
            if self._closed:
                return
            while (found := await queue.get()) is not None:
                yield found
        finally:
            self._readers.discard(queue)
