"""API routes for sessions (W)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlencode

import msgspec
from litestar import delete, get, patch, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import OpenAPIMediaType, OpenAPIResponse, OpenAPIType, Operation, Reference, Schema
from litestar.params import Parameter
from litestar.response import Response, Stream

from ollm import __version__
from ollm.app.process import ProcessScope
from ollm.daemon.bodies import (
    MAX_PATH_CHARS,
    NO_PATH_FORMAT,
    Accepted,
    AnswerBody,
    AttachmentBody,
    ChangeBody,
    CommandBody,
    CreatedReply,
    FoundMessage,
    Health,
    HistoryMessage,
    InitBody,
    InitReply,
    ListedSession,
    MessageBody,
    OpenBody,
    OpenReply,
    SessionLine,
    ShellBody,
    ShellReply,
    TurnReply,
    WorkspaceLine,
)
from ollm.daemon.devices import LOCAL_COMMANDS, Device, require_local
from ollm.daemon.event_log import EventReader, StreamReset, parse_event_number
from ollm.daemon.hub import DaemonSession
from ollm.daemon.service import BadPathError, DaemonService, parse_workspace
from ollm.domain.errors import BusyError, DeniedError, NotFoundError
from ollm.domain.events import AnyEvent
from ollm.domain.session import Session
from ollm.domain.tools import ConfirmationDetails
from ollm.runtime.base import CommandReply, Status
from ollm.runtime.session import load_history_page
from ollm.services.session_export import render_export

Limit = Annotated[int, Parameter(ge=1, le=1000)]
Folder = Annotated[str, Parameter(max_length=MAX_PATH_CHARS, schema_extra=NO_PATH_FORMAT)]
MEDIA = {"json": "application/json", "markdown": "text/markdown", "html": "text/html"}


EVENTS = ResponseSpec(
    AnyEvent | StreamReset,  # type: ignore[arg-type]  # a union is a type here
    media_type="text/event-stream",
    description="Server-sent events: `data` is JSON, `event` its type, `id` its number.",
    generate_examples=False,
)


@dataclass
class EventsOperation(Operation):
    """Describes each event of a stream as it is sent: Litestar describes the JSON in it."""

    def __post_init__(self) -> None:
        content = ((self.responses or {})["200"].content or {})["text/event-stream"]  # type: ignore[union-attr]
        text = Schema(type=OpenAPIType.STRING)
        data = Schema(type=OpenAPIType.STRING, content_media_type="application/json", content_schema=content.schema)
        fields: dict[str, Reference | Schema] = {"id": text, "event": text, "data": data}
        content.schema = Schema(type=OpenAPIType.OBJECT, properties=fields, required=["event", "data"])


@dataclass
class ExportOperation(Operation):
    """Describes the three formats of an export; Litestar describes one."""

    def __post_init__(self) -> None:
        content = {media: OpenAPIMediaType(schema=Schema(type=OpenAPIType.STRING)) for media in MEDIA.values()}
        content["application/json"] = OpenAPIMediaType(schema=Reference(ref="#/components/schemas/Session"))
        self.responses = {**(self.responses or {}), "200": OpenAPIResponse("The session.", content=content)}


def make_event_stream(reader: EventReader, **headers: str) -> Stream:
    return Stream(reader, media_type="text/event-stream", headers={"cache-control": "no-store", **headers})


@get("/health")
async def health(service: DaemonService) -> Health:
    return Health(status="ok", version=__version__, sessions=service.hub.count)


@post("/init", status_code=200)
async def init(service: DaemonService, data: InitBody) -> InitReply:
    """Return the trust and the sessions of a workspace."""
    workspace = parse_workspace(data.workspace_path)
    sessions = await service.list_workspace_sessions(workspace)
    return InitReply(workspace_path=str(workspace), trusted=service.make_process(workspace).trusted, sessions=sessions)


@get("/workspaces/{encoded_path:str}/sessions")
async def workspace_sessions(service: DaemonService, encoded_path: str) -> list[SessionLine]:
    """Sessions of a workspace, newest first. The path is percent-encoded, slashes too."""
    try:
        workspace = parse_workspace(unquote(encoded_path, errors="surrogateescape"))
    except BadPathError as error:
        raise NotFoundError(error.message, action=error.action) from error
    return await service.list_workspace_sessions(workspace)


@get("/workspaces")
async def list_workspaces(service: DaemonService) -> list[WorkspaceLine]:
    """Every folder in which a session was held, last active first."""
    found: dict[str, WorkspaceLine] = {}
    for line in await service.list_summaries():
        if (path := line["workspace"]) and "archive" not in line:
            known = found.get(path) or WorkspaceLine(workspace_path=path, last_activity=line["lastActivity"])
            found[path] = msgspec.structs.replace(known, sessions=known.sessions + 1)
    return list(found.values())


@get("/sessions")
async def list_sessions(
    service: DaemonService,
    limit: Limit = 50,
    offset: Annotated[int, Parameter(ge=0)] = 0,
    q: Annotated[str, Parameter(max_length=1000)] = "",
    workspace: Annotated[str, Parameter(max_length=MAX_PATH_CHARS)] = "",
    status: Literal["all", "active", "closed", "archived", "unarchived", "chats"] = "all",
) -> Response[list[ListedSession]]:
    """A page of all sessions, those that wait for an answer first, then last active first; `x-total-count` says how
    many there are, `x-waiting-count` how many of all wait.

    `q` narrows it to those whose title, model or workspace has all its words; `chats` leaves out one-shot sessions. A
    session that is open here has `open`, `running` and the number of `questions` that wait."""
    lines = [{**line, **service.hub.describe(line["sessionId"])} for line in await service.list_summaries()]
    found = sorted(filter_sessions(lines, q, workspace, status), key=lambda line: not line["questions"])
    waiting = sum(line["questions"] > 0 for line in lines)
    headers = {"x-total-count": str(len(found)), "x-waiting-count": str(waiting)}
    if offset + limit < len(found):
        page = {"limit": limit, "offset": offset + limit, "q": q, "workspace": workspace, "status": status}
        headers["link"] = f'</sessions?{urlencode(page)}>; rel="next"'
    return Response(msgspec.convert(found[offset : offset + limit], list[ListedSession]), headers=headers)


def filter_sessions(lines: list[dict[str, Any]], q: str, workspace: str, status: str) -> list[dict[str, Any]]:
    words = q.casefold().split()

    def fits(line: dict[str, Any]) -> bool:
        text = f"{line['title']} {line['model']} {line['workspace'] or ''} {line['sessionId']}".casefold()
        named = not workspace or line["workspace"] == workspace
        kinds = ["archived"] if line["status"] == "archived" else ["unarchived", line["status"]]
        kinds += ["chats"] if "unarchived" in kinds and line["origin"] != "one-shot" else []
        return named and status in ("all", *kinds) and all(word in text for word in words)

    return [line for line in lines if fits(line)]


@post("/sessions", status_code=201)
async def open_session(service: DaemonService, data: OpenBody, device: Device | None) -> OpenReply:
    """Start a session, or resume the one that is named."""
    return await service.open(data, device)


@get("/sessions/{session_id:str}")
async def show_session(service: DaemonService, session: str) -> Session:
    return await service.read_session(session)


@get("/sessions/{session_id:str}/status")
async def session_status(held: DaemonSession) -> Status:
    """Return the status line of an open session."""
    status = await held.conversation.status()
    running = held.turn_after if held.working else None
    message = held.turn_message if held.working else 0
    return msgspec.structs.replace(
        status,
        turn_after=running,
        turn_message=message,
        last_event=held.log.last,
        questions=tuple(held.open_questions.values()),
        turn_notices=tuple(held.turn_notices),
    )


@patch("/sessions/{session_id:str}")
async def change_session(service: DaemonService, session: str, data: ChangeBody) -> Session:
    return await service.change(session, data)


@delete("/sessions/{session_id:str}")
async def end_session(service: DaemonService, session: str, erase: bool = False) -> None:
    """Close a session; with erase=true delete it for good."""
    await service.close(session, erase=erase)


@post("/sessions/{session_id:str}/attachments", status_code=201)
async def attach(held: DaemonSession, data: AttachmentBody) -> CreatedReply:
    """A text or a picture for the next message, whole or piece by piece."""
    return CreatedReply(id=held.attachments.add(data))


@post(
    "/sessions/{session_id:str}/messages",
    status_code=200,
    responses={200: EVENTS, 202: ResponseSpec(TurnReply, description="The turn began.", generate_examples=False)},
    operation_class=EventsOperation,
)
async def send_message(
    service: DaemonService,
    held: DaemonSession,
    data: MessageBody,
    device: Device | None,
    prefer: Annotated[str, Parameter(header="Prefer")] = "",
) -> Response[TurnReply] | Stream:
    """Begin a turn; its events follow as server-sent events, up to turn-finished. Going away stops nothing.

    With `Prefer: respond-async` the answer is 202 at once, and the events are on the other streams."""
    sender = device.name if device else ""
    if "respond-async" in prefer:
        after = await service.hub.start_turn(held, data, sender)
        headers = {"preference-applied": "respond-async"}
        return Response(TurnReply(accepted=True, after=after), status_code=202, headers=headers)
    service.hub.make_room_for_client()
    before = await service.hub.start_turn(held, data, sender)
    return make_event_stream(held.log.open_reader(before, one_turn=True))


@get("/sessions/{session_id:str}/events", responses={200: EVENTS}, operation_class=EventsOperation)
async def session_events(
    service: DaemonService,
    held: DaemonSession,
    last_event_id: Annotated[str | None, Parameter(header="Last-Event-ID")] = None,
) -> Stream:
    """Everything that happens in a session; Last-Event-ID says what is known already."""
    service.hub.make_room_for_client()
    known = parse_event_number(last_event_id) or 0 if last_event_id else held.log.last
    return make_event_stream(held.log.open_reader(known))


@post("/sessions/{session_id:str}/commands", status_code=200)
async def run_command(held: DaemonSession, data: CommandBody, device: Device | None) -> CommandReply:
    """Run a slash command. A paired device may not run those that give rights or write where they are told to."""
    name = data.name.removeprefix("/")
    if any([name, *data.arguments.split()][: len(one)] == one for one in LOCAL_COMMANDS):
        require_local(device, f"/{name} works")
    return await held.conversation.command(name, data.arguments)


@post("/sessions/{session_id:str}/shell", status_code=200)
async def run_shell(held: DaemonSession, data: ShellBody, device: Device | None) -> ShellReply:
    """Run a shell command of the person; policy may ask first. The session's record does not hold it."""
    require_local(device, "Commands of your own run")
    return await held.run_shell(data.command)


@get("/sessions/{session_id:str}/shell")
async def list_outputs(held: DaemonSession) -> list[ShellReply]:
    """Outputs of the person's shell commands that wait for the next message."""
    return held.list_outputs()


@post("/sessions/{session_id:str}/confirmations/{correlation_id:str}", status_code=200)
async def answer(held: DaemonSession, correlation_id: str, data: AnswerBody, device: Device | None) -> Accepted:
    """Answer a question; the first answer wins."""
    if correlation_id not in held.question_ids:
        raise NotFoundError(f"No question {correlation_id[:80]} in this session.")
    question = held.open_questions.get(correlation_id)
    if device and question and data.approved:
        check_approval(device, question.details, data, (await held.conversation.status()).sandbox)
    said = msgspec.structs.replace(data, device=device.name if device else "")
    if not await held.conversation.respond(correlation_id, said):
        raise BusyError("This question was already answered or withdrawn.")
    return Accepted(accepted=True)


def check_approval(device: Device, details: ConfirmationDetails, data: AnswerBody, level: str) -> None:
    """Raise DeniedError for a yes that this device may not give. `level` is that of the sandbox."""
    unboxed = details.command and level in ("", "none")
    if unboxed or details.locked or (details.rule and details.rule.layer == "sandbox"):
        require_local(device, "Protected files, and commands outside the sandbox, are approved")
    if device.no_grants and (data.scope != "once" or data.prefix or (data.text and not details.typed)):
        raise DeniedError(f"{device.name} may answer once, but set no rule.", action="Answer with a plain yes or no.")


@post("/sessions/{session_id:str}/cancel", status_code=200)
async def cancel(held: DaemonSession) -> Accepted:
    running = held.running
    await held.cancel()
    return Accepted(accepted=running)


@post("/sessions/{session_id:str}/typing", status_code=200)
async def note_typing(service: DaemonService, session: str) -> Accepted:
    """Note that a person is typing: idle work stops."""
    held = service.hub.find(session)
    if held is not None:
        held.conversation.note_typing()
    return Accepted(accepted=held is not None)


@get("/sessions/{session_id:str}/history")
async def history(
    service: DaemonService,
    session: str,
    before: Annotated[int | None, Parameter(ge=1)] = None,
    limit: Limit = 50,
) -> list[HistoryMessage]:
    """A page of the archive, oldest first, ending before message `before`."""
    page = await service.run_apart(
        lambda process: load_history_page(lambda part: process.session_files.read(session, part), before, limit)
    )
    return msgspec.convert(page, list[HistoryMessage])


@get("/sessions/{session_id:str}/export", operation_class=ExportOperation)
async def export(
    service: DaemonService,
    session: str,
    format: Literal["json", "markdown", "html"] = "json",  # noqa: A002 - errors name the query by it
) -> Response[bytes]:
    def render(process: ProcessScope) -> bytes:
        with process.session_files.open_reader(session) as reader:
            return b"".join(render_export(reader, format))

    return Response(await service.run_apart(render), media_type=MEDIA[format])


@get("/search")
async def search(
    service: DaemonService, q: Annotated[str, Parameter(min_length=1, max_length=10_000)], limit: Limit = 20
) -> list[FoundMessage]:
    return msgspec.convert(await service.search(q, limit), list[FoundMessage])
