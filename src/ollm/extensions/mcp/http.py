"""A server at an address, over streamable HTTP; what it may send in one answer is bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from ollm.domain.errors import OllmError
from ollm.extensions.mcp.results import find_root_error
from ollm.extensions.mcp.settings import McpServer

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
CONNECT_TIMEOUT_SECONDS = 10.0
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


class PlainAddressError(OllmError):
    """A server names an address for its login that would be spoken to where others can listen."""


def check_address(url: str, server: McpServer) -> None:
    """Refuse a plain http address that is neither on this machine nor the one the person configured: what a login sends
    there is a key."""
    parts, own = urlsplit(url), urlsplit(server.url)
    configured = (parts.scheme, parts.netloc) == (own.scheme, own.netloc)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK_HOSTS and not configured:
        where = f"{parts.scheme}://{parts.netloc}"
        raise PlainAddressError(f"{server.name} names {where} for its login, which is not encrypted; it was not used.")


@asynccontextmanager
async def open_http_transport(
    server: McpServer, note_refusal: Callable[[int], None], auth: Any = None
) -> AsyncIterator[Any]:
    """The streams an SDK client speaks over. `note_refusal` hears every status of refusal; `auth` is a login."""
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
    """What is done with every request and answer: addresses checked, refusals noted, lengths bounded."""

    async def note_status(response: Any) -> None:
        if response.status_code >= 400:
            note_refusal(response.status_code)

    async def check_request(request: Any) -> None:
        check_address(str(request.url), server)

    return {"request": [check_request], "response": [note_status, limit_response]}


def may_be_newer(status: int, error: BaseException) -> bool:
    """Whether a server that refused the handshake answered at all, and not because a login is missing."""
    answered = status > 0 or type(find_root_error(error)).__name__ == "MCPError"
    return answered and status not in (401, 403)


def may_be_older(status: int) -> bool:
    """Whether a server refused the handshake as those do that stream events from an address of their own."""
    return status in (400, 404, 405)


async def limit_response(response: Any) -> None:
    """Let an answer be no longer than the limit, and mend what the SDK could not read in it; a stream of events has
    limits of its own, event by event."""
    from ollm.extensions.mcp.http_bodies import make_mended_body

    events = response.headers.get("content-type", "").startswith("text/event-stream")
    if not (events and response.headers.get("content-encoding")):
        response.stream = make_mended_body(response.stream, MAX_RESPONSE_BYTES, events=events)
