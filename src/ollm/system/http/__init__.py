"""HTTP for model servers: httptools for `http://`, httpx2 for `https://` and proxies, and the lines that both
stream: `\\n` alone ends one, wherever the chunks were cut.

A connection to a plain server is kept and used again. Redirects are never followed. Leaving a stream early closes its
connection at once, which is how a model server learns that nobody waits for the answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from ollm.system.http.client import (
    BadResponse,
    CertificateNotTrusted,
    Client,
    ConnectFailed,
    ConnectionBroken,
    FirstByteTimeout,
    FullResponse,
    HttpFailure,
    PlainClient,
    Response,
    SilenceTimer,
    StreamStalled,
    Timeouts,
    TooLarge,
    parse_address,
    read_full_response,
)

__all__ = [
    "BadResponse",
    "CertificateNotTrusted",
    "Client",
    "ConnectFailed",
    "ConnectionBroken",
    "FirstByteTimeout",
    "FullResponse",
    "HttpFailure",
    "Response",
    "SilenceTimer",
    "StreamStalled",
    "Timeouts",
    "TooLarge",
    "iter_lines",
    "iter_server_events",
    "open_client",
    "read_full_response",
]
MAX_LINE_BYTES = 32 * 1024 * 1024


def open_client(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeouts: Timeouts | None = None,
    socket_path: str | None = None,
    proxied: bool = False,
) -> Client:
    """Make a client for this base URL, without connecting. Raises ValueError for a bad URL. `proxied` means that the
    environment names a proxy for `http://`; a server on this machine is reached without it."""
    address = parse_address(url, socket_path)
    if address.secure or (proxied and not address.local):
        from ollm.system.http.secure import SecureClient

        return SecureClient(address, dict(headers or {}), timeouts or Timeouts())
    return PlainClient(address, dict(headers or {}), timeouts or Timeouts())


async def iter_lines(chunks: AsyncGenerator[bytes, None], limit: int = MAX_LINE_BYTES) -> AsyncGenerator[bytes, None]:
    """Iterate over lines without their ending (LF or CRLF), including a last line without one."""
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


async def iter_server_events(
    chunks: AsyncGenerator[bytes, None], limit: int = MAX_LINE_BYTES
) -> AsyncGenerator[str, None]:
    """Iterate over the data of the events in a `text/event-stream`. The last one needs no empty line."""
    data: list[str] = []
    size = 0
    async with aclosing(iter_lines(chunks, limit)) as found:
        async for raw in found:
            if not raw:
                if data:
                    yield "\n".join(data)
                data, size = [], 0
                continue
            field, _, value = raw.decode("utf-8", "replace").removeprefix("\ufeff").partition(":")
            if field == "data":
                data.append(value.removeprefix(" "))
                size += len(raw)
                if size > limit:
                    raise TooLarge(f"an event is longer than {limit} bytes")
    if data:
        yield "\n".join(data)
