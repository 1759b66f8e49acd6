"""Numbers a conversation's events and hands every subscriber all of them, in order; notices may wait for that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import msgspec

from ollm.domain.clock import Clock, format_stamp
from ollm.domain.events import AnyEvent, Event, Notice, NoticeLevel, TurnFinished

Listener = Callable[[AnyEvent], None]


class EventStream:
    """`emit` fills in session, number and time. Listeners are called at once, in the order they came.

    `redact` takes secrets out of what is said to have gone wrong: a server may repeat a key that it does not know."""

    def __init__(self, clock: Clock, session_id: str = "", redact: Callable[[str], str] = str) -> None:
        self.session_id = session_id
        self.last_seq = 0
        self._clock = clock
        self._redact = redact
        self._listeners: list[Listener] = []

    def emit(self, event: Event) -> None:
        self.last_seq += 1
        if isinstance(event, Notice) and event.level != "info":
            event = msgspec.structs.replace(event, text=self._redact(event.text))
        elif isinstance(event, TurnFinished) and event.message:
            event = msgspec.structs.replace(event, message=self._redact(event.message))
        sent = msgspec.structs.replace(
            event,
            session_id=self.session_id or event.session_id,
            seq=self.last_seq,
            timestamp=format_stamp(self._clock()),
        )
        for listener in tuple(self._listeners):
            listener(sent)  # type: ignore[arg-type]  # every Event that exists is in AnyEvent

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every event from now on; the returned function ends it."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def subscribe(self) -> EventSubscription:
        return EventSubscription(self)


class EventSubscription:
    """Every event from the moment it was made, as an async iterator; ends after `close`."""

    def __init__(self, stream: EventStream) -> None:
        self._queue: asyncio.Queue[AnyEvent | None] = asyncio.Queue()
        self._stop = stream.add_listener(self._queue.put_nowait)

    def close(self) -> None:
        self._stop()
        self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[AnyEvent]:
        while (event := await self._queue.get()) is not None:
            yield event


async def iterate_until_finished(subscription: EventSubscription) -> AsyncIterator[AnyEvent]:
    async for event in subscription:
        yield event
        if isinstance(event, TurnFinished):
            return


class NoticeQueue:
    """Notices that wait until there is somebody to tell."""

    def __init__(self) -> None:
        self._waiting: list[Notice] = []
        self._warned: set[str] = set()

    def add(self, level: NoticeLevel, text: str) -> None:
        self._waiting.append(Notice(level=level, text=text))

    def warn(self, text: str) -> None:
        self.add("warning", text)

    def warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self.warn(text)

    def emit_all(self, emit: Callable[[Event], None]) -> None:
        notices, self._waiting = self._waiting, []
        for notice in notices:
            emit(notice)
