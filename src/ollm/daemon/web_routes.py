"""The routes of the pages: logging in, one stream for all sessions, and texts as HTML that was cleaned here."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from litestar import Request, get, post
from litestar.datastructures import Cookie
from litestar.params import Parameter
from litestar.response import Response, Stream

from ollm.daemon.bodies import (
    Accepted,
    LinkReply,
    LoginBody,
    LoginReply,
    RenderBody,
    RenderReply,
    TranscriptPage,
)
from ollm.daemon.page_files import make_version
from ollm.daemon.routes import Limit
from ollm.daemon.service import DaemonService, parse_id
from ollm.daemon.transcript import prepare_rendering
from ollm.daemon.web_access import LOGIN_SECONDS, TICKET_SECONDS, WebAccess, get_cookie_name
from ollm.domain.errors import DeniedError, UsageError
from ollm.services.session_export.html_markdown import render_markdown_as_html
from ollm.system.terminal_text import escape_controls

MAX_NAMED_SESSIONS = 100


@post("/web/ticket", status_code=201)
async def create_ticket(web: WebAccess, request: Request[Any, Any, Any]) -> LinkReply:
    """A link for a browser, good once and for a minute. Over the Unix socket only."""
    if find_port(request) is not None:
        raise DeniedError("Links are made over the Unix socket only.", action="Run `ollm web`.")
    link = await web.create_link()
    asyncio.get_running_loop().run_in_executor(None, prepare_rendering)
    return LinkReply(url=link, expires_in_seconds=TICKET_SECONDS)


@post("/web/login", status_code=200)
async def log_in(web: WebAccess, request: Request[Any, Any, Any], data: LoginBody) -> Response[LoginReply]:
    """Trade the ticket of a link for a cookie and the page's own token."""
    port = get_request_port(request)
    made = web.log_in(data.ticket, port)
    cookie = Cookie(
        key=get_cookie_name(port),
        value=made.cookie,
        httponly=True,
        samesite="strict",
        path="/",
        max_age=LOGIN_SECONDS,
    )
    return Response(LoginReply(token=made.page_token), cookies=[cookie], headers={"cache-control": "no-store"})


@post("/web/logout", status_code=200)
async def log_out(web: WebAccess, request: Request[Any, Any, Any]) -> Accepted:
    """End the login of the page that asks."""
    web.log_out(get_request_port(request), dict(request.headers))
    return Accepted(accepted=True)


def get_request_port(request: Request[Any, Any, Any]) -> int:
    port = find_port(request)
    if port is None:
        raise UsageError("A browser logs in over TCP.", action="Run `ollm web`.")
    return port


def find_port(request: Request[Any, Any, Any]) -> int | None:
    """The TCP port a request came in by; None on the Unix socket."""
    server = request.scope.get("server")
    return server[1] if server else None


@get("/events")
async def all_events(
    service: DaemonService,
    sessions: Annotated[str, Parameter(max_length=40 * MAX_NAMED_SESSIONS)] = "",
    last_event_id: Annotated[str | None, Parameter(header="Last-Event-ID")] = None,
) -> Stream:
    """Everything that happens in the sessions that are open here, or in those named (ids with commas between).

    It goes on after Last-Event-ID, or begins with `reset` and the events of running turns."""
    named = frozenset(parse_id(one) for one in sessions.split(",") if one)
    service.hub.make_room_for_client()
    reader = service.hub.follow_all(last_event_id, named)
    return Stream(
        reader, media_type="text/event-stream", headers={"cache-control": "no-store", "x-ollm-pages": make_version()}
    )


@get("/sessions/{session_id:str}/transcript")
async def show_transcript(
    service: DaemonService,
    session_id: str,
    before: Annotated[int | None, Parameter(ge=1)] = None,
    after: Annotated[int, Parameter(ge=0)] = 0,
    limit: Limit = 50,
) -> TranscriptPage:
    """A stretch of the archive as HTML, oldest first, between messages `after` and `before`."""
    return await service.read_transcript(parse_id(session_id), before, after, limit)


@post("/web/render", status_code=200)
async def render(data: RenderBody) -> RenderReply:
    """Markdown as HTML, as a page shows it."""
    return RenderReply(html=escape_controls(render_markdown_as_html(data.text)))


WEB_HANDLERS = [create_ticket, log_in, log_out, all_events, show_transcript, render]
