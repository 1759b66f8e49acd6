"""The bodies of answers over HTTP: bounded, and a message that is nested too deeply for the SDK mended on its way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ollm.extensions.mcp.schemas import mend_message

if TYPE_CHECKING:
    import httpx2

EVENT_DATA = b"data:"


def mend_body(body: bytes) -> bytes:
    """A message as it came, or as something the SDK can read where it could not: see `mend_message`."""
    from pydantic_core import from_json

    try:
        from_json(body)
    except ValueError:
        mended = mend_message(body)
        return body if mended is None else json.dumps(mended).encode()
    return body


def mend_line(line: bytes) -> bytes:
    """A line of a stream of events, the message in it mended."""
    if not line.startswith(EVENT_DATA) or not (data := line[len(EVENT_DATA) :].strip()).startswith(b"{"):
        return line
    mended = mend_body(data)
    return line if mended is data else EVENT_DATA + b" " + mended + b"\n"


def make_mended_body(stream: Any, max_bytes: int, *, events: bool) -> httpx2.AsyncByteStream:
    """The same body: one document of at most `max_bytes`, or events with lines of at most that."""
    import httpx2

    class MendedBody(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            pieces: list[bytes] = []
            size = 0
            async for piece in stream:
                pieces.append(piece)
                size += len(piece)
                if size > max_bytes:
                    raise httpx2.ReadError(f"its reply is larger than {max_bytes // 2**20} MiB")
                if events and (b"\n" in piece or b"\r" in piece):
                    *lines, kept = b"".join(pieces).split(b"\n")
                    whole = b"".join(mend_line(line + b"\n") for line in lines)
                    yield whole if lines else kept  # ended by a carriage return alone: rare, and left as it is
                    pieces = [kept] if lines else []
                    size = len(kept) if lines else 0
            rest = b"".join(pieces)
            yield mend_line(rest) if events else mend_body(rest)

        async def aclose(self) -> None:
            await stream.aclose()

    return MendedBody()
