"""Events on the wire: server-sent events with the event's number as id, so that a client can come back."""

from __future__ import annotations

import msgspec

from ollm.domain.events import AnyEvent


def encode_event_body(event: AnyEvent) -> bytes:
    """All of it but the number."""
    data = msgspec.json.encode(event)
    name = type(event).__struct_config__.tag
    return b"event: %s\ndata: %s\n\n" % (str(name).encode(), data)
