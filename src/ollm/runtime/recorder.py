"""The session under way: what is said goes to the archive before anything else happens."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ollm.domain.clock import Clock, format_stamp
from ollm.domain.messages import AnyPart, Message, Role, ToolCall, ToolCallPart
from ollm.domain.tools import ToolCallRecord
from ollm.services.chat_recording import ChatRecordingService, make_title


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

    async def record_message(self, role: Role, parts: tuple[AnyPart, ...], *, interrupted: bool = False) -> Message:
        at = format_stamp(self._clock())
        return await self._write_message(Message(role=role, parts=parts, timestamp=at, interrupted=interrupted))

    async def record_answer(self, parts: tuple[AnyPart, ...], calls: Sequence[ToolCall], *, cut: str = "") -> Message:
        """The model's answer and, with it, that its calls start. `cut` is what it wrote behind them."""
        if not calls:
            return await self.record_message("assistant", parts)
        from ollm.runtime.calls.results import sanitize_arguments

        at = format_stamp(self._clock())
        asked = tuple(ToolCallPart(call.id) for call in calls)
        started = [
            ToolCallRecord(id=call.id, name=call.name, args=sanitize_arguments(call.arguments), timestamp=at)
            for call in calls
        ]
        message = Message(role="assistant", parts=(*parts, *asked), timestamp=at, cut=cut)
        return await self._write_message(message, started)

    async def _write_message(self, draft: Message, started: Sequence[ToolCallRecord] = ()) -> Message:
        message = await self._service.record_message(self.session_id, draft, started)
        self.messages.append(message)
        self.calls |= {call.id: msgspec.structs.replace(call, message_id=message.id) for call in started}
        if message.role == "user" and not self.title:
            self.title = make_title(message)
        return message

    async def record_partial(self, parts: tuple[AnyPart, ...]) -> None:
        await self._service.record_partial(self.session_id, parts)

    async def record_tool_call(self, record: ToolCallRecord) -> None:
        """A call that starts or has ended; that it starts may have been written with the answer that asked for it."""
        known = self.calls.get(record.id)
        self.calls[record.id] = record
        if known is None or (known.status, known.args) != (record.status, record.args):
            await self._service.record_tool_call(self.session_id, record)

    def make_call_id(self) -> str:
        """Call ids are ours: unique in the session, short to cite."""
        self._count += 1
        return f"c{self._count}"

    async def save(self) -> None:
        await self._service.end_turn(self.session_id)
