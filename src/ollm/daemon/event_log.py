"""The newest events of a session, kept for clients that come late or come back.

Delivery: a client gets every event after the one it names, in order and without gaps, as long as that one is among the
newest thousands; otherwise it starts with the oldest that is kept. A client that does not read is let go.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from ollm.domain.events import AnyEvent

KEPT = 5_000
WAITING = 10_000


class EventLog:
    """Fed with every event of one conversation; any number of readers."""

    def __init__(self) -> None:
        self._events: deque[AnyEvent] = deque(maxlen=KEPT)
        self._readers: set[asyncio.Queue[AnyEvent | None]] = set()
        self._closed = False

    @property
    def last(self) -> int:
        return self._events[-1].seq if self._events else 0

    @property
    def readers(self) -> int:
        return len(self._readers)

    def add(self, event: AnyEvent) -> None:
        self._events.append(event)
        for queue in tuple(self._readers):
            if queue.qsize() < WAITING:
                queue.put_nowait(event)
            else:
                self._readers.discard(queue)
                queue.put_nowait(None)

    def close(self) -> None:
        self._closed = True
        for queue in self._readers:
            queue.put_nowait(None)

    async def after(self, seq: int) -> AsyncIterator[AnyEvent]:
        """Everything after number `seq`, then what comes; ends when the session is closed."""
        queue: asyncio.Queue[AnyEvent | None] = asyncio.Queue()
        known = [event for event in self._events if event.seq > (seq if seq <= self.last else 0)]
        self._readers.add(queue)
        try:
            for event in known:
                yield event
            if self._closed:
                return
            while (found := await queue.get()) is not None:
                yield found
        finally:
            self._readers.discard(queue)
