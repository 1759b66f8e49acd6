"""Servers at an address: streamable HTTP or server-sent events, with bounded answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ollm.domain.errors import OllmError
from ollm.extensions.mcp.results import find_root_error, summarize_error
from ollm.extensions.mcp.settings import SSE, McpServer

if TYPE_CHECKING:
    import httpx2

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
CONNECT_TIMEOUT_SECONDS = 10.0
LOGIN_STATUS = 401  # The SDK logs in and sends the message again.
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
) -> AbstractAsyncContextManager[Any]:
    """Open the streams of an SDK client. `note_refusal` gets every error status, `lost` the reason for a broken
    connection; `auth` is a login."""
    if server.transport == SSE:
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


def make_event_hooks(
    server: McpServer, note_refusal: Callable[[int], None], lost: Callable[[str], None] | None = None
) -> dict[str, list[Callable[..., Any]]]:
    """Make hooks for every request and response: check addresses, note refusals, limit lengths. `lost` gets the reason
    why a message was not delivered, which the SDK would only log for server-sent events."""

    async def note_status(response: Any) -> None:
        if response.status_code >= 400:
            note_refusal(response.status_code)
        is_message = response.request.headers.get("content-type") == "application/json"  # A login has another type.
        if lost and is_message and response.status_code >= 400 and response.status_code != LOGIN_STATUS:
            lost(f"it refused a message (HTTP {response.status_code})")

    async def check_request(request: Any) -> None:
        check_address(str(request.url), server)

    return {"request": [check_request], "response": [note_status, limit_response]}


def may_be_newer(status: int, error: BaseException) -> bool:
    """Return True if a server rejected the handshake with an answer, and not because a login is missing."""
    answered = status > 0 or type(find_root_error(error)).__name__ == "MCPError"
    return answered and status not in (401, 403)


async def limit_response(response: Any) -> None:
    """Limit the length of an answer; of an event stream, that of each line."""
    import httpx2

    events = response.headers.get("content-type", "").startswith("text/event-stream")
    stream = response.stream

    class LimitedBody(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for piece in stream:
                size = len(piece) - piece.rfind(b"\n") if events and b"\n" in piece else size + len(piece)
                if size > MAX_RESPONSE_BYTES:
                    raise httpx2.ReadError(f"its reply is larger than {MAX_RESPONSE_BYTES // 2**20} MiB")
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = LimitedBody()


SILENCE_TIMEOUT_SECONDS = 3600.0  # A stream may bring nothing for so long.


@asynccontextmanager
async def open_sse_transport(
    server: McpServer, note_refusal: Callable[[int], None], lost: Callable[[str], None], auth: Any
) -> AsyncIterator[Any]:
    import anyio
    import httpx2
    from mcp.client.sse import sse_client

    heard, reading = anyio.create_memory_object_stream[Any](0)

    def end(why: str) -> None:
        lost(why)
        heard.close()

    def make_client(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        hooks = make_event_hooks(server, note_refusal, end)
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, event_hooks=hooks)

    async def forward(send: Callable[[Any], Any]) -> str:
        async for message in messages:
            if isinstance(message, Exception):
                return summarize_error(message)
            await send(message)
        return "it closed its stream of events"

    limits = (CONNECT_TIMEOUT_SECONDS, SILENCE_TIMEOUT_SECONDS)
    opening = sse_client(server.url, server.headers, *limits, httpx_client_factory=make_client, auth=auth)
    async with opening as (messages, writing), reading, run_reader(forward, heard, lost):
        yield reading, writing


@asynccontextmanager
async def run_reader(
    read: Callable[[Callable[[Any], Any]], Awaitable[str]], heard: Any, lost: Callable[[str], None]
) -> AsyncIterator[Any]:
    """Run the reader of a server's messages, which sends them to `heard`. `lost` gets the reason for its end."""
    import anyio

    async def run() -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # This side closed its streams first.
            lost(await read(heard.send))
        heard.close()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        try:
            yield group
        finally:
            group.cancel_scope.cancel()
            heard.close()
