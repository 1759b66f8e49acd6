"""The newest events of a session, kept for clients that come late or come back.

Delivery: a client gets every event after the one it names, in order and without gaps, as long as that one is among the
newest thousands; otherwise it starts with the oldest that is kept. A client that does not read is let go.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from functools import cached_property

from ollm.daemon.sse import encode_event
from ollm.domain.events import AnyEvent

MAX_KEPT_EVENTS = 5_000
MAX_WAITING_EVENTS = 10_000


class EventFrame:
    """An event and how it is sent; put into bytes once, for however many readers."""

    def __init__(self, event: AnyEvent) -> None:
        self.event = event

    @cached_property
    def data(self) -> bytes:
        return encode_event(self.event)


class EventLog:
    """Fed with every event of one conversation; any number of readers."""

    def __init__(self) -> None:
        self._frames: deque[EventFrame] = deque(maxlen=MAX_KEPT_EVENTS)
        self._readers: set[asyncio.Queue[EventFrame | None]] = set()
        self._closed = False

    @property
    def last_seq(self) -> int:
        return self._frames[-1].event.seq if self._frames else 0

    @property
    def reader_count(self) -> int:
        return len(self._readers)

    def add(self, event: AnyEvent) -> None:
        frame = EventFrame(event)
        self._frames.append(frame)
        for queue in tuple(self._readers):
            if queue.qsize() < MAX_WAITING_EVENTS:
                queue.put_nowait(frame)
            else:
                self._readers.discard(queue)
                queue.put_nowait(None)

    def close(self) -> None:
        self._closed = True
        for queue in self._readers:
            queue.put_nowait(None)

    async def read_after(self, seq: int) -> AsyncIterator[EventFrame]:
        """Everything after number `seq`, then what comes; ends when the session is closed."""
        queue: asyncio.Queue[EventFrame | None] = asyncio.Queue()
        known = [frame for frame in self._frames if frame.event.seq > (seq if seq <= self.last_seq else 0)]
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
