"""The session under way: what is said goes to the archive before anything else happens."""

from __future__ import annotations

from ollm.domain.clock import Clock, stamp
from ollm.domain.messages import AnyPart, Message, Role
from ollm.domain.tools import ToolCallRecord
from ollm.services.chat_recording import ChatRecordingService, title_of


class Recorder:
    """Records into one session, and remembers the messages and calls of the turn under way."""

    def __init__(self, service: ChatRecordingService, session_id: str, calls_so_far: int, clock: Clock) -> None:
        self.session_id = session_id
        self.calls: dict[str, ToolCallRecord] = {}
        self.messages: list[Message] = []
        self.title = ""
        self._service = service
        self._count = calls_so_far
        self._clock = clock

    def begin_turn(self) -> None:
        self.calls = {}
        self.messages = []

    async def message(self, role: Role, parts: tuple[AnyPart, ...], *, interrupted: bool = False) -> Message:
        draft = Message(role=role, parts=parts, timestamp=stamp(self._clock()), interrupted=interrupted)
        message = await self._service.record_message(self.session_id, draft)
        self.messages.append(message)
        if role == "user" and not self.title:
            self.title = title_of(message)
        return message

    async def partial(self, parts: tuple[AnyPart, ...]) -> None:
        await self._service.record_partial(self.session_id, parts)

    async def tool_call(self, record: ToolCallRecord) -> None:
        self.calls[record.id] = record
        await self._service.record_tool_call(self.session_id, record)

    def new_call_id(self) -> str:
        """Call ids are ours: unique in the session, short to cite."""
        self._count += 1
        return f"c{self._count}"

    async def save(self) -> None:
        await self._service.end_turn(self.session_id)
