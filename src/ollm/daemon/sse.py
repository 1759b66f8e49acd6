"""Events on the wire: server-sent events with the event's number as id, so that a client can come back."""

from __future__ import annotations

import msgspec

from ollm.domain.events import AnyEvent


def encode_event(event: AnyEvent) -> bytes:
    data = msgspec.json.encode(event)
    name = type(event).__struct_config__.tag
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, str(name).encode(), data)
