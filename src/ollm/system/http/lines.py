"""Lines out of a stream of bytes: `\\n` alone ends one, wherever the chunks were cut.

Each takes the chunks over and closes them when it ends or is closed: nothing is left for the event loop to tidy up.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from ollm.system.http.client import TooLarge

MAX_LINE_BYTES = 32 * 1024 * 1024


async def iter_lines(chunks: AsyncGenerator[bytes, None], limit: int = MAX_LINE_BYTES) -> AsyncGenerator[bytes, None]:
    """Lines without their ending (`\\n` or `\\r\\n`); what is after the last `\\n` counts as one when not empty."""
    pending = bytearray()
    async with aclosing(chunks):
        async for chunk in chunks:
            head, *others = chunk.split(b"\n")
            pending += head
            if len(pending) > limit or (others and len(chunk) > limit):
                raise TooLarge(f"a line is longer than {limit} bytes")
            for following in others:
                yield bytes(pending).removesuffix(b"\r")
                pending = bytearray(following)
    if pending:
        yield bytes(pending).removesuffix(b"\r")


class ServerEvent(NamedTuple):
    """One server-sent event."""

    data: str
    event: str = "message"
    id: str = ""


async def iter_server_events(
    chunks: AsyncGenerator[bytes, None], limit: int = MAX_LINE_BYTES
) -> AsyncGenerator[ServerEvent, None]:
    """Events of a `text/event-stream`. Comments are dropped; an event at the very end needs no empty line."""
    data: list[str] = []
    size = 0
    name, identity = "message", ""
    async with aclosing(iter_lines(chunks, limit)) as found:
        async for raw in found:
            if not raw:
                if data:
                    yield ServerEvent("\n".join(data), name, identity)
                data, size, name = [], 0, "message"
                continue
            field, _, value = raw.decode("utf-8", "replace").removeprefix("\ufeff").partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
                size += len(raw)
                if size > limit:
                    raise TooLarge(f"an event is longer than {limit} bytes")
            elif field == "event":
                name = value
            elif field == "id":
                identity = value
    if data:
        yield ServerEvent("\n".join(data), name, identity)
