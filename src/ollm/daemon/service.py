"""Operations behind the routes: the hub for open sessions, the archive for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from ollm.app import ProcessScope, WorkspaceScope, print_warning
from ollm.daemon.bodies import ChangeBody, InitReply, OpenBody, OpenReply, SessionLine, TranscriptPage, WorkspaceLine
from ollm.daemon.hub import Hub
from ollm.daemon.transcript import TranscriptCache, read_transcript
from ollm.domain.clock import to_epoch_ms
from ollm.domain.errors import BusyError, NotFoundError, OllmError, UnsavedError
from ollm.domain.session import Session, SessionStatus
from ollm.domain.tools import ConfirmationAnswer
from ollm.domain.workspace import ChatSession
from ollm.runtime.base import CommandReply, ConversationOptions, Status
from ollm.runtime.session import load_history_page
from ollm.store.lease import DAEMON
from ollm.store.session_files import SessionFiles

T = TypeVar("T")
ARCHIVE_PAUSE_SECONDS = 30.0  # seconds for which an archive that did not answer is not searched


class BadPathError(OllmError):
    """A workspace that cannot be one."""


class BadFieldError(OllmError):
    """A value that is not what its place takes."""


class DaemonService:
    """One per daemon."""

    def __init__(self, process: ProcessScope, hub: Hub) -> None:
        self.process = process
        self.hub = hub
        self._reading = ThreadPoolExecutor(2, "ollm-reading")
        self._indexing = ThreadPoolExecutor(1, "ollm-indexing")  # the index takes one writer at a time
        self._transcripts = TranscriptCache()
        self._archive_away_until = 0.0
        self._warned: set[str] = set()
        self._untold: dict[str, list[str]] = {}  # by workspace: what became of its memory while no session was open

    def make_process(self, workspace: Path | None = None) -> ProcessScope:
        """Read the present settings and files. Problems of the settings are reported once, not by each request."""
        return ProcessScope(self.process.environment, workspace=workspace, warn=self._warn)

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            print_warning(text)

    async def _read_apart(self, work: Callable[[ProcessScope], T], *, indexed: bool = False) -> T:
        """Do what may take long in a thread, with an archive of its own: nobody else has to wait for it."""

        def run() -> T:
            process = self.make_process()
            try:
                return work(process)
            finally:
                process.close()

        pool = self._indexing if indexed else self._reading
        return await asyncio.get_running_loop().run_in_executor(pool, run)

    async def init(self, workspace_path: str) -> InitReply:
        workspace = parse_workspace(workspace_path)
        process = self.make_process(workspace)
        sessions = await self.list_workspace_sessions(workspace_path)
        return InitReply(workspace_path=str(workspace), trusted=process.trusted, sessions=sessions)

    async def list_workspace_sessions(self, workspace_path: str) -> list[SessionLine]:
        """All sessions of a workspace, newest first (W). A database that is locked keeps nobody else waiting."""
        workspace = parse_workspace(workspace_path)

        def list_records() -> list[ChatSession]:
            with self._open_scope(workspace) as scope:
                return scope.context.list_sessions()

        return [self._make_line(record) for record in await asyncio.to_thread(list_records)]

    @contextmanager
    def _open_scope(self, workspace: Path) -> Iterator[WorkspaceScope]:
        scope = WorkspaceScope(self.make_process(workspace), workspace)
        scope.report = self._untold.setdefault(os.path.realpath(workspace), []).append
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
        )

    async def open(self, body: OpenBody) -> OpenReply:
        session = parse_id(body.session_id) if body.session_id is not None else None
        workspace = parse_workspace(body.workspace_path)
        held = self.hub.find(session) if session is not None else None
        if session is not None and (held is None or not held.is_at(workspace)):
            found = await self._read_apart(lambda process: self._describe_or_pull(process, session, workspace))
            await asyncio.to_thread(self._check_ownership, workspace, found)
        options = ConversationOptions(
            workspace=workspace,
            session=session,
            full=body.full,
            force=body.force,
            interactive=True,
            holder=DAEMON,
        )
        session_id, resumed = await self.hub.open(options)
        notices = self.hub.get(session_id).conversation.parts.notices
        notices += [text for text in self._untold.pop(os.path.realpath(workspace), []) if text not in notices]
        return OpenReply(session_id=session_id, resumed=resumed)

    def _describe_or_pull(self, process: ProcessScope, session_id: str, workspace: Path) -> Session:
        from ollm.archive.listing import pull_when_archived

        try:
            return process.session_files.describe_session(session_id)
        except NotFoundError:
            if pull_when_archived(process, session_id, workspace) is None:
                raise
        return process.session_files.describe_session(session_id)

    def _check_ownership(self, workspace: Path, session: Session) -> None:
        """Raises when a session belongs elsewhere. A database that is locked keeps nobody else waiting."""
        with self._open_scope(workspace) as scope:
            scope.context.check_ownership(session)

    async def read_session(self, session_id: str) -> dict[str, Any]:
        """The document."""

        def read(process: ProcessScope) -> dict[str, Any]:
            found: dict[str, Any] = msgspec.to_builtins(process.session_files.read(session_id).session)
            return found

        return await self._read_apart(read)

    async def list_summaries(self) -> list[dict[str, Any]]:
        """Every session, last active first; those that are in the team archive only have `archive` set."""

        def list_all(process: ProcessScope) -> list[dict[str, Any]]:
            from ollm.archive.listing import list_archived_rows

            rows = [*process.session_index.list_sessions(), *list_archived_rows(process, ask=False)]
            return sorted(rows, key=lambda row: str(row["lastActivity"]), reverse=True)

        return await self._read_apart(list_all, indexed=True)

    async def list_live_summaries(self) -> list[dict[str, Any]]:
        """The same, and for those that are open here what they are doing."""
        return [{**line, **self.hub.describe(line["sessionId"])} for line in await self.list_summaries()]

    async def list_workspaces(self) -> list[WorkspaceLine]:
        """Every folder in which a session was held, last active first."""
        found: dict[str, WorkspaceLine] = {}
        for line in await self.list_summaries():
            if (path := line["workspace"]) and "archive" not in line:
                known = found.get(path) or WorkspaceLine(workspace_path=path, last_activity=line["lastActivity"])
                found[path] = msgspec.structs.replace(known, sessions=known.sessions + 1)
        return list(found.values())

    async def change(self, session_id: str, body: ChangeBody) -> dict[str, Any]:
        """Rename a session, open here or not; a status other than active closes it first."""
        held = self.hub.find(session_id)
        if held and held.running and body.status is not None:
            raise BusyError("A turn is running in this session.", action="Wait for it, or cancel it.")
        if held and body.title is not None:
            await held.conversation.parts.session.rename(body.title)
        elif (title := body.title) is not None:
            await self._read_apart(lambda process: process.library.rename(session_id, title), indexed=True)
        if body.status is not None:
            await self.hub.close(session_id)
            archived = body.status == "archived"
            await self._read_apart(lambda process: process.library.archive(session_id, archived), indexed=True)
            self._record_status(session_id, body.status)
        return await self.read_session(session_id)

    def _record_status(self, session_id: str, status: SessionStatus) -> None:
        """The workspace's own record follows the archive."""
        if workspace := self.find_workspace(session_id):
            with self._open_scope(workspace) as scope:
                scope.database.set_status(session_id, status, to_epoch_ms(self.process.clock()))

    async def close(self, session_id: str, *, erase: bool) -> None:
        """End a session (W); with `erase` every trace of it goes. One that is open in another process is not ours."""
        held = self.hub.find(session_id)
        self.ensure_known(session_id)
        if held is None and self.process.session_files.is_open(session_id):
            raise BusyError(
                f"Session {session_id} is open in another process.", action="Close it there, or open it with force."
            )
        if not erase:
            await self.hub.close(session_id)
        else:
            with contextlib.suppress(UnsavedError):
                await self.hub.discard(session_id)
        if erase and self._exists(session_id):
            await self._read_apart(lambda process: process.library.delete(session_id), indexed=True)
        elif held is None:
            session = await self._read_apart(lambda process: process.session_files.describe_session(session_id))
            self._record_status(session_id, get_archive_status(session))

    def _exists(self, session_id: str) -> bool:
        return self.process.session_files.places.find_home(session_id) is not None

    def ensure_known(self, session_id: str) -> None:
        """Raises NotFoundError when there is no such session, here or in the archive."""
        if self.hub.find(session_id) is None and not self._exists(session_id):
            raise NotFoundError(f"No session {session_id}.", action="List them with `ollm sessions list`.")

    async def answer(self, session_id: str, correlation_id: str, answer: ConfirmationAnswer) -> None:
        held = self.hub.get(session_id)
        if correlation_id not in held.asked:
            raise NotFoundError(f"No question {correlation_id[:80]} in this session.")
        if not await held.conversation.respond(correlation_id, answer):
            raise BusyError("This question was already answered or withdrawn.")

    async def get_status(self, session_id: str) -> Status:
        held = self.hub.get(session_id)
        status = await held.conversation.status()
        running = held.turn_after if held.working else None
        message = held.turn_message if held.working else 0
        return msgspec.structs.replace(status, turn_after=running, turn_message=message, last_event=held.log.last_seq)

    async def run_command(self, session_id: str, name: str, arguments: str) -> CommandReply:
        return await self.hub.get(session_id).conversation.command(name.removeprefix("/"), arguments)

    async def read_history(self, session_id: str, before: int | None, limit: int) -> list[dict[str, Any]]:
        return await self._read_apart(
            lambda process: load_history_page(lambda part: process.session_files.read(session_id, part), before, limit)
        )

    async def read_transcript(self, session_id: str, before: int | None, after: int, limit: int) -> TranscriptPage:
        cache = self._transcripts
        return await self._read_apart(lambda process: read_transcript(process, cache, session_id, before, after, limit))

    async def export(self, session_id: str, form: str) -> bytes:
        return await self._read_apart(lambda process: b"".join(iter_export(process.session_files, session_id, form)))

    async def search(self, text: str, limit: int) -> list[dict[str, Any]]:
        """Hits here, and after them those in sessions that are in the team archive only, with `archive` set."""
        from ollm.store.session_index.search import NO_FILTERS, search_sessions

        hits = await self._read_apart(
            lambda process: search_sessions(process.session_index, text, NO_FILTERS, limit).hits, indexed=True
        )
        return hits + await self._read_apart(lambda process: self._search_archive(process, text, limit))

    def _search_archive(self, process: ProcessScope, text: str, limit: int) -> list[dict[str, Any]]:
        """A server that is away is not asked again with each letter that is typed."""
        from ollm.archive.listing import search_archived

        def note_failure(_text: str) -> None:
            self._archive_away_until = time.monotonic() + ARCHIVE_PAUSE_SECONDS

        return (
            search_archived(process, text, limit, note_failure) if time.monotonic() > self._archive_away_until else []
        )

    def find_workspace(self, session_id: str) -> Path | None:
        """Find the folder of a session, if it still exists."""
        found = self.process.session_files.describe_session(session_id).metadata.workspace
        return Path(found) if found and Path(found).is_dir() else None


def get_archive_status(session: Session) -> SessionStatus:
    return "archived" if session.metadata.workspace_state.get("status") == "archived" else "closed"


def iter_export(files: SessionFiles, session_id: str, form: str) -> Iterator[bytes]:
    """A session in one of the forms it can be exported in, chunk by chunk."""
    from ollm.services.session_export import render_html, render_markdown

    with files.open_stream(session_id) as stream:
        if form == "json":
            yield from stream.iter_document()
        else:
            chunks = render_markdown(stream) if form == "markdown" else render_html(stream)
            yield from (chunk.encode("utf-8", "surrogatepass") for chunk in chunks)


def parse_workspace(path: str) -> Path:
    """An absolute path of a directory that is there; `..` and the like are refused, not resolved."""
    plain = os.path.normpath(path) == path.rstrip("/") and path.startswith("/") and not path.startswith("//")
    if "\0" in path or not plain:
        raise BadPathError(f"{path[:200]!r} is not an absolute path.", action="Send an absolute path of a directory.")
    try:
        there = Path(path).is_dir()
    except (OSError, ValueError) as error:
        raise BadPathError(f"{path[:200]!r} cannot be a directory: {error}.") from error
    if not there:
        raise BadPathError(f"{path[:200]!r} is not a directory.", action="Send the path of an existing directory.")
    return Path(path)


def parse_id(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError as error:
        raise BadFieldError(f"{text[:80]!r} is not a UUID.") from error
