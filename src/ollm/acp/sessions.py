"""The sessions an editor has open, and recorded ones it can reopen."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from msgspec.structs import replace

from ollm.acp.client import EditorBuffers
from ollm.acp.permissions import WorkspaceTrust, describe_trust
from ollm.acp.session import EditorSession
from ollm.acp.transport import read_servers
from ollm.acp.updates import render_title
from ollm.app.conversation import open_conversation
from ollm.app.process import ProcessScope
from ollm.app.workspace import WorkspaceScope
from ollm.domain.errors import BusyError, NotFoundError, OllmError, UsageError
from ollm.domain.events import Notice
from ollm.domain.messages import JsonObject
from ollm.runtime.base import ConversationOptions
from ollm.runtime.conversation import LocalConversation

if TYPE_CHECKING:
    from ollm.acp.connection import EditorClient

T = TypeVar("T")
PAGE_SESSIONS = 50


class EditorSessions:
    """Sessions of an editor. Each session has its own lock, so one folder can have many."""

    def __init__(
        self,
        process: ProcessScope,
        editor: EditorClient,
        flags: dict[str, Any],
    ) -> None:
        self._process = process
        self._editor = editor
        self._flags = flags
        self._open: dict[str, EditorSession] = {}
        self._ended = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def new_session(self, cwd: str, mcp_servers: list[Any] | None = None) -> JsonObject:
        session = await self._open_session(parse_directory(cwd), mcp_servers or [])
        return {"sessionId": session.session_id, **await self._introduce(session)}

    async def load_session(self, session_id: str, cwd: str, mcp_servers: list[Any] | None = None) -> JsonObject:
        return await self._load(session_id, cwd, mcp_servers, replay=True)

    async def resume_session(self, session_id: str, cwd: str, mcp_servers: list[Any] | None = None) -> JsonObject:
        return await self._load(session_id, cwd, mcp_servers, replay=False)

    async def _load(self, session_id: str, cwd: str, mcp_servers: list[Any] | None, *, replay: bool) -> JsonObject:
        workspace = parse_directory(cwd)
        session = self._open.get(session_id)
        if session is not None:
            session.check_loadable(workspace)
        else:
            session = await self._open_session(workspace, mcp_servers or [], parse_session_id(session_id))
        if replay:
            await session.replay()
        return await self._introduce(session)

    async def _introduce(self, session: EditorSession) -> JsonObject:
        """Describe a session in a reply, and send its state after the reply."""
        described = await session.describe()
        task = asyncio.create_task(session.announce(), name="announce")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return described

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None) -> JsonObject:
        """List the sessions of a folder, or all sessions, most recent first, one page at a time."""
        start = parse_cursor(cursor)
        workspace = str(parse_directory(cwd).resolve()) if cwd else None
        listed = await asyncio.to_thread(self._run_apart, lambda process: process.session_index.list_sessions())
        rows = [row for row in listed if fits(row, workspace)]
        page = rows[start : start + PAGE_SESSIONS]
        more = {"nextCursor": str(start + PAGE_SESSIONS)} if len(rows) > start + PAGE_SESSIONS else {}
        return {"sessions": [render_row(row) for row in page], **more}

    async def close_session(self, session_id: str) -> None:
        await self._get(session_id).close()
        self._open.pop(session_id, None)

    async def delete_session(self, session_id: str) -> None:
        """Delete a session permanently. A missing session counts as deleted."""
        name = parse_session_id(session_id)
        if session := self._open.pop(name, None):
            await session.close()
        files = self._process.session_files
        if files.is_open(name):
            raise BusyError(f"Session {name} is open in another process.", action="Close it there first.")
        if files.places.has(name):
            await asyncio.to_thread(self._run_apart, lambda process: process.library.delete(name))

    async def prompt(self, session_id: str, prompt: list[JsonObject]) -> JsonObject:
        if self._ended:
            return {"stopReason": "cancelled"}
        return await self._get(session_id).prompt(prompt)

    async def cancel(self, session_id: str) -> None:
        if session := self._open.get(session_id):
            await session.cancel()

    async def set_session_mode(self, session_id: str, mode_id: str) -> None:
        await self._get(session_id).set_option("approval", mode_id)  # It is the protocol's mode.

    async def set_config_option(self, session_id: str, config_id: str, value: str | bool) -> JsonObject:
        return await self._get(session_id).set_option(config_id, value)

    async def stop_after(self, ended: asyncio.Event) -> None:
        """Stop all work once the editor closes its input, since it can no longer answer questions."""
        await ended.wait()
        self._ended = True
        for session in list(self._open.values()):
            await session.cancel()

    async def close_all(self) -> None:
        """Close every session. Running work is stopped, and messages are kept."""
        for task in self._tasks:
            task.cancel()
        failed: list[OllmError] = []
        while self._open:
            _, session = self._open.popitem()
            try:
                await session.close()
            except OllmError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def _get(self, session_id: str) -> EditorSession:
        if session_id not in self._open:
            raise NotFoundError(f"Session {session_id[:80]} is not open.", action="Open it with session/load.")
        return self._open[session_id]

    async def _open_session(self, workspace: Path, servers: list[Any], session_id: str | None = None) -> EditorSession:
        entries, unusable = read_servers(servers)
        options = ConversationOptions(
            workspace=workspace, beside=True, interactive=True, flags=self._flags, mcp_servers=entries
        )
        buffers, book = EditorBuffers(self._editor), self._process.trust_book

        async def open_conversation(session_id: str | None) -> tuple[LocalConversation, AsyncExitStack]:
            try:
                return await self._open_conversation(replace(options, session=session_id), buffers)
            except BaseException:
                self._open.pop(session_id or "", None)
                raise

        session = EditorSession(
            open_conversation,
            self._editor,
            WorkspaceScope(self._process, workspace).boundary,
            buffers,
            WorkspaceTrust(book, workspace),
            remarks=(*describe_trust(book.get_state(workspace)), *unusable),
        )
        await session.open(session_id)
        self._open[session.session_id] = session
        return session

    async def _open_conversation(
        self, options: ConversationOptions, buffers: EditorBuffers
    ) -> tuple[LocalConversation, AsyncExitStack]:
        """Open a conversation and its session. Returns it with the exit stack that closes it."""
        async with AsyncExitStack() as stack:
            editor = buffers if self._editor.abilities.reads_files else None
            conversation = await stack.enter_async_context(open_conversation(options, editor=editor))
            await conversation.create_session()
            await conversation.parts.session.keep()  # An editor opens an empty thread again by its id.
            buffers.session_id = conversation.session_id or ""
            stream = conversation.parts.stream
            buffers.report = lambda text: stream.emit(Notice(level="warning", text=text))
            return conversation, stack.pop_all()

    def _run_apart(self, work: Callable[[ProcessScope], T]) -> T:
        """Run `work` with a separate process scope, for use in a thread."""
        process = ProcessScope(self._process.environment)
        try:
            return work(process)
        finally:
            process.close()


def parse_directory(cwd: str) -> Path:
    """Parse a workspace path. Raises UsageError if it is not an absolute path of a folder."""
    if not os.path.isabs(cwd):  # noqa: PTH117 - a Path would not take every text
        raise UsageError("cwd must be an absolute path.")
    if not os.path.isdir(cwd):  # noqa: PTH112 - a name too long is no folder, not an error
        raise UsageError(f"{cwd[:200]} is not a directory.")
    return Path(cwd)


def parse_session_id(session_id: str) -> str:
    try:
        return str(UUID(session_id))
    except ValueError as error:
        raise NotFoundError(f"No session {session_id[:80]}.", action="See session/list.") from error


def parse_cursor(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal() or len(cursor) > 9:
        raise UsageError("That cursor is not one of ours.")
    return int(cursor)


def fits(row: dict[str, Any], workspace: str | None) -> bool:
    """Return True for a session with messages and a folder, not archived, that is in the requested folder."""
    place = row.get("workspace")
    if not place or row.get("status") == "archived" or not row.get("messageCount"):
        return False
    return workspace is None or str(Path(place).resolve()) == workspace


def render_row(row: dict[str, Any]) -> JsonObject:
    found = {"sessionId": row["sessionId"], "cwd": row["workspace"], "title": render_title(row.get("title") or "")}
    return {**found, "updatedAt": row["lastActivity"]} if row.get("lastActivity") else found
