"""The API, route by route (W). Each says what it takes and gives; the service does it."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlencode

from litestar import delete, get, patch, post
from litestar.params import Parameter
from litestar.response import Response, Stream

from ollm import __version__
from ollm.daemon.bodies import (
    Accepted,
    AnswerBody,
    AttachmentBody,
    AttachmentReply,
    ChangeBody,
    CheckpointLine,
    CommandBody,
    Health,
    InitBody,
    InitReply,
    MessageBody,
    OpenBody,
    OpenReply,
    RestoreBody,
    RestoreReply,
    SessionLine,
    SnapshotReply,
    TurnReply,
    WorkspaceLine,
)
from ollm.daemon.checkpoints import CheckpointService, SnapshotService
from ollm.daemon.event_log import EventFrame
from ollm.daemon.service import DaemonService, parse_id
from ollm.domain.tools import ConfirmationAnswer
from ollm.runtime.base import CommandReply, Status

Limit = Annotated[int, Parameter(ge=1, le=1000)]
MessageNumber = Annotated[int, Parameter(ge=1, le=10**9)]
MAX_NUMBER_DIGITS = 18
MEDIA = {"json": "application/json", "markdown": "text/markdown", "html": "text/html"}


def make_event_stream(frames: AsyncIterable[EventFrame]) -> Stream:
    sent = (frame.data async for frame in frames)
    return Stream(sent, media_type="text/event-stream", headers={"cache-control": "no-store"})


@get("/health")
async def health(service: DaemonService) -> Health:
    return Health(status="ok", version=__version__, sessions=service.hub.count)


@post("/init", status_code=200)
async def init(service: DaemonService, data: InitBody) -> InitReply:
    """Who this workspace is, and the sessions it has."""
    return await service.init(data.workspace_path)


@get("/workspaces/{encoded_path:str}/sessions")
async def workspace_sessions(service: DaemonService, encoded_path: str) -> list[SessionLine]:
    """Sessions of a workspace, newest first. The path is percent-encoded, slashes too."""
    return await service.list_workspace_sessions(unquote(encoded_path, errors="surrogateescape"))


@get("/workspaces")
async def list_workspaces(service: DaemonService) -> list[WorkspaceLine]:
    """Every folder in which a session was held, last active first."""
    return await service.list_workspaces()


@get("/sessions")
async def list_sessions(
    service: DaemonService,
    limit: Limit = 50,
    offset: Annotated[int, Parameter(ge=0)] = 0,
    q: Annotated[str, Parameter(max_length=1000)] = "",
    workspace: Annotated[str, Parameter(max_length=4096)] = "",
    status: Literal["all", "active", "closed", "archived", "unarchived"] = "all",
) -> Response[list[dict[str, Any]]]:
    """A page of all sessions, last active first; `x-total-count` says how many there are.

    `q` narrows it to those whose title, model or workspace has all its words. A session that is open here has `open`,
    `running` and the number of `questions` that wait."""
    found = filter_sessions(await service.list_live_summaries(), q, workspace, status)
    headers = {"x-total-count": str(len(found))}
    if offset + limit < len(found):
        same = (
            urlencode({"q": q, "workspace": workspace, "status": status}) if q or workspace or status != "all" else ""
        )
        link = f"/sessions?limit={limit}&offset={offset + limit}{'&' if same else ''}{same}"
        headers["link"] = f'<{link}>; rel="next"'
    return Response(found[offset : offset + limit], headers=headers)


def filter_sessions(lines: list[dict[str, Any]], q: str, workspace: str, status: str) -> list[dict[str, Any]]:
    words = q.casefold().split()

    def fits(line: dict[str, Any]) -> bool:
        text = f"{line['title']} {line['model']} {line['workspace'] or ''} {line['sessionId']}".casefold()
        named = not workspace or line["workspace"] == workspace
        kind = "archived" if line["status"] == "archived" else "unarchived"
        return named and status in ("all", line["status"], kind) and all(word in text for word in words)

    return [line for line in lines if fits(line)]


@post("/sessions", status_code=201)
async def open_session(service: DaemonService, data: OpenBody) -> OpenReply:
    """Start a session, or resume the one that is named."""
    return await service.open(data)


@get("/sessions/{session_id:str}")
async def show_session(service: DaemonService, session_id: str) -> dict[str, Any]:
    return await service.read_session(parse_id(session_id))


@get("/sessions/{session_id:str}/status")
async def session_status(service: DaemonService, session_id: str) -> Status:
    """Return the status line of an open session."""
    return await service.get_status(parse_id(session_id))


@patch("/sessions/{session_id:str}")
async def change_session(service: DaemonService, session_id: str, data: ChangeBody) -> dict[str, Any]:
    return await service.change(parse_id(session_id), data)


@delete("/sessions/{session_id:str}")
async def end_session(service: DaemonService, session_id: str, erase: bool = False) -> None:
    """Close a session; with erase=true delete it for good."""
    await service.close(parse_id(session_id), erase=erase)


@post("/sessions/{session_id:str}/attachments", status_code=201)
async def attach(service: DaemonService, session_id: str, data: AttachmentBody) -> AttachmentReply:
    """A text or a picture for the next message, whole or piece by piece."""
    return AttachmentReply(id=service.hub.get(parse_id(session_id)).attachments.add(data))


@post("/sessions/{session_id:str}/messages", status_code=200)
async def send_message(
    service: DaemonService,
    session_id: str,
    data: MessageBody,
    prefer: Annotated[str, Parameter(header="Prefer")] = "",
) -> Response[TurnReply] | Stream:
    """Begin a turn; its events follow as server-sent events, up to turn-finished. Going away stops nothing.

    With `Prefer: respond-async` the answer is 202 at once, and the events are on the other streams."""
    found = parse_id(session_id)
    service.hub.get(found)
    if "respond-async" in prefer:
        after = await service.hub.start_turn(found, data.text, data.attachments)
        headers = {"preference-applied": "respond-async"}
        return Response(TurnReply(accepted=True, after=after), status_code=202, headers=headers)
    service.hub.make_room_for_client()
    before = await service.hub.start_turn(found, data.text, data.attachments)
    return make_event_stream(service.hub.follow_turn(found, before))


@get("/sessions/{session_id:str}/events")
async def session_events(
    service: DaemonService,
    session_id: str,
    last_event_id: Annotated[str | None, Parameter(header="Last-Event-ID")] = None,
) -> Stream:
    """Everything that happens in a session; Last-Event-ID says what is known already."""
    held = service.hub.get(parse_id(session_id))
    service.hub.make_room_for_client()
    known = parse_event_number(last_event_id) if last_event_id else held.log.last_seq
    return make_event_stream(held.log.open_reader(known))


def parse_event_number(text: str) -> int:
    """The number of an event; 0 for what cannot be one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_NUMBER_DIGITS else 0


@post("/sessions/{session_id:str}/commands", status_code=200)
async def run_command(service: DaemonService, session_id: str, data: CommandBody) -> CommandReply:
    """Run a slash command."""
    return await service.run_command(parse_id(session_id), data.name, data.arguments)


@post("/sessions/{session_id:str}/confirmations/{correlation_id:str}", status_code=200)
async def answer(service: DaemonService, session_id: str, correlation_id: str, data: AnswerBody) -> Accepted:
    """Answer a question; the first answer wins."""
    said = ConfirmationAnswer(
        approved=data.approved, scope=data.scope, reason=data.reason, prefix=data.prefix, text=data.text
    )
    await service.answer(parse_id(session_id), correlation_id, said)
    return Accepted(accepted=True)


@post("/sessions/{session_id:str}/cancel", status_code=200)
async def cancel(service: DaemonService, session_id: str) -> Accepted:
    held = service.hub.get(parse_id(session_id))
    running = held.running
    await held.conversation.cancel()
    return Accepted(accepted=running)


@post("/sessions/{session_id:str}/typing", status_code=200)
async def note_typing(service: DaemonService, session_id: str) -> Accepted:
    """Note that a person is typing: idle work stops."""
    held = service.hub.find(parse_id(session_id))
    if held is not None:
        held.conversation.note_typing()
    return Accepted(accepted=held is not None)


@get("/sessions/{session_id:str}/snapshots")
async def list_snapshots(service: DaemonService, session_id: str) -> list[dict[str, Any]]:
    return await SnapshotService(service).list(parse_id(session_id))


@post("/sessions/{session_id:str}/snapshots", status_code=201)
async def take_snapshot(service: DaemonService, session_id: str) -> SnapshotReply:
    return SnapshotReply(id=await SnapshotService(service).take(parse_id(session_id)))


@post("/snapshots/{snapshot_id:str}/restore", status_code=200)
async def restore_snapshot(service: DaemonService, snapshot_id: str) -> Accepted:
    await SnapshotService(service).restore(snapshot_id)
    return Accepted(accepted=True)


@delete("/snapshots/{snapshot_id:str}")
async def delete_snapshot(service: DaemonService, snapshot_id: str) -> None:
    await SnapshotService(service).delete(snapshot_id)


@get("/sessions/{session_id:str}/checkpoints")
async def list_checkpoints(service: DaemonService, session_id: str) -> list[CheckpointLine]:
    """Every stretch in which the session changed files, oldest first."""
    return await CheckpointService(service).list(parse_id(session_id))


@post("/sessions/{session_id:str}/checkpoints/{number:int}/restore", status_code=200)
async def restore_checkpoint(
    service: DaemonService, session_id: str, number: MessageNumber, data: RestoreBody
) -> RestoreReply:
    """Go back to before message `number`: talk, files or both. With dryRun nothing is touched."""
    return await CheckpointService(service).restore(parse_id(session_id), number, data)


@get("/sessions/{session_id:str}/history")
async def history(
    service: DaemonService,
    session_id: str,
    before: Annotated[int | None, Parameter(ge=1)] = None,
    limit: Limit = 50,
) -> list[dict[str, Any]]:
    """A page of the archive, oldest first, ending before message `before`."""
    return await service.read_history(parse_id(session_id), before, limit)


@get("/sessions/{session_id:str}/export")
async def export(
    service: DaemonService,
    session_id: str,
    form: Annotated[Literal["json", "markdown", "html"], Parameter(query="format")] = "json",
) -> Response[bytes]:
    return Response(await service.export(parse_id(session_id), form), media_type=MEDIA[form])


@get("/search")
async def search(
    service: DaemonService, q: Annotated[str, Parameter(min_length=1, max_length=10_000)], limit: Limit = 20
) -> list[dict[str, Any]]:
    return await service.search(q, limit)


HANDLERS = [
    health,
    init,
    list_workspaces,
    workspace_sessions,
    list_sessions,
    open_session,
    show_session,
    session_status,
    change_session,
    end_session,
    attach,
    send_message,
    session_events,
    run_command,
    answer,
    cancel,
    note_typing,
    list_snapshots,
    take_snapshot,
    restore_snapshot,
    delete_snapshot,
    list_checkpoints,
    restore_checkpoint,
    history,
    export,
    search,
]
