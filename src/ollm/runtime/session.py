"""The session of a conversation: none until the first message, then open in the archive until the end."""

from __future__ import annotations

from typing import Any

import msgspec

from ollm.domain.clock import Clock
from ollm.domain.context import CompressionRecord
from ollm.domain.errors import NotFoundError
from ollm.domain.session import Session
from ollm.domain.struct import Data
from ollm.domain.tools import ToolCallRecord
from ollm.runtime.model import Model
from ollm.runtime.recorder import Recorder
from ollm.services.chat_recording import ChatRecordingService


class Resumed(Data, frozen=True):
    """A session that was opened again, and what could not be read of it."""

    session: Session
    damage: str = ""


class OpenSession:
    """Knows whether there is a session yet, and records into it."""

    def __init__(self, service: ChatRecordingService, workspace: str, origin: str | None, clock: Clock) -> None:
        self.service = service
        self.workspace = workspace
        self.origin = origin
        self._clock = clock
        self._recorder: Recorder | None = None
        self._compressions: list[dict[str, Any]] = []

    @property
    def id(self) -> str | None:
        return self._recorder.session_id if self._recorder else None

    @property
    def recorder(self) -> Recorder:
        if self._recorder is None:
            raise NotFoundError("There is no session yet.", action="Say something first.")
        return self._recorder

    async def create(self, model: Model) -> str:
        session_id = await self.service.create_session(
            model.name,
            model.provider.name,
            workspace=self.workspace,
            origin=self.origin,
            context_window=model.window,
        )
        self._recorder = Recorder(self.service, session_id, 0, self._clock)
        return session_id

    async def resume(self, session_id: str) -> Resumed:
        loaded = await self.service.open_session(session_id)
        session = loaded.session
        self._recorder = Recorder(self.service, session.session_id, len(session.tool_calls), self._clock)
        self._recorder.title = session.metadata.title
        self._compressions = list(session.metadata.compression_history)
        return Resumed(session=session, damage=str(loaded.damage or ""))

    @property
    def title(self) -> str:
        return self._recorder.title if self._recorder else ""

    def load(self) -> Session:
        """All that was recorded so far."""
        return self.service.load(self.recorder.session_id).session

    async def compressed(self, record: CompressionRecord) -> None:
        """A compression happened: it counts, and its checkpoint stands whole in the history."""
        self._compressions.append(msgspec.to_builtins(record))
        await self.note({"compressionCount": len(self._compressions), "compressionHistory": self._compressions})

    async def record_call(self, record: ToolCallRecord) -> None:
        await self.recorder.tool_call(record)

    async def note(self, changes: dict[str, Any]) -> None:
        """Set metadata of the session, when there is one."""
        if self._recorder:
            await self.service.update_metadata(self._recorder.session_id, changes)

    async def close(self) -> None:
        if self._recorder:
            await self.service.close_session(self._recorder.session_id)
            self._recorder = None
