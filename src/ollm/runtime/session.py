"""The session of a conversation: created with the first message, recorded, paged and closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ollm.domain.clock import Clock, format_stamp, make_id
from ollm.domain.context import CompressionRecord
from ollm.domain.errors import NotFoundError
from ollm.domain.messages import (
    AnyPart,
    Message,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolCallPart,
)
from ollm.domain.session import FailedTurn, ParentCall, Session, SessionMetadata
from ollm.domain.tools import ToolCallRecord
from ollm.runtime.base import start_record
from ollm.runtime.model.model import Model
from ollm.services.chat_recording.service import ChatRecordingService, make_title
from ollm.store.session_files.store import MessagePage

if TYPE_CHECKING:
    from ollm.store.session_files.loading import LoadedSession

MAX_FAILED_TURNS = 100
HistoryName = Literal["compression_history", "mode_history", "context_history", "failed_turns"]


def load_history_page(
    read: Callable[[MessagePage], LoadedSession], before: int | None, limit: int
) -> list[dict[str, Any]]:
    """Load the `limit` messages before number `before` (or the newest), oldest first, as JSON with `toolCalls`."""
    if limit < 1:
        return []
    older, loaded = load_older_messages(read, before, limit)
    calls = {call.id: call for call in loaded.session.tool_calls}
    found = []
    for message in older[-limit:]:
        shown = msgspec.to_builtins(message)
        shown["toolCalls"] = [msgspec.to_builtins(calls[name]) for name in message.call_ids if name in calls]
        found.append(shown)
    return found


def load_older_messages(
    read: Callable[[MessagePage], LoadedSession], before: int | None, limit: int
) -> tuple[list[Message], LoadedSession]:
    """Load at least `limit` messages if there are as many: numbers between them may be missing."""
    count = limit
    while True:
        loaded = read(MessagePage(before, count))
        older = [message for message in loaded.session.messages if before is None or message.id < before]
        if len(older) >= limit or not loaded.skipped:
            return older, loaded
        count *= 4


class OpenSession:
    """The session of a conversation, from its first message on. `messages` and `calls` are those of the running
    turn."""

    def __init__(
        self,
        service: ChatRecordingService,
        workspace: str,
        origin: str | None,
        clock: Clock,
        parent: ParentCall | None = None,
    ) -> None:
        self.id: str | None = None
        self.draft_id = make_id()  # Todos that come before the first message belong to it.
        self.title = self.draft_title = ""  # The draft is made from the first message.
        self.calls: dict[str, ToolCallRecord] = {}
        self.messages: list[Message] = []
        self.service = service
        self.workspace = workspace
        self.origin = origin
        self.sender = ""  # This paired device sends the turn's message.
        self._parent = parent
        self._clock = clock
        self._call_count = 0
        self._metadata = SessionMetadata()

    def require_id(self) -> str:
        if self.id is None:
            raise NotFoundError("No session yet.", action="Send a message first.")
        return self.id

    async def create(self, model: Model) -> str:
        self.id = await self.service.create_session(
            model.name,
            model.provider.name,
            workspace=self.workspace,
            origin=self.origin,
            context_window=model.window,
            parent=self._parent,
            session_id=self.draft_id,
        )
        if self.title:
            await self.rename(self.title)
        return self.id

    async def resume(self, session_id: str, since: int) -> LoadedSession:
        """Resume a session. Messages up to number `since` need not be read; `load` reads them too."""
        loaded = await self.service.open_session(session_id, since)
        self.id, self._call_count = loaded.session.session_id, loaded.calls_so_far
        self._metadata, self.title = loaded.session.metadata, loaded.session.metadata.title
        return loaded

    def begin_turn(self) -> None:
        self.calls, self.messages = {}, []

    async def record_message(self, role: Role, parts: tuple[AnyPart, ...], *, interrupted: bool = False) -> Message:
        at = format_stamp(self._clock())
        sender = self.sender if role == "user" else ""
        draft = Message(role=role, parts=parts, timestamp=at, interrupted=interrupted, origin=sender)
        return await self._write_message(draft)

    async def record_answer(
        self,
        parts: tuple[AnyPart, ...],
        calls: Sequence[ToolCall],
        *,
        cut: str = "",
        written: str = "",
        origin: str = "",
    ) -> Message:
        """Record the model's answer and the start of its calls. They were parsed from `written`; `cut` is the text
        after them."""
        at, asked = format_stamp(self._clock()), tuple(ToolCallPart(call.id) for call in calls)
        origin = origin if calls or any(isinstance(part, ThinkingPart) for part in parts) else ""
        draft = Message(role="assistant", parts=(*parts, *asked), timestamp=at, origin=origin)
        message = msgspec.structs.replace(draft, cut=cut.strip(), written=written)
        return await self._write_message(message, [start_record(call, at) for call in calls])

    async def _write_message(self, draft: Message, started: Sequence[ToolCallRecord] = ()) -> Message:
        message = await self.service.record_message(self.require_id(), draft, started)
        self.messages.append(message)
        self.calls |= {call.id: msgspec.structs.replace(call, message_id=message.id) for call in started}
        if message.role == "user" and not self.title:
            self.title = self.draft_title = make_title(message)
        return message

    async def record_text(self, part: type[TextPart | ThinkingPart], text: str) -> None:
        await self.service.record_text(self.require_id(), part, text)

    async def record_tool_call(self, record: ToolCallRecord) -> None:
        """Record that a call starts or has ended. Its start may already be recorded with the answer."""
        known = self.calls.get(record.id)
        self.calls[record.id] = record
        if known is None or (known.status, known.args) != (record.status, record.args):
            await self.service.record_tool_call(self.require_id(), record)

    def make_call_id(self) -> str:
        """Make a call id: unique in the session, and short to cite."""
        self._call_count += 1
        return f"c{self._call_count}"

    async def save(self) -> None:
        await self.service.end_turn(self.require_id())

    def load(self, page: MessagePage | None = None) -> Session:
        """Load everything recorded so far, or with `page` at least that much of it."""
        return self.service.load(self.require_id(), page).session

    def load_user_messages(self) -> dict[int, str]:
        """Load the user's messages in full, by number."""
        return self.service.read_user_words(self.id) if self.id else {}

    def load_page(self, before: int | None, limit: int) -> list[dict[str, Any]]:
        """Load a page of the archive, oldest first, as plain JSON. Return [] before the session exists."""
        if (session_id := self.id) is None:
            return []
        return load_history_page(lambda part: self.service.load(session_id, part), before, limit)

    async def record_compression(self, record: CompressionRecord) -> None:
        """Count a compression, and keep its full checkpoint in the history."""
        count = self._metadata.compression_count + 1
        self._metadata = msgspec.structs.replace(self._metadata, compression_count=count)
        await self.add_to_history("compression_history", msgspec.to_builtins(record), compressionCount=count)

    async def record_failed_turn(self, reason: str, message: str) -> None:
        """Record why the turn ended without an answer."""
        if self.messages:
            failed = FailedTurn(message_id=self.messages[-1].id, reason=reason, message=message)
            await self.add_to_history("failed_turns", failed)

    async def add_to_history(self, name: HistoryName, entry: dict[str, Any] | FailedTurn, **changes: Any) -> None:
        """Add an entry to a history in the metadata, together with other changes of it."""
        most = MAX_FAILED_TURNS if name == "failed_turns" else 0
        history = (*(getattr(self._metadata, name) or ()), entry)[-most:]
        self._metadata = msgspec.structs.replace(self._metadata, **{name: history})
        keys = dict(zip(SessionMetadata.__struct_fields__, SessionMetadata.__struct_encode_fields__, strict=True))
        await self.update_metadata({**changes, keys[name]: msgspec.to_builtins(history)})

    async def update_metadata(self, changes: dict[str, Any]) -> None:
        """Set metadata of the session, if there is one."""
        if self.id:
            await self.service.update_metadata(self.id, changes)

    async def rename(self, title: str) -> None:
        """Set the title: at once, or when the session begins."""
        self.title = title
        await self.update_metadata({"title": title})

    async def ensure_saved(self) -> None:
        """Check that all messages are on disk. Raises `UnsavedError` if something is in memory only."""
        if self.id:
            await self.service.ensure_saved(self.id)

    async def keep(self) -> None:
        """Keep the session after it closes, even if it has no messages."""
        if self.id:
            await self.service.keep_session(self.id)

    async def close(self) -> None:
        """Close the session. Raises `UnsavedError` if something could not be written."""
        session_id, self.id = self.id, None
        if session_id:
            await self.service.close_session(session_id)
