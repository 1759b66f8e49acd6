"""The newest events, kept for clients that connect late or reconnect.

A client receives every event after the one it names, in order and without gaps, as long as that event is kept.
Otherwise it starts with the oldest event kept. A client that stops reading is disconnected.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from functools import cached_property
from weakref import WeakSet

import msgspec

from ollm.domain.events import Event, TurnFinished
from ollm.domain.struct import Data

MAX_KEPT_EVENTS = 5_000
MAX_WAITING_EVENTS = 10_000
MAX_NUMBER_DIGITS = 18
PING_SECONDS = 15.0
PING = b": ping\n\n"


class StreamReset(Data, frozen=True, tag_field="type", tag="reset"):
    """The events before this one are not kept: read the sessions anew."""


def parse_event_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_NUMBER_DIGITS else None


class EventFrame:
    """An event as it is sent, except for its number; encoded once for all readers."""

    def __init__(self, event: Event) -> None:
        self.event = event

    @cached_property
    def body(self) -> bytes:
        return encode_event(self.event)


def encode_event(event: Event | StreamReset) -> bytes:
    name = str(type(event).__struct_config__.tag)
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(event))


class EventReader:
    """The stream of one client. It ends when it is released, and with `one_turn` after the turn."""

    def __init__(self, log: EventLog, sessions: frozenset[str], *, one_turn: bool, first: bytes = b"") -> None:
        self.opened = time.monotonic()
        self._log = log
        self._sessions = sessions
        self._one_turn = one_turn
        self._first = first
        self._queue: asyncio.Queue[tuple[bytes, EventFrame] | None] = asyncio.Queue()

    def wants(self, session_id: str) -> bool:
        return not self._sessions or session_id in self._sessions

    def put(self, head: bytes, frame: EventFrame) -> None:
        if not self.wants(frame.event.session_id):
            return
        if self._queue.qsize() >= MAX_WAITING_EVENTS:
            self.release()
        else:
            self._queue.put_nowait((head, frame))

    def end(self) -> None:
        self._queue.put_nowait(None)

    def release(self) -> None:
        """End the stream, so that its place is free for another."""
        self._log.discard(self)
        self.end()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the bytes to send. A comment at times of silence lets either side notice that the other is gone."""
        try:
            if self._first:
                yield self._first
            while True:
                try:
                    async with asyncio.timeout(PING_SECONDS):  # In Python 3.11 `wait_for` may lose a cancellation.
                        found = await self._queue.get()
                except TimeoutError:
                    yield PING
                    continue
                if found is None:
                    return
                head, frame = found
                yield head + frame.body
                if self._one_turn and isinstance(frame.event, TurnFinished):
                    return
        finally:
            self._log.discard(self)


class EventLog:
    """The events of one conversation, by their sequence numbers."""

    prefix = b""  # Stands before each event number that clients see.

    def __init__(self) -> None:
        self.last = 0
        self._frames: deque[tuple[int, EventFrame]] = deque(maxlen=MAX_KEPT_EVENTS)
        self._readers: WeakSet[EventReader] = WeakSet()  # A reader that nobody iterates over is gone at once.
        self._closed = False

    @property
    def readers(self) -> list[EventReader]:
        return list(self._readers)

    def add(self, number: int, frame: EventFrame) -> None:
        self.last = number
        self._frames.append((number, frame))
        for reader in self.readers:
            reader.put(self._make_head(number), frame)

    def list_frames(self, after: int) -> list[EventFrame]:
        return [frame for number, frame in self._frames if number > after]

    def open_reader(self, after: int, sessions: frozenset[str] = frozenset(), *, one_turn: bool = False) -> EventReader:
        """Read the events after number `after`, then new ones; it counts as a reader from now on."""
        reader = EventReader(self, sessions, one_turn=one_turn)
        for number, frame in self._frames:
            if number > (after if after <= self.last else 0):
                reader.put(self._make_head(number), frame)
        return self._admit(reader)

    def discard(self, reader: EventReader) -> None:
        self._readers.discard(reader)

    def close(self) -> None:
        self._closed = True
        for reader in self.readers:
            reader.end()

    def _admit(self, reader: EventReader) -> EventReader:
        if self._closed:
            reader.end()
        else:
            self._readers.add(reader)
        return reader

    def _make_head(self, number: int) -> bytes:
        return b"id: %s%d\n" % (self.prefix, number)


class EventFeed(EventLog):
    """The events of all sessions, by numbers of this run of the daemon."""

    def __init__(self) -> None:
        super().__init__()
        self.run = secrets.token_hex(4)
        self.prefix = f"{self.run}-".encode()

    def follow(
        self, known: str | None, running: Iterable[EventFrame], sessions: frozenset[str] = frozenset()
    ) -> EventReader:
        """Read on after the event `known`; if that is not possible, send `reset` and the events of running turns."""
        number = self._parse(known)
        if number is not None:
            return self.open_reader(number, sessions)
        first = self._make_head(self.last) + encode_event(StreamReset())
        reader = EventReader(self, sessions, one_turn=False, first=first)
        for frame in running:
            reader.put(b"", frame)
        return self._admit(reader)

    def _parse(self, known: str | None) -> int | None:
        """Parse the number a client knows; None if the events after it are not kept."""
        run, _, digits = (known or "").partition("-")
        number = parse_event_number(digits) if run == self.run else None
        oldest = self._frames[0][0] if self._frames else 1
        return number if number is not None and oldest - 1 <= number <= self.last else None
