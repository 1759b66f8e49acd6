"""Lines out of a stream of bytes: `\\n` alone ends one, wherever the chunks were cut."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import NamedTuple

from ollm.system.http.failures import TooLarge

MAX_LINE = 32 * 1024 * 1024


async def lines(chunks: AsyncIterable[bytes], limit: int = MAX_LINE) -> AsyncIterator[bytes]:
    """Lines without their ending (`\\n` or `\\r\\n`); what stands after the last `\\n` counts as one when not empty."""
    pending = bytearray()
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


async def server_events(chunks: AsyncIterable[bytes], limit: int = MAX_LINE) -> AsyncIterator[ServerEvent]:
    """Events of a `text/event-stream`. Comments are dropped; an event at the very end needs no empty line."""
    data: list[str] = []
    size = 0
    name, identity = "message", ""
    async for raw in lines(chunks, limit):
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
