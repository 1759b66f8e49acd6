"""Routes for the web pages: login, one event stream for all sessions, and messages as sanitized HTML."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, TypeVar

import msgspec
from litestar import Request, delete, get, post
from litestar.datastructures import Cookie
from litestar.params import Parameter
from litestar.response import Response, Stream

from ollm.app.compare_page import render_newest
from ollm.daemon.auth import (
    LOGIN_SECONDS,
    PAGE_FILES,
    TICKET_SECONDS,
    Application,
    Receive,
    Scope,
    Send,
    WebAccess,
    belongs_to_user,
    get_cookie_name,
    get_port,
)
from ollm.daemon.bodies import (
    Accepted,
    DeviceLine,
    DeviceRights,
    LinkReply,
    LoginBody,
    LoginReply,
    PairBody,
    PairReply,
    RenderBody,
    RenderReply,
    TranscriptPage,
)
from ollm.daemon.devices import DEVICE_COOKIE, DEVICE_SECONDS, Device, find_address, require_local
from ollm.daemon.routes import EVENTS, EventsOperation, Limit, make_event_stream
from ollm.daemon.service import DaemonService
from ollm.daemon.transcript import prepare_rendering, read_transcript
from ollm.domain.errors import DeniedError, UsageError
from ollm.services.edit_ledger import compute_digest
from ollm.services.session_export.html import (
    COMPARISON_STYLE,
    STYLE_FILES,
    render_diff_as_html,
    render_markdown_as_html,
)
from ollm.system.terminal_text import escape_controls

V = TypeVar("V")
KINDS = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types ollm"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
ALL_STYLES, STYLES = (
    "all.css",
    ("colours.css", "transcript.css", "compare.css", "app.css"),
)  # One request is faster than four.
CHECKED, KEPT = "no-cache", "private, max-age=31536000, immutable"


def serve_pages(inner: Application) -> Application:
    """Serve the pages' files without the API's routing: a page requests many of them at once."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        found = None
        if scope["method"] == "GET" and (path == "/" or path.startswith(PAGE_FILES)):
            current, known = load_files()
            version, _, name = ("", "", "index.html") if path == "/" else path.removeprefix(PAGE_FILES).rpartition("/")
            found = known.get(name) if version in ("", current) else None
        if found is None:
            await inner(scope, receive, send)
        else:
            await send_file(scope, send, name, *found, KEPT if version else CHECKED)

    return answer


async def send_file(scope: Scope, send: Send, name: str, content: bytes, tag: str, caching: str) -> None:
    """Send the file, or 304 if the browser has it."""
    known = b",".join(value for name, value in scope["headers"] if name == b"if-none-match").decode("latin-1")
    same = tag in [one.strip().removeprefix("W/") for one in known.split(",")]
    kind = f"{KINDS['.' + name.rpartition('.')[2]]}; charset=utf-8"
    about = {} if same else {"content-type": kind, "content-length": str(len(content))}
    about |= {"service-worker-allowed": "/"} if name == "sw.js" else {}
    headers = {**HEADERS, "cache-control": caching, "etag": tag, **about}
    encoded = [(key.encode(), value.encode()) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": 304 if same else 200, "headers": encoded})
    await send({"type": "http.response.body", "body": b"" if same else content})


@cache
def load_files() -> tuple[str, dict[str, tuple[bytes, str]]]:
    """Load the pages' files once: a version of them all, and each one's content and ETag by name."""
    own = (files("ollm.daemon") / "web").iterdir()
    named = [file for file in (*own, *STYLE_FILES, COMPARISON_STYLE) if file.name.endswith(tuple(KINDS))]
    found = {file.name: file.read_bytes() for file in named}
    found[ALL_STYLES] = b"".join(found[name] for name in STYLES)
    version = compute_digest(b"".join(found[name] for name in sorted(found)))[:16]
    found["index.html"] = found["index.html"].replace(PAGE_FILES.encode(), f"{PAGE_FILES}{version}/".encode())
    return version, {name: (content, f'"{compute_digest(content)[:20]}"') for name, content in found.items()}


@post("/web/ticket", status_code=201)
async def create_ticket(web: WebAccess, request: Request[Any, Any, Any]) -> LinkReply:
    """A link for a browser, good once and for a minute. Over the Unix socket only."""
    if get_port(request.scope) is not None:
        raise DeniedError("Links are made over the Unix socket only.", action="Run `ollm web`.")
    link = await web.create_link()
    asyncio.get_running_loop().run_in_executor(None, prepare_rendering)
    return LinkReply(url=link, expires_in_seconds=TICKET_SECONDS)


@post("/web/login", status_code=200)
async def log_in(
    web: WebAccess, request: Request[Any, Any, Any], data: LoginBody, device: Device | None
) -> Response[LoginReply]:
    """Trade the ticket of a link for a cookie and the page's own token."""
    port = get_request_port(request)
    require_local(device, "A link is opened")
    if not belongs_to_user(request.scope):  # The process list shows the link while a browser starts.
        raise DeniedError("This link is for the user who made it.", action="Run `ollm web` as yourself.")
    secret, token = web.log_in(data.ticket, port)
    return make_login_reply(LoginReply(token=token), get_cookie_name(port), secret, LOGIN_SECONDS)


def make_login_reply(content: V, name: str, secret: str, seconds: int, *, secure: bool = False) -> Response[V]:
    """Make a reply with the cookie that goes with later requests; nobody keeps a copy of it."""
    cookie = Cookie(key=name, value=secret, secure=secure, httponly=True, samesite="strict", path="/", max_age=seconds)
    return Response(content, cookies=[cookie], headers={"cache-control": "no-store"})


@post("/web/logout", status_code=200)
async def log_out(web: WebAccess, request: Request[Any, Any, Any], device: Device | None) -> Accepted:
    """End the login of the page that asks, or the pairing of its device."""
    if device:
        web.devices.revoke(device.name)
        request.scope["device"] = None  # type: ignore[typeddict-unknown-key]  # so that it gets this answer
    else:
        web.log_out(get_request_port(request), dict(request.headers))
    return Accepted(accepted=True)


def get_request_port(request: Request[Any, Any, Any]) -> int:
    port = get_port(request.scope)
    if port is None:
        raise UsageError("A browser logs in over TCP.", action="Run `ollm web`.")
    return port


@post("/web/codes", status_code=201)
async def create_code(web: WebAccess, request: Request[Any, Any, Any], data: DeviceRights) -> PairReply:
    """A code that pairs a device, good once and for a minute. Over the Unix socket only."""
    if get_port(request.scope) is not None:
        raise DeniedError("Codes are made over the Unix socket only.", action="Run `ollm web --pair`.")
    return web.devices.make_code(data)


@post("/web/pair", status_code=200)
async def pair_device(web: WebAccess, request: Request[Any, Any, Any], data: PairBody) -> Response[DeviceRights]:
    """Trade a code for the key of a device: a cookie that its use renews."""
    kind = "phone" if "Mobi" in request.headers.get("user-agent", "") else "browser"
    key, device = web.devices.pair(data.code, kind, find_address(request.scope, request.headers))
    return make_device_reply(key, device)


@get("/web/device")
async def show_device(request: Request[Any, Any, Any], device: Device | None) -> Response[DeviceRights]:
    """The paired device that asks, and what it may do; its cookie counts for another thirty days."""
    if device is None:
        raise DeniedError("This is not a paired device.")
    return make_device_reply(request.cookies[DEVICE_COOKIE], device)


def make_device_reply(key: str, device: Device) -> Response[DeviceRights]:
    rights = DeviceRights(name=device.name, read_only=device.read_only, no_grants=device.no_grants)
    return make_login_reply(rights, DEVICE_COOKIE, key, DEVICE_SECONDS, secure=True)


@get("/web/devices")
async def list_devices(web: WebAccess, device: Device | None) -> list[DeviceLine]:
    """The paired devices."""
    require_local(device, "Devices are listed")
    return [msgspec.convert(one, DeviceLine, from_attributes=True) for one in web.devices.list_valid()]


@delete("/web/devices")
async def revoke_devices(web: WebAccess, device: Device | None, name: str = "") -> None:
    """Revoke the device of this name; without one, all of them."""
    require_local(device, "Devices are revoked")
    web.devices.revoke(name)


@get("/events", responses={200: EVENTS}, operation_class=EventsOperation)
async def all_events(
    service: DaemonService,
    sessions: str = "",
    last_event_id: Annotated[str | None, Parameter(header="Last-Event-ID")] = None,
) -> Stream:
    """Everything that happens in the sessions that are open here, or in those named (ids with commas between).

    It goes on after Last-Event-ID, or begins with `reset` and the events of running turns."""
    named = frozenset(one for one in sessions.lower().split(",") if one)
    service.hub.make_room_for_client()
    return make_event_stream(service.hub.follow_all(last_event_id, named), **{"x-ollm-pages": load_files()[0]})


@get("/sessions/{session_id:str}/transcript")
async def show_transcript(
    service: DaemonService,
    session: str,
    before: Annotated[int | None, Parameter(ge=1)] = None,
    after: Annotated[int, Parameter(ge=0)] = 0,
    limit: Limit = 50,
) -> TranscriptPage:
    """A stretch of the archive as HTML, oldest first, between messages `after` and `before`."""
    return await service.run_apart(lambda process: read_transcript(process, session, before, after, limit))


@get("/comparisons")
async def list_comparisons(service: DaemonService) -> list[RenderReply]:
    """The newest comparison of models of each workspace, as HTML."""
    return await service.run_apart(
        lambda process: [RenderReply(html=html) for html in render_newest(process.home.root)]
    )


@post("/web/render", status_code=200)
async def render(data: RenderBody) -> RenderReply:
    """Markdown, or a diff, as HTML."""
    html = "".join(render_diff_as_html(data.text)) if data.diff else render_markdown_as_html(data.text)
    return RenderReply(html=escape_controls(html))
