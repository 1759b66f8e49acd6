"""The session of a conversation: none until the first message, then open in the archive until the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ollm.domain.clock import Clock
from ollm.domain.context import CompressionRecord
from ollm.domain.errors import NotFoundError
from ollm.domain.session import Session, SessionMetadata
from ollm.domain.struct import Data
from ollm.domain.tasks import ParentCall
from ollm.domain.tools import ToolCallRecord
from ollm.runtime.model.model import Model
from ollm.runtime.recorder import Recorder
from ollm.services.chat_recording import ChatRecordingService

if TYPE_CHECKING:
    from ollm.store.session_files import MessagePage


class ResumedSession(Data, frozen=True):
    """A session that was opened again, and what could not be read of it.

    Messages up to number `skipped` were left where they are; `OpenSession.load` reads them too.
    """

    session: Session
    damage: str
    skipped: int


class OpenSession:
    """Knows whether there is a session yet, and records into it."""

    def __init__(
        self,
        service: ChatRecordingService,
        workspace: str,
        origin: str | None,
        clock: Clock,
        parent: ParentCall | None = None,
    ) -> None:
        self.service = service
        self.workspace = workspace
        self.origin = origin
        self._parent = parent
        self._clock = clock
        self._recorder: Recorder | None = None
        self._metadata = SessionMetadata()  # as it was when the session was opened, with the compressions since

    @property
    def id(self) -> str | None:
        return self._recorder.session_id if self._recorder else None

    @property
    def recorder(self) -> Recorder:
        if self._recorder is None:
            raise NotFoundError("No session yet.", action="Send a message first.")
        return self._recorder

    async def create(self, model: Model) -> str:
        session_id = await self.service.create_session(
            model.name,
            model.provider.name,
            workspace=self.workspace,
            origin=self.origin,
            context_window=model.window,
            parent=self._parent,
        )
        self._recorder = Recorder(self.service, session_id, 0, self._clock)
        return session_id

    async def resume(self, session_id: str, since: int) -> ResumedSession:
        """Messages up to number `since` need not be read."""
        loaded = await self.service.open_session(session_id, since)
        session = loaded.session
        self._recorder = Recorder(self.service, session.session_id, loaded.calls_so_far, self._clock)
        self._recorder.title = session.metadata.title
        self._metadata = session.metadata
        return ResumedSession(session=session, damage=str(loaded.damage or ""), skipped=loaded.skipped)

    @property
    def title(self) -> str:
        return self._recorder.title if self._recorder else ""

    def load(self, page: MessagePage | None = None) -> Session:
        """All that was recorded so far; with `page` at least that much of it."""
        return self.service.load(self.recorder.session_id, page).session

    def load_user_messages(self) -> dict[int, str]:
        """What the user said, in full, by number."""
        return self.service.read_user_words(self.recorder.session_id)

    def load_page(self, before: int | None, limit: int) -> list[dict[str, Any]]:
        """A page of the archive, oldest first, as plain JSON; empty before there is a session."""
        if self._recorder is None:
            return []
        from ollm.runtime.history import load_history_page

        session_id = self._recorder.session_id
        return load_history_page(lambda part: self.service.load(session_id, part), before, limit)

    async def record_compression(self, record: CompressionRecord) -> None:
        """A compression happened: it counts, and its checkpoint is kept whole in the history."""
        from ollm.services.chat_compression import make_compression_changes

        changes = make_compression_changes(self._metadata, record)
        self._metadata = msgspec.structs.replace(
            self._metadata,
            compression_count=changes["compressionCount"],
            compression_history=tuple(changes["compressionHistory"]),
        )
        await self.update_metadata(changes)

    async def record_tool_call(self, record: ToolCallRecord) -> None:
        await self.recorder.record_tool_call(record)

    async def update_metadata(self, changes: dict[str, Any]) -> None:
        """Set metadata of the session, when there is one."""
        if self._recorder:
            await self.service.update_metadata(self._recorder.session_id, changes)

    async def rename(self, title: str) -> None:
        self.recorder.title = title
        await self.update_metadata({"title": title})

    async def ensure_saved(self) -> None:
        """Raises `UnsavedError` when something that was said is in memory only."""
        if self._recorder:
            await self.service.ensure_saved(self._recorder.session_id)

    async def keep(self) -> None:
        """Let the session stay when it is closed, even when nothing was said in it."""
        if self._recorder:
            await self.service.keep_session(self._recorder.session_id)

    async def close(self) -> None:
        """Raises `UnsavedError` when something could not be written."""
        if self._recorder:
            session_id, self._recorder = self._recorder.session_id, None
            await self.service.close_session(session_id)
