"""What the routes do, apart from HTTP: the hub for open sessions, the archive for all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from ollm.app import Process, StoredScope, WorkspaceScope
from ollm.daemon.bodies import ChangeBody, InitReply, OpenBody, OpenReply, SessionLine
from ollm.daemon.hub import Hub
from ollm.domain.clock import epoch_ms
from ollm.domain.errors import NotFoundError, OllmError
from ollm.domain.session import SessionStatus
from ollm.domain.workspace import ChatSession
from ollm.runtime.base import CommandReply, Status
from ollm.runtime.history import page
from ollm.runtime.opening import Opening


class BadPathError(OllmError):
    """A workspace that cannot be one."""


class BadFieldError(OllmError):
    """A value that is not what its place takes."""


class DaemonService:
    """One per daemon."""

    def __init__(self, process: Process, hub: Hub) -> None:
        self.process = process
        self.hub = hub

    def init(self, workspace_path: str) -> InitReply:
        workspace = workspace_of(workspace_path)
        process = Process(self.process.environment, workspace=workspace)
        return InitReply(
            workspace_path=str(workspace), trusted=process.trusted, sessions=self.workspace_sessions(workspace_path)
        )

    def workspace_sessions(self, workspace_path: str) -> list[SessionLine]:
        """All sessions of a workspace, newest first (W)."""
        workspace = workspace_of(workspace_path)
        scope = WorkspaceScope(Process(self.process.environment, workspace=workspace), workspace)
        try:
            return [self._line(record) for record in scope.context.list_sessions()]
        finally:
            scope.close()

    def _line(self, record: ChatSession) -> SessionLine:
        open_here = self.hub.find(record.session_id) is not None
        return SessionLine(
            session_id=record.session_id,
            title=record.title,
            model=record.model,
            status="active" if open_here else record.status,
            updated_at=record.updated_at,
        )

    async def open(self, body: OpenBody) -> OpenReply:
        session = parse_id(body.session_id) if body.session_id is not None else None
        opening = Opening(
            workspace=workspace_of(body.workspace_path),
            session=session,
            full=body.full,
            force=body.force,
            interactive=True,
        )
        session_id, resumed = await self.hub.open(opening)
        return OpenReply(session_id=session_id, resumed=resumed)

    def session(self, session_id: str) -> dict[str, Any]:
        """The document, with whether it is open here."""
        found: dict[str, Any] = msgspec.to_builtins(self.process.session_files.read(session_id).session)
        return found

    def change(self, session_id: str, body: ChangeBody) -> dict[str, Any]:
        library = self.process.library
        if body.title is not None:
            library.rename(session_id, body.title)
        if body.status is not None:
            library.archive(session_id, body.status == "archived")
        self._note_status(session_id, body.status)
        return self.session(session_id)

    def _note_status(self, session_id: str, status: SessionStatus | None) -> None:
        """The workspace's own record follows the archive."""
        workspace = self.process.session_files.read(session_id).session.metadata.workspace
        if status is not None and workspace and Path(workspace).is_dir():
            scope = WorkspaceScope(self.process, Path(workspace))
            try:
                scope.database.set_status(session_id, status, epoch_ms(self.process.clock()))
            finally:
                scope.close()

    async def close(self, session_id: str, *, erase: bool) -> None:
        """End a session (W); with `erase` every trace of it goes."""
        known = self.process.session_files.places.home_of(session_id) is not None
        if self.hub.find(session_id) is None and not known:
            raise NotFoundError(f"There is no session {session_id}.")
        await self.hub.close(session_id)
        if erase:
            self.process.library.delete(session_id)

    async def status(self, session_id: str) -> Status:
        held = self.hub.get(session_id)
        status = await held.conversation.status()
        return msgspec.structs.replace(status, turn_after=held.turn_after) if held.running else status

    async def command(self, session_id: str, name: str, arguments: str) -> CommandReply:
        return await self.hub.get(session_id).conversation.command(name.removeprefix("/"), arguments)

    def history(self, session_id: str, before: int | None, limit: int) -> list[dict[str, Any]]:
        return page(lambda part: self.process.session_files.read(session_id, part), before, limit)

    def export(self, session_id: str, form: str) -> Iterator[str | bytes]:
        from ollm.services.session_export import html, markdown

        with self.process.session_files.stream(session_id) as stream:
            if form == "json":
                yield from stream.document()
            else:
                yield from markdown(stream) if form == "markdown" else html(stream)

    def search(self, text: str, limit: int) -> list[dict[str, Any]]:
        from ollm.store.session_index.search import ANY, search

        return search(self.process.session_index, text, ANY, limit).hits

    async def snapshots(self, session_id: str) -> list[dict[str, Any]]:
        scope = StoredScope(self.process, Path.home())
        found: list[dict[str, Any]] = msgspec.to_builtins(await scope.snapshots.list_snapshots(session_id))
        return found

    async def take_snapshot(self, session_id: str) -> str:
        reply = await self.command(session_id, "context", "snapshot")
        if not reply.ok:
            raise OllmError(reply.text)
        return str(reply.data["id"])

    async def restore_snapshot(self, snapshot_id: str) -> None:
        owner = StoredScope(self.process, Path.home()).snapshot_files.session_of(snapshot_id)
        await self.command(owner, "context", f"restore {snapshot_id}")

    async def delete_snapshot(self, snapshot_id: str) -> None:
        await StoredScope(self.process, Path.home()).snapshots.delete_snapshot(snapshot_id)


def workspace_of(path: str) -> Path:
    """An absolute path of a directory that is there; `..` and the like are refused, not resolved."""
    if "\0" in path or not path.startswith("/") or os.path.normpath(path) != path.rstrip("/") or path == "/":
        raise BadPathError(f"{path[:200]!r} is not an absolute, plain path.", action="Send the whole path of a folder.")
    if not Path(path).is_dir():
        raise BadPathError(f"{path[:200]!r} is not a directory.", action="Send the path of a folder that exists.")
    return Path(path)


def parse_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError as error:
        raise BadFieldError(f"{text[:80]!r} is not a UUID.") from error
