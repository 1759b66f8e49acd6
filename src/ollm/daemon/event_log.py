"""The newest events of a session, kept for clients that come late or come back.

Delivery: a client gets every event after the one it names, in order and without gaps, as long as that one is among the
newest thousands; otherwise it starts with the oldest that is kept. A client that does not read is let go.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import cached_property
from weakref import WeakSet

from ollm.daemon.sse import encode_event_body
from ollm.domain.events import AnyEvent

MAX_KEPT_EVENTS = 5_000
MAX_WAITING_EVENTS = 10_000


class EventFrame:
    """An event and how it is sent; put into bytes once, for however many readers."""

    def __init__(self, event: AnyEvent) -> None:
        self.event = event

    @cached_property
    def body(self) -> bytes:
        """As it is sent, but for its number."""
        return encode_event_body(self.event)

    @cached_property
    def data(self) -> bytes:
        return b"id: %d\n%s" % (self.event.seq, self.body)


class EventReader:
    """The stream of one client, as an async iterator; ends when it is let go or the session is closed."""

    def __init__(self, known: list[EventFrame], leave: Callable[[EventReader], None]) -> None:
        self.opened = time.monotonic()
        self._known = known
        self._leave = leave
        self._queue: asyncio.Queue[EventFrame | None] = asyncio.Queue()

    def put(self, frame: EventFrame) -> bool:
        """False when as many wait as may."""
        if self._queue.qsize() >= MAX_WAITING_EVENTS:
            return False
        self._queue.put_nowait(frame)
        return True

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[EventFrame]:
        try:
            for frame in self._known:
                yield frame
            while (found := await self._queue.get()) is not None:
                yield found
        finally:
            self._leave(self)


class EventLog:
    """Fed with every event of one conversation; any number of readers."""

    def __init__(self) -> None:
        self._frames: deque[EventFrame] = deque(maxlen=MAX_KEPT_EVENTS)
        self._readers: WeakSet[EventReader] = WeakSet()  # one that nobody iterates over is gone at once
        self._closed = False

    @property
    def last_seq(self) -> int:
        return self._frames[-1].event.seq if self._frames else 0

    @property
    def reader_count(self) -> int:
        return len(self._readers)

    @property
    def readers(self) -> list[EventReader]:
        return list(self._readers)

    def add(self, event: AnyEvent) -> EventFrame:
        frame = EventFrame(event)
        self._frames.append(frame)
        for reader in tuple(self._readers):
            if not reader.put(frame):
                self.release(reader)
        return frame

    def list_frames(self, after: int) -> list[EventFrame]:
        """What is kept of everything after number `after`."""
        return [frame for frame in self._frames if frame.event.seq > after]

    def close(self) -> None:
        self._closed = True
        for reader in self.readers:
            reader.end()

    def open_reader(self, seq: int) -> EventReader:
        """Everything after number `seq`, then what comes; it counts as a reader from now on."""
        known = [frame for frame in self._frames if frame.event.seq > (seq if seq <= self.last_seq else 0)]
        reader = EventReader(known, self._readers.discard)
        if self._closed:
            reader.end()
        else:
            self._readers.add(reader)
        return reader

    def release(self, reader: EventReader) -> None:
        """End a stream, so that its place is free for another."""
        self._readers.discard(reader)
        reader.end()
