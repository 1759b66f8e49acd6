"""Owns the conversations of the daemon and their turns: a client that goes away stops nothing (W)."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from ollm.daemon.attachments import PendingAttachments
from ollm.daemon.event_log import EventFrame, EventLog
from ollm.domain.errors import BusyError, NotFoundError, OllmError
from ollm.domain.events import AnyEvent, ConfirmationRequested, TurnFinished
from ollm.runtime.base import Attachment
from ollm.runtime.conversation import LocalConversation
from ollm.runtime.conversation_options import ConversationOptions

Opener = Callable[[ConversationOptions, Callable[[], bool]], AbstractAsyncContextManager[LocalConversation]]


class ClosingError(OllmError):
    """The daemon is shutting down and takes nothing new."""


class TooManyClientsError(OllmError):
    """As many clients listen as may."""


class DaemonSession:
    """A conversation that is open here, with its newest events, what was asked, and the turn under way."""

    def __init__(self, conversation: LocalConversation, workspace: Path, stack: AsyncExitStack) -> None:
        self.conversation = conversation
        self.workspace = workspace
        self.log = EventLog()
        self.attachments = PendingAttachments()
        self.asked: set[str] = set()  # the questions there were, answered or not
        self.turn: asyncio.Task[None] | None = None
        self.turn_after = 0  # number of the last event before the turn
        self._stack = stack
        self._stop = conversation.parts.stream.listen(self._record_event)

    @property
    def session_id(self) -> str:
        return self.conversation.session_id or ""

    @property
    def running(self) -> bool:
        return self.turn is not None and not self.turn.done()

    def is_at(self, workspace: Path) -> bool:
        return os.path.realpath(self.workspace) == os.path.realpath(workspace)

    def _record_event(self, event: AnyEvent) -> None:
        if isinstance(event, ConfirmationRequested):
            self.asked.add(event.correlation_id)
        self.log.add(event)

    async def close(self) -> None:
        await self._stack.aclose()
        if self.turn is not None:
            await asyncio.wait([self.turn])
        self._stop()
        self.log.close()


class Hub:
    """One per daemon. `opener` builds a conversation and is told how to ask whether somebody listens."""

    def __init__(self, opener: Opener, most_clients: int) -> None:
        self._opener = opener
        self._most_clients = most_clients
        self._held: dict[str, DaemonSession] = {}
        self._opening: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.closing = False

    async def open(self, opening: ConversationOptions) -> tuple[str, bool]:
        """A session, new or resumed: its id, and whether it was resumed. Another one of the workspace is closed."""
        async with self._opening[os.path.realpath(opening.workspace)]:
            self._refuse_when_closing()
            here = [held for held in self._held.values() if held.is_at(opening.workspace)]
            if opening.session and any(held.session_id == opening.session for held in here):
                return opening.session, True
            for other in here:
                await self.close(other.session_id)
            held = await self._open_session(opening)
            self._held[held.session_id] = held
            if self.closing:
                await self.close(held.session_id)
            self._refuse_when_closing()
            return held.session_id, opening.session is not None

    async def _open_session(self, opening: ConversationOptions) -> DaemonSession:
        stack = AsyncExitStack()
        found: list[DaemonSession] = []
        try:
            opened = self._opener(opening, lambda: bool(found and found[0].log.reader_count))
            conversation = await stack.enter_async_context(opened)
            held = DaemonSession(conversation, opening.workspace, stack)
            found.append(held)
            await conversation.create_session()
        except BaseException:
            await stack.aclose()
            raise
        return held

    @property
    def count(self) -> int:
        return len(self._held)

    def get(self, session_id: str) -> DaemonSession:
        held = self._held.get(session_id)
        if held is None:
            raise NotFoundError(f"Session {session_id} is not open here.", action="Open it with POST /sessions.")
        return held

    def find(self, session_id: str) -> DaemonSession | None:
        return self._held.get(session_id)

    def refuse_when_full(self) -> None:
        if sum(held.log.reader_count for held in self._held.values()) >= self._most_clients:
            raise TooManyClientsError(
                f"{self._most_clients} clients are already connected.",
                action="Disconnect one, or raise daemon.maxClients.",
            )

    def start_turn(self, session_id: str, text: str, attachments: tuple[str, ...] = ()) -> int:
        """Begin a turn; the number of the last event before it. `attachments` are ids of what waits in the session."""
        self._refuse_when_closing()
        held = self.get(session_id)
        if held.running:
            raise BusyError("A turn is running in this session.", action="Wait for it, or cancel it.")
        beside = held.attachments.take(attachments)
        before = held.turn_after = held.log.last_seq
        held.turn = asyncio.create_task(self._run_turn(held, text, beside), name=f"turn of {session_id}")
        return before

    async def _run_turn(self, held: DaemonSession, text: str, attachments: tuple[Attachment, ...]) -> None:
        async with held.conversation.turn(text, attachments) as events:
            async for _ in events:
                pass

    async def follow_turn(self, session_id: str, after: int) -> AsyncIterator[EventFrame]:
        """The events of the turn that began after number `after`, up to its end."""
        async for frame in self.get(session_id).log.read_after(after):
            yield frame
            if isinstance(frame.event, TurnFinished):
                return

    async def close(self, session_id: str) -> None:
        held = self._held.pop(session_id, None)
        if held is not None:
            await held.close()

    async def drain(self, seconds: float) -> None:
        """Let running turns end for so long, then close everything."""
        self.closing = True
        turns = [held.turn for held in self._held.values() if held.turn is not None and held.running]
        if turns:
            await asyncio.wait(turns, timeout=seconds)
        for session_id in list(self._held):
            await self.close(session_id)

    async def close_requested(self) -> None:
        """Close what another process has asked for."""
        for session_id, held in list(self._held.items()):
            if held.conversation.asked_to_close():
                await self.close(session_id)

    def _refuse_when_closing(self) -> None:
        if self.closing:
            raise ClosingError("The daemon is shutting down.", action="Start it again: ollm daemon start.")
