"""Snapshots through the API: of the conversation that is open here, or of a session as the archive has it."""

from __future__ import annotations

from typing import Any

import msgspec

from ollm.app import ClosedSession
from ollm.daemon.service import DaemonService
from ollm.domain.errors import OllmError
from ollm.runtime.base import CommandReply


class SnapshotService:
    """What the routes do with them."""

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
