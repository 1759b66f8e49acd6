"""A server at an address that speaks the older way: one long stream of events, and an address it names for messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from ollm.extensions.mcp.http import CONNECT_TIMEOUT_SECONDS, make_event_hooks
from ollm.extensions.mcp.results import summarize_error
from ollm.extensions.mcp.settings import SSE, McpServer

if TYPE_CHECKING:
    import httpx2

SILENCE_TIMEOUT_SECONDS = 3600.0  # seconds a stream may bring nothing
GREETING_TIMEOUT_SECONDS = 5.0  # seconds until the stream names the address, where the older way is only a guess


@asynccontextmanager
async def open_sse_transport(
    server: McpServer, note_refusal: Callable[[int], None], lost: Callable[[str], None], auth: Any = None
) -> AsyncIterator[Any]:
    """The streams an SDK client speaks over. `lost` hears why nothing more will come or can be said."""
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
    """A client that reports a message which did not reach the server: the SDK would log it and wait for the answer."""
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
