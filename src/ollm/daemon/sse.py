"""Events on the wire: server-sent events with the event's number as id, so that a client can come back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from ollm.domain.events import AnyEvent


async def server_sent(events: AsyncIterator[AnyEvent]) -> AsyncIterator[bytes]:
    async for event in events:
        yield encoded(event)


def encoded(event: AnyEvent) -> bytes:
    data = msgspec.json.encode(event)
    name = type(event).__struct_config__.tag
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, str(name).encode(), data)
