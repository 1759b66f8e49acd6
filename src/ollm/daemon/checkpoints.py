"""Checkpoints of files through the API: of a session that is open here, or of one in the archive."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from ollm.app import ClosedSession, WorkspaceScope
from ollm.app.closed_rewind import ClosedRewind
from ollm.daemon.bodies import CheckpointLine, KeptFile, RestoreBody, RestoredFile, RestoreReply
from ollm.daemon.service import DaemonService
from ollm.domain.errors import BusyError, NotFoundError, OllmError
from ollm.runtime.base import CommandReply
from ollm.services.file_checkpoints import CheckpointRecord, FileCheckpoints
from ollm.services.file_checkpoints.plan import is_directory_only
from ollm.services.file_checkpoints.records import group_turns
from ollm.services.file_checkpoints.tree import join_changes


class CheckpointService:
    """Checkpoints, for the routes."""

    def __init__(self, service: DaemonService) -> None:
        self._service = service
        self._hub = service.hub

    async def list(self, session_id: str) -> list[CheckpointLine]:
        self._service.ensure_known(session_id)
        closed = self._open_closed(session_id)
        if closed is None:
            return []
        checkpoints = WorkspaceScope(closed.process, closed.workspace).create_checkpoints()
        return await asyncio.to_thread(list_lines, checkpoints, session_id)

    async def restore(self, session_id: str, number: int, body: RestoreBody) -> RestoreReply:
        self._service.ensure_known(session_id)
        held = self._hub.find(session_id)
        if held is None:
            return await self._restore_closed(session_id, number, body)
        if held.running:
            raise BusyError("A turn is running in this session.", action="Wait for it, or cancel it.")
        words = [str(number), body.what, *(["force"] if body.force else [])]
        words += [] if body.dry_run and not body.diff else ["diff"] if body.dry_run else ["yes"]
        reply = await self._service.run_command(session_id, "rewind", " ".join(words))
        return make_reply(body, reply.text, reply.data)

    async def _restore_closed(self, session_id: str, number: int, body: RestoreBody) -> RestoreReply:
        closed = self._open_closed(session_id)
        if closed is None:
            raise NotFoundError("The folder of this session is not there any more.", action="Move it back.")
        files, talk = body.what != "talk", body.what != "files"
        done = await ClosedRewind(closed, session_id).run(
            number, files=files, force=body.force, dry_run=body.dry_run, talk=talk, diff=body.diff
        )
        return make_reply(body, done.text, {"files": done.files, "skipped": done.skipped})

    def _open_closed(self, session_id: str) -> ClosedSession | None:
        """The session as the archive has it; None when the folder it was held in is gone."""
        workspace = self._service.find_workspace(session_id)
        if workspace is None:
            return None
        return ClosedSession(self._service.make_process(workspace), workspace)


def list_lines(checkpoints: FileCheckpoints, session_id: str) -> list[CheckpointLine]:
    return [make_line(checkpoints, group) for group in group_turns(checkpoints.list_records(session_id))]


def make_line(checkpoints: FileCheckpoints, records: Sequence[CheckpointRecord]) -> CheckpointLine:
    """One record, or those of one turn."""
    first, last = records[0], records[-1]
    over = bool(last.end)
    changes = join_changes(chain.from_iterable(map(checkpoints.list_changes, records))) if over else []
    return CheckpointLine(
        number=first.number,
        kind=first.kind,
        message_id=first.message_id,
        started_at=first.started,
        ended_at=last.ended or None,
        changed=len({change.path for change in changes if not is_directory_only(change)}) if over else None,
    )


def make_reply(body: RestoreBody, text: str, data: dict[str, Any]) -> RestoreReply:
    return RestoreReply(
        what=body.what,
        dry_run=body.dry_run,
        files=msgspec.convert(data.get("files", []), list[RestoredFile]),
        skipped=msgspec.convert(data.get("skipped", []), list[KeptFile]),
        text=text,
    )


class SnapshotService:
    """Snapshots, for the routes."""

    def __init__(self, service: DaemonService) -> None:
        self._service = service
        self._hub = service.hub
        self._all = ClosedSession(service.process, service.process.user_home)

    async def list(self, session_id: str) -> list[dict[str, Any]]:
        self._service.ensure_known(session_id)
        found: list[dict[str, Any]] = msgspec.to_builtins(await self._all.snapshots.list_snapshots(session_id))
        return found

    async def take(self, session_id: str) -> str:
        self._service.ensure_known(session_id)
        if self._hub.find(session_id):
            return str((await self._run_context_command(session_id, "snapshot")).data["id"])
        stored = self._open_stored_scope(session_id)
        if made := await stored.take_snapshot(session_id):
            return made.id
        raise OllmError(stored.explain_refusal())

    async def restore(self, snapshot_id: str) -> None:
        owner = self._all.snapshot_files.find_session(snapshot_id)
        if self._hub.find(owner):
            await self._run_context_command(owner, f"restore {snapshot_id}")
        else:
            await self._open_stored_scope(owner).restore_snapshot(snapshot_id)

    async def delete(self, snapshot_id: str) -> None:
        await self._all.snapshots.delete_snapshot(snapshot_id)

    def _open_stored_scope(self, session_id: str) -> ClosedSession:
        workspace = self._service.find_workspace(session_id) or self._service.process.user_home
        return ClosedSession(self._service.make_process(workspace), workspace)

    async def _run_context_command(self, session_id: str, step: str) -> CommandReply:
        reply = await self._service.run_command(session_id, "context", step)
        if not reply.ok:
            raise OllmError(reply.text)
        return reply
