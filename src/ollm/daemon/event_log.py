"""The newest events of a session, kept for clients that come late or come back.

Delivery: a client gets every event after the one it names, in order and without gaps, as long as that one is among the
newest thousands; otherwise it starts with the oldest that is kept. A client that does not read is let go.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from functools import cached_property
from typing import NamedTuple
from weakref import WeakSet

import msgspec

from ollm.domain.events import AnyEvent


def encode_event_body(event: AnyEvent) -> bytes:
    """All of it but the number."""
    data = msgspec.json.encode(event)
    name = type(event).__struct_config__.tag
    return b"event: %s\ndata: %s\n\n" % (str(name).encode(), data)


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
        """List the kept frames after number `after`."""
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


PING_SECONDS = 15.0
PING = b": ping\n\n"


class FeedFrame(NamedTuple):
    """An event with its number among those of all sessions."""

    number: int
    frame: EventFrame


class FeedReader:
    """The stream of one client; `sessions` are those it wants, none for all."""

    def __init__(self, feed: EventFeed, first: list[bytes], sessions: frozenset[str]) -> None:
        self.opened = time.monotonic()
        self._feed = feed
        self._first = first
        self._sessions = sessions
        self._queue: asyncio.Queue[FeedFrame | None] = asyncio.Queue()

    def wants(self, session_id: str) -> bool:
        return not self._sessions or session_id in self._sessions

    def put(self, found: FeedFrame) -> bool:
        """False when as many wait as may."""
        if self.wants(found.frame.event.session_id):
            if self._queue.qsize() >= MAX_WAITING_EVENTS:
                return False
            self._queue.put_nowait(found)
        return True

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Bytes to send; now and then a comment, by which either side notices that the other is gone."""
        try:
            for sent in self._first:
                yield sent
            while True:
                try:
                    async with asyncio.timeout(PING_SECONDS):  # wait_for of Python 3.11 may lose a cancel
                        found = await self._queue.get()
                except TimeoutError:
                    yield PING
                    continue
                if found is None:
                    return
                yield self._feed.encode(found)
        finally:
            self._feed.leave(self)


class EventFeed:
    """Fed with the events of all sessions; any number of readers."""

    def __init__(self) -> None:
        self.run = secrets.token_hex(4)
        self._frames: deque[FeedFrame] = deque(maxlen=MAX_KEPT_EVENTS)
        self._last = 0
        self._readers: WeakSet[FeedReader] = WeakSet()
        self._closed = False

    @property
    def reader_count(self) -> int:
        return len(self._readers)

    def has_listener(self, session_id: str) -> bool:
        return any(reader.wants(session_id) for reader in self._readers)

    def add(self, frame: EventFrame) -> None:
        self._last += 1
        found = FeedFrame(self._last, frame)
        self._frames.append(found)
        for reader in tuple(self._readers):
            if not reader.put(found):
                self.leave(reader)
                reader.end()

    def encode(self, found: FeedFrame) -> bytes:
        return b"id: %s-%d\n%s" % (self.run.encode(), found.number, found.frame.body)

    def open_reader(
        self, known: str | None, running: Callable[[], Iterable[EventFrame]], sessions: frozenset[str] = frozenset()
    ) -> FeedReader:
        """Read the events after `known`, then new ones; `running` gives the events of running turns."""
        number = self._parse(known)
        if number is None:
            first = [b"id: %s-%d\nevent: reset\ndata: {}\n\n" % (self.run.encode(), self._last)]
            first += [frame.body for frame in running() if not sessions or frame.event.session_id in sessions]
        else:
            missed = [found for found in self._frames if found.number > number]
            first = [self.encode(found) for found in missed if not sessions or found.frame.event.session_id in sessions]
        reader = FeedReader(self, first, sessions)
        if self._closed:
            reader.end()
        else:
            self._readers.add(reader)
        return reader

    def _parse(self, known: str | None) -> int | None:
        """The number a client knows; None when it cannot be gone on from there."""
        run, _, digits = (known or "").partition("-")
        if run != self.run or not (digits.isascii() and digits.isdigit() and len(digits) < 18):
            return None
        oldest = self._frames[0].number if self._frames else 1
        return int(digits) if oldest - 1 <= int(digits) <= self._last else None

    def leave(self, reader: FeedReader) -> None:
        self._readers.discard(reader)

    def release_oldest(self) -> bool:
        """End the stream that has been open longest; whether there was one."""
        readers = list(self._readers)
        if not readers:
            return False
        oldest = min(readers, key=lambda reader: reader.opened)
        self.leave(oldest)
        oldest.end()
        return True

    def close(self) -> None:
        self._closed = True
        for reader in list(self._readers):
            reader.end()
