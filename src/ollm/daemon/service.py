"""Operations behind the routes: the hub serves open sessions, the archive serves all sessions."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from msgspec import UNSET

from ollm.app.closed_session import ClosedSession
from ollm.app.process import ProcessScope, print_warning
from ollm.app.workspace import WorkspaceScope
from ollm.archive.listing import list_archived_rows, search_archived
from ollm.daemon.bodies import PATH_PATTERN, ChangeBody, OpenBody, OpenReply, SessionLine
from ollm.daemon.devices import Device, require_local
from ollm.daemon.hub import Hub
from ollm.domain.clock import to_epoch_ms
from ollm.domain.errors import BusyError, NotFoundError, OllmError, UnsavedError
from ollm.domain.files import DiscoveryOptions
from ollm.domain.session import ChatSession, Session, SessionStatus
from ollm.runtime.base import ConversationOptions
from ollm.services.file_discovery.fuzzy import NameFinder
from ollm.store.lease import DAEMON
from ollm.store.session_index.search import NO_FILTERS, search_sessions

T = TypeVar("T")
FRESH_SECONDS = 3.0  # A list of files is reused for this long.
ARCHIVE_PAUSE_SECONDS = 30.0  # The archive is not searched for this long after it did not answer.


class BadPathError(OllmError):
    """An invalid workspace path."""


class BadFieldError(OllmError):
    """An invalid value in a request."""


class FileNames:
    """Finds the files of the workspace asked about last; a list of them counts for a moment."""

    def __init__(self) -> None:
        self._listing: tuple[Path, float, NameFinder] | None = None

    def find(self, scope: WorkspaceScope, typed: str) -> list[str]:
        known = self._listing
        if known is None or known[0] != scope.path or time.monotonic() > known[1]:
            paths = scope.discovery.read_paths(DiscoveryOptions(root=str(scope.path))).paths
            known = self._listing = scope.path, time.monotonic() + FRESH_SECONDS, NameFinder(paths)
        return known[2].find_best(typed)


class DaemonService:
    def __init__(self, process: ProcessScope, hub: Hub) -> None:
        self.process = process
        self.hub = hub
        self._reading = ThreadPoolExecutor(2, "ollm-reading")
        self._indexing = ThreadPoolExecutor(1, "ollm-indexing")  # The index takes one writer at a time.
        self.file_names = FileNames()
        self._archive_away_until = 0.0
        self._reported: set[str] = set()
        # Notices by workspace wait here until a session is open there.
        self._pending_notices: dict[str, list[str]] = {}

    def make_process(self, workspace: Path | None = None) -> ProcessScope:
        """Read the current settings and files. Problems of the settings are reported once."""
        return ProcessScope(self.process.environment, workspace=workspace, warn=self._warn)

    def _warn(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            print_warning(text)

    async def run_apart(
        self, work: Callable[[ProcessScope], T], *, workspace: Path | None = None, indexed: bool = False
    ) -> T:
        """Run slow work in a thread, with files of its own: no other request waits for it."""

        def run() -> T:
            process = self.make_process(workspace)
            try:
                return work(process)
            finally:
                process.close()

        pool = self._indexing if indexed else self._reading
        return await asyncio.get_running_loop().run_in_executor(pool, run)

    async def list_workspace_sessions(self, workspace: Path) -> list[SessionLine]:
        """List the sessions of a workspace, newest first (W). A locked database blocks no other request."""

        def list_records() -> list[ChatSession]:
            with self._open_scope(workspace) as scope:
                return scope.context.list_sessions()

        return [self._make_line(record) for record in await asyncio.to_thread(list_records)]

    @contextmanager
    def _open_scope(self, workspace: Path) -> Iterator[WorkspaceScope]:
        scope = WorkspaceScope(self.make_process(workspace), workspace)
        scope.report = self._pending_notices.setdefault(os.path.realpath(workspace), []).append
        try:
            yield scope
        finally:
            scope.close()

    def _make_line(self, record: ChatSession) -> SessionLine:
        open_here = self.hub.find(record.session_id) is not None
        return SessionLine(
            session_id=record.session_id,
            title=record.title,
            model=record.model,
            status="active" if open_here else record.status,
            updated_at=record.updated_at,
            parent=record.parent or UNSET,
        )

    def require_access(self, device: Device | None, workspace: Path) -> None:
        """Raise DeniedError for a paired device in ollm's own folders, where the daemon's token lies."""
        if device and workspace.resolve().is_relative_to(self.process.home.root.resolve()):
            require_local(device, "Sessions in ollm's own folders are used")

    async def open(self, body: OpenBody, device: Device | None) -> OpenReply:
        session = parse_id(body.session_id) if body.session_id is not None else None
        workspace = parse_workspace(body.workspace_path)
        held = self.hub.find(session) if session is not None else None
        if session is not None and (held is None or not held.is_at(workspace)):
            workspace = await asyncio.to_thread(self._locate_session, session, workspace)
        self.require_access(device, workspace)
        options = ConversationOptions(
            workspace=workspace,
            session=session,
            full=body.full,
            force=body.force,
            beside=body.beside or self.make_process(workspace).settings.workspace.sessions == "many",
            interactive=True,
            holder=DAEMON,
        )
        session_id, resumed = await self.hub.open(options)
        notices = self.hub.get(session_id).conversation.parts.notices
        notices += [text for text in self._pending_notices.pop(os.path.realpath(workspace), []) if text not in notices]
        return OpenReply(session_id=session_id, resumed=resumed)

    def _locate_session(self, session_id: str, workspace: Path) -> Path:
        """Return the folder that a session works in; get it from the team archive first if it is only there. Raises if
        it belongs to another workspace."""
        with self._open_scope(workspace) as scope:
            found = scope.process.session_files.describe_session(scope.find_session(session_id))
            return scope.locate_session(found.metadata.workspace)

    def open_closed(self, session_id: str | None = None) -> ClosedSession:
        """Open the stored form of a session, or without one the stores of all sessions."""
        workspace = (self.find_workspace(session_id) if session_id else None) or self.process.user_home
        return ClosedSession(self.make_process(workspace), workspace)

    async def read_session(self, session_id: str) -> Session:
        return await self.run_apart(lambda process: process.session_files.read(session_id).session)

    async def list_summaries(self) -> list[dict[str, Any]]:
        """List every session, last active first; one that is only in the team archive has `archive` set."""

        def list_all(process: ProcessScope) -> list[dict[str, Any]]:
            rows = [*process.session_index.list_sessions(), *list_archived_rows(process, ask=False)]
            return sorted(rows, key=lambda row: str(row["lastActivity"]), reverse=True)

        return await self.run_apart(list_all, indexed=True)

    async def change(self, session_id: str, body: ChangeBody) -> Session:
        """Rename a session, open here or not; a status other than active closes it first."""
        held = self.hub.find(session_id)
        if held and held.running and body.status is not None:
            raise BusyError("A turn is running in this session.", action="Wait for it, or cancel it.")
        if held and body.title is not None:
            await held.conversation.parts.session.rename(body.title)
        elif (title := body.title) is not None:
            await self.run_apart(lambda process: process.library.rename(session_id, title), indexed=True)
        if body.status is not None:
            await self.hub.close(session_id)
            archived = body.status == "archived"
            await self.run_apart(lambda process: process.library.archive(session_id, archived), indexed=True)
            self._record_status(session_id, body.status)
        return await self.read_session(session_id)

    def _record_status(self, session_id: str, status: SessionStatus) -> None:
        """Keep the workspace's own record in step with the session's file."""
        if workspace := self.find_workspace(session_id):
            with self._open_scope(workspace) as scope:
                scope.database.set_status(session_id, status, to_epoch_ms(self.process.clock()))

    async def close(self, session_id: str, *, erase: bool) -> None:
        """Close a session (W); `erase` deletes every trace of it. Raises BusyError if another process has it open."""
        held = self.hub.find(session_id)
        self.ensure_known(session_id)
        if held is None and self.process.session_files.is_open(session_id):
            raise BusyError(f"Session {session_id} is open in another process.", action="Close it there, or take over.")
        if not erase:
            await self.hub.close(session_id)
        else:
            with contextlib.suppress(UnsavedError):
                await self.hub.discard(session_id)
        if erase and self._exists(session_id):
            await self.run_apart(lambda process: process.library.delete(session_id), indexed=True)
        elif held is None:
            session = await self.run_apart(lambda process: process.session_files.describe_session(session_id))
            archived = session.metadata.workspace_state.get("status") == "archived"
            self._record_status(session_id, "archived" if archived else "closed")

    def _exists(self, session_id: str) -> bool:
        return self.process.session_files.places.has(session_id)

    def ensure_known(self, session_id: str) -> None:
        """Raise NotFoundError if there is no such session."""
        if self.hub.find(session_id) is None and not self._exists(session_id):
            raise NotFoundError(f"No session {session_id}.", action="List them with `ollm sessions list`.")

    async def search(self, text: str, limit: int) -> list[dict[str, Any]]:
        """Search the sessions here, then those that are only in the team archive (with `archive` set)."""
        hits = await self.run_apart(
            lambda process: search_sessions(process.session_index, text, NO_FILTERS, limit).hits, indexed=True
        )
        return hits + await self.run_apart(lambda process: self._search_archive(process, text, limit))

    def _search_archive(self, process: ProcessScope, text: str, limit: int) -> list[dict[str, Any]]:
        """Search the archive, unless its server failed to answer just before."""

        def note_failure(_text: str) -> None:
            self._archive_away_until = time.monotonic() + ARCHIVE_PAUSE_SECONDS

        return (
            search_archived(process, text, limit, note_failure) if time.monotonic() > self._archive_away_until else []
        )

    def find_workspace(self, session_id: str) -> Path | None:
        """Find the folder of a session, if it still exists."""
        found = self.process.session_files.describe_session(session_id).metadata.workspace
        return Path(found) if found and Path(found).is_dir() else None


def parse_workspace(path: str) -> Path:
    """Parse the absolute path of an existing directory; `..` and the like are refused, not resolved."""
    if not re.fullmatch(PATH_PATTERN, path):
        raise BadPathError(f"{path[:200]!r} is not an absolute path.", action="Send an absolute path of a directory.")
    try:
        there = Path(path).is_dir()
    except (OSError, ValueError):  # No file can have this name.
        there = False
    if not there:
        raise NotFoundError(f"{path[:200]!r} is not a directory.", action="Send the path of an existing directory.")
    return Path(path)


def parse_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError as error:
        raise BadFieldError(f"{text[:80]!r} is not a UUID.") from error
