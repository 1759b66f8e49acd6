"""Servers at an address: streamable HTTP or server-sent events, with bounded answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ollm.domain.errors import OllmError
from ollm.extensions.mcp.results import find_root_error, mend_message, summarize_error
from ollm.extensions.mcp.settings import SSE, McpServer

if TYPE_CHECKING:
    import httpx2

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
CONNECT_TIMEOUT_SECONDS = 10.0
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


class PlainAddressError(OllmError):
    """A server gave an unencrypted address for its login."""


def check_address(url: str, server: McpServer) -> None:
    """Refuse a plain http address that is neither on this machine nor configured by the person: a login would send its
    key there."""
    parts, own = urlsplit(url), urlsplit(server.url)
    configured = (parts.scheme, parts.netloc) == (own.scheme, own.netloc)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK_HOSTS and not configured:
        where = f"{parts.scheme}://{parts.netloc}"
        raise PlainAddressError(f"{server.name} names {where} for its login, which is not encrypted; it was not used.")


def open_address(
    server: McpServer,
    note_refusal: Callable[[int], None],
    lost: Callable[[str], None],
    auth: Any = None,
    *,
    older: bool = False,
) -> AbstractAsyncContextManager[Any]:
    """Open the streams of an SDK client. `note_refusal` gets every error status, `lost` the reason for a broken
    connection; `auth` is a login; `older` is for servers that stream events from a separate address."""
    if server.transport == SSE or older:
        return open_sse_transport(server, note_refusal, lost, auth)
    return open_http_transport(server, note_refusal, auth)


@asynccontextmanager
async def open_http_transport(server: McpServer, note_refusal: Callable[[int], None], auth: Any) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    timeout = httpx2.Timeout(CONNECT_TIMEOUT_SECONDS, read=max(server.timeout, CONNECT_TIMEOUT_SECONDS))
    hooks = make_event_hooks(server, note_refusal)
    async with (
        httpx2.AsyncClient(headers=server.headers, timeout=timeout, event_hooks=hooks, auth=auth) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


def make_event_hooks(server: McpServer, note_refusal: Callable[[int], None]) -> dict[str, list[Callable[..., Any]]]:
    """Make hooks for every request and response: check addresses, note refusals, limit lengths."""

    async def note_status(response: Any) -> None:
        if response.status_code >= 400:
            note_refusal(response.status_code)

    async def check_request(request: Any) -> None:
        check_address(str(request.url), server)

    return {"request": [check_request], "response": [note_status, limit_response]}


def may_be_newer(status: int, error: BaseException) -> bool:
    """Return True if a server rejected the handshake with an answer, and not because a login is missing."""
    answered = status > 0 or type(find_root_error(error)).__name__ == "MCPError"
    return answered and status not in (401, 403)


def may_be_older(status: int) -> bool:
    """Return True if the status suggests an older server that streams events from a separate address."""
    return status in (400, 404, 405)


async def limit_response(response: Any) -> None:
    """Limit the length of an answer and repair it for the SDK. Event streams are limited per event."""

    events = response.headers.get("content-type", "").startswith("text/event-stream")
    if not (events and response.headers.get("content-encoding")):
        response.stream = make_mended_body(response.stream, MAX_RESPONSE_BYTES, events=events)


EVENT_DATA = b"data:"


def mend_body(body: bytes) -> bytes:
    """Repair a message that the SDK cannot read; leave others unchanged."""
    from pydantic_core import from_json

    try:
        from_json(body)
    except ValueError:
        mended = mend_message(body)
        return body if mended is None else json.dumps(mended).encode()
    return body


def mend_line(line: bytes) -> bytes:
    """Repair the message in a line of an event stream."""
    if not line.startswith(EVENT_DATA) or not (data := line[len(EVENT_DATA) :].strip()).startswith(b"{"):
        return line
    mended = mend_body(data)
    return line if mended is data else EVENT_DATA + b" " + mended + b"\n"


def make_mended_body(stream: Any, max_bytes: int, *, events: bool) -> httpx2.AsyncByteStream:
    """Wrap a body: one document of at most `max_bytes`, or events with lines of at most that."""
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


SILENCE_TIMEOUT_SECONDS = 3600.0  # seconds a stream may bring nothing
GREETING_TIMEOUT_SECONDS = 5.0  # seconds until the stream names the address, where the older way is only a guess


@asynccontextmanager
async def open_sse_transport(
    server: McpServer, note_refusal: Callable[[int], None], lost: Callable[[str], None], auth: Any
) -> AsyncIterator[Any]:
    import anyio
    from mcp.client.sse import sse_client

    heard, reading = anyio.create_memory_object_stream[Any](0)

    def end(why: str) -> None:
        lost(why)
        heard.close()

    def make_client(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        hooks = make_event_hooks(server, note_refusal)
        return make_reporting_client(end, headers=headers, timeout=timeout, auth=auth, event_hooks=hooks)

    async def forward(messages: Any) -> None:
        try:
            async for message in messages:
                await heard.send(message)
            end("it closed its stream of events")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # this side let go

    limits = (CONNECT_TIMEOUT_SECONDS, SILENCE_TIMEOUT_SECONDS)
    opening = sse_client(server.url, server.headers, *limits, httpx_client_factory=make_client, auth=auth)
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(None if server.transport == SSE else GREETING_TIMEOUT_SECONDS):
            messages, writing = await stack.enter_async_context(opening)
        group = await stack.enter_async_context(anyio.create_task_group())
        group.start_soon(forward, messages)
        try:
            yield reading, writing
        finally:
            group.cancel_scope.cancel()
            heard.close()
            reading.close()


def make_reporting_client(report: Callable[[str], None], **options: Any) -> httpx2.AsyncClient:
    """Make a client that reports undelivered messages, which the SDK would only log."""
    import httpx2

    class ReportingClient(httpx2.AsyncClient):
        async def send(self, request: Any, **more: Any) -> Any:
            try:
                answer = await super().send(request, **more)
            except httpx2.HTTPError as error:
                report(f"it cannot be reached: {summarize_error(error)}")
                raise
            if request.method == "POST" and answer.status_code >= 400:
                report(f"it refused a message (HTTP {answer.status_code})")
            return answer

    return ReportingClient(**options)
