"""Routes for checkpoints and snapshots, for open and closed sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.params import Parameter

from ollm.app.workspace import WorkspaceScope
from ollm.daemon.bodies import (
    Accepted,
    CheckpointLine,
    CreatedReply,
    RestoreBody,
    RestoreReply,
)
from ollm.daemon.service import DaemonService
from ollm.domain.errors import BusyError, NotFoundError, OllmError
from ollm.domain.session import SnapshotSummary
from ollm.runtime.base import CommandReply
from ollm.runtime.rewind import RewindRequest
from ollm.services.file_checkpoints.records import CheckpointRecord, group_turns
from ollm.services.file_checkpoints.service import FileCheckpoints
from ollm.services.file_checkpoints.tree import join_changes

MessageNumber = Annotated[int, Parameter(ge=1, le=10**9)]


@get("/sessions/{session_id:str}/checkpoints")
async def list_checkpoints(service: DaemonService, session: str) -> list[CheckpointLine]:
    """List the checkpoints of a session, one for each turn that changed files, oldest first."""
    service.ensure_known(session)
    workspace = service.find_workspace(session)
    if workspace is None:
        return []
    checkpoints = WorkspaceScope(service.make_process(workspace), workspace).create_checkpoints()
    return await asyncio.to_thread(
        lambda: [make_line(checkpoints, group) for group in group_turns(checkpoints.list_records(session))]
    )


def make_line(checkpoints: FileCheckpoints, records: Sequence[CheckpointRecord]) -> CheckpointLine:
    """Describe one record, or those of one turn."""
    first, last = records[0], records[-1]
    over = bool(last.end)
    changes = join_changes(chain.from_iterable(map(checkpoints.list_changes, records))) if over else []
    return CheckpointLine(
        number=first.number,
        kind=first.kind,
        message_id=first.message_id,
        started_at=first.started,
        ended_at=last.ended or None,
        changed=len({change.path for change in changes if not change.is_directory_only}) if over else None,
    )


@post("/sessions/{session_id:str}/checkpoints/{number:int}/restore", status_code=200)
async def restore_checkpoint(
    service: DaemonService, session: str, number: MessageNumber, data: RestoreBody
) -> RestoreReply:
    """Go back to before message `number`: talk, files or both. With dryRun nothing is touched."""
    service.ensure_known(session)
    held = service.hub.find(session)
    if held is None:
        return await restore_closed(service, session, number, data)
    if held.running:
        raise BusyError("A turn is running in this session.", action="Wait for it, or cancel it.")
    words = [str(number), data.what, *(["force"] if data.force else [])]
    words += [] if data.dry_run and not data.diff else ["diff"] if data.dry_run else ["yes"]
    reply = await held.conversation.command("rewind", " ".join(words))
    if not reply.ok:
        raise OllmError(reply.text)
    done = {"what": data.what, "dryRun": data.dry_run, "files": [], "skipped": [], **reply.data, "text": reply.text}
    return msgspec.convert(done, RestoreReply)


async def restore_closed(service: DaemonService, session_id: str, number: int, body: RestoreBody) -> RestoreReply:
    if service.find_workspace(session_id) is None:
        raise NotFoundError("The folder of this session is not there any more.", action="Move it back.")
    request = RewindRequest(number=number, scope=body.what, diff=body.diff, force=body.force, yes=not body.dry_run)
    closed = service.open_closed(session_id)
    done = await closed.rewind(session_id, lambda flow: flow.rewind(request), dry_run=body.dry_run)
    return msgspec.convert(done, RestoreReply, from_attributes=True)


@get("/sessions/{session_id:str}/snapshots")
async def list_snapshots(service: DaemonService, session: str) -> list[SnapshotSummary]:
    service.ensure_known(session)
    return await service.open_closed().snapshots.list_snapshots(session)


@post("/sessions/{session_id:str}/snapshots", status_code=201)
async def take_snapshot(service: DaemonService, session: str) -> CreatedReply:
    service.ensure_known(session)
    if service.hub.find(session):
        return CreatedReply(id=str((await run_context_command(service, session, "snapshot")).data["id"]))
    stored = service.open_closed(session)
    if made := await stored.take_snapshot(session):
        return CreatedReply(id=made.id)
    raise OllmError(stored.explain_refusal())


@post("/snapshots/{snapshot_id:str}/restore", status_code=200)
async def restore_snapshot(service: DaemonService, snapshot_id: str) -> Accepted:
    owner = service.open_closed().snapshot_files.find_session(snapshot_id)
    if service.hub.find(owner):
        await run_context_command(service, owner, f"restore {snapshot_id}")
    else:
        await service.open_closed(owner).restore_snapshot(snapshot_id)
    return Accepted(accepted=True)


@delete("/snapshots/{snapshot_id:str}")
async def delete_snapshot(service: DaemonService, snapshot_id: str) -> None:
    await service.open_closed().snapshots.delete_snapshot(snapshot_id)


async def run_context_command(service: DaemonService, session_id: str, step: str) -> CommandReply:
    reply = await service.hub.get(session_id).conversation.command("context", step)
    if not reply.ok:
        raise OllmError(reply.text)
    return reply
