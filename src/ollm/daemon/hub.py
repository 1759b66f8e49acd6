"""The daemon's conversations and their turns. Turns keep running when a client disconnects (W)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ollm.daemon.bodies import MessageBody, PendingAttachments, ShellReply
from ollm.daemon.event_log import EventFeed, EventFrame, EventLog, EventReader
from ollm.domain.errors import BusyError, NotFoundError, OllmError, UnsavedError
from ollm.domain.events import (
    ConfirmationRequested,
    ConfirmationResolved,
    Event,
    MessageRecorded,
    Notice,
    TextDelta,
    ThinkingDelta,
    TurnFinished,
    TurnStarted,
)
from ollm.domain.struct import Data
from ollm.runtime.base import Attachment, ConversationOptions
from ollm.runtime.conversation import LocalConversation
from ollm.runtime.mentions import attach_file, describe_missing_files, find_mentions

MAX_TURNS = 30
MAX_NOTICES = 30
MIN_WRITING_SECONDS = 0.05


class TurnSpeed(Data, frozen=True):
    """Speed of one turn. Times are null if nothing was written."""

    message_id: int
    first_word_seconds: float | None
    tokens_per_second: float | None


class TurnSpeeds:
    """Measures turns from the events of a session."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.turns: deque[TurnSpeed] = deque(maxlen=MAX_TURNS)
        self._clock = clock
        self._started: tuple[int, float] | None = None
        self._first_word: float | None = None
        self._writing_since: float | None = None
        self._writing_seconds = 0.0

    def record_event(self, event: Event) -> None:
        if isinstance(event, TurnStarted):
            self._started = (event.message_id, self._clock())
            self._first_word = self._writing_since = None
            self._writing_seconds = 0.0
        elif isinstance(event, TextDelta | ThinkingDelta) and self._writing_since is None:
            self._writing_since = self._clock()
            self._first_word = self._first_word or self._writing_since
        elif isinstance(event, MessageRecorded) and self._writing_since is not None:
            self._writing_seconds += self._clock() - self._writing_since
            self._writing_since = None
        elif isinstance(event, TurnFinished) and self._started is not None:
            self.turns.append(self._make_speed(*self._started, event))
            self._started = None

    def _make_speed(self, message_id: int, started: float, event: TurnFinished) -> TurnSpeed:
        tokens = event.usage.completion_tokens
        quick = tokens and self._writing_seconds >= MIN_WRITING_SECONDS
        return TurnSpeed(
            message_id=message_id,
            first_word_seconds=self._first_word - started if self._first_word is not None else None,
            tokens_per_second=tokens / self._writing_seconds if quick else None,
        )


Opener = Callable[[ConversationOptions], AbstractAsyncContextManager[LocalConversation]]


MIN_IDLE_CHECK_SECONDS = 0.5


class HubLimits(Data, frozen=True):
    """Limits on listeners, open sessions and the time an unused session stays open."""

    most_clients: int
    most_sessions: int
    idle_seconds: float


class ClosingError(OllmError):
    """The daemon is shutting down and takes nothing new."""


class TooManyClientsError(OllmError):
    """No place is left for another client."""


class DaemonSession:
    """An open conversation with its newest events, its questions and its turn."""

    def __init__(
        self,
        conversation: LocalConversation,
        workspace: Path,
        stack: AsyncExitStack,
        feed: EventFeed,
        notify: Callable[[DaemonSession, Event], None],
    ) -> None:
        self._feed, self._notify = feed, notify
        self.conversation = conversation
        self.workspace = workspace
        self.log = EventLog()
        self.attachments = PendingAttachments()
        self.question_ids: set[str] = set()  # All questions, also the answered ones.
        self.open_questions: dict[str, ConfirmationRequested] = {}
        self.turn_notices: deque[Notice] = deque(maxlen=MAX_NOTICES)  # Notices of the last turn.
        self.speeds = TurnSpeeds()
        self.turn: asyncio.Task[Any] | None = None
        self.shell: asyncio.Task[Any] | None = None  # The running turn if it is a command of the user.
        self._outputs: dict[str, ShellReply] = {}  # Outputs of the user's commands by attachment.
        self.turn_after = 0
        self.turn_message = 0
        self._turn_over = True  # True once its last event is sent; saving may follow.
        self.last_used = time.monotonic()
        self._stack = stack
        self._stop = conversation.parts.stream.add_listener(self._record_event)

    @property
    def session_id(self) -> str:
        return self.conversation.session_id or ""

    @property
    def running(self) -> bool:
        return self.turn is not None and not self.turn.done()

    @property
    def working(self) -> bool:
        """True while a turn runs, as seen by those who follow its events."""
        return self.running and not self._turn_over

    async def begin_turn(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> int:
        """Start `work` as the turn; returns the number of the last event before it. A turn that is only being saved
        does not block it."""
        while (turn := self.turn) is not None and not turn.done():
            if self.working:
                raise BusyError("A turn is running in this session.", action="Wait for it, or cancel it.")
            await asyncio.wait([turn])
        begun = work()
        self._turn_over = False
        self.turn_after, self.turn_message = self.log.last, 0
        self.turn = asyncio.create_task(begun, name=f"turn of {self.session_id}")
        return self.turn_after

    async def run_shell(self, command: str) -> ShellReply:
        """Run a command of the person, through policy and in the working box. Nothing is recorded; the output waits for
        the next message, even if the client goes away."""
        await self.begin_turn(lambda: self._run_shell(command))
        self.shell = self.turn
        assert self.shell is not None
        return await asyncio.shield(self.shell)

    async def _run_shell(self, command: str) -> ShellReply:
        parts, ok, output = self.conversation.parts, False, "The command was stopped."
        try:
            (record,) = await parts.dispatch.get().run_unrecorded("shell", {"command": command})
            ok, output = not record.error, record.result.llm_content if record.result else ""
        except asyncio.CancelledError:
            pass  # The user cancelled it, and the task ends here.
        finally:
            parts.stream.emit(TurnFinished(reason="answered"))
        attachment = self.attachments.keep_output(command, output)
        return self._outputs.setdefault(
            attachment, ShellReply(command=command, ok=ok, output=output, attachment=attachment)
        )

    def list_outputs(self) -> list[ShellReply]:
        """List the outputs of the person's commands that no message has taken."""
        self._outputs = {name: one for name, one in self._outputs.items() if self.attachments.holds(name)}
        return list(self._outputs.values())

    async def cancel(self) -> None:
        if self.shell and not self.shell.done():
            self.shell.cancel()
        await self.conversation.cancel()

    def attach_mentions(self, text: str) -> tuple[list[Attachment], list[str]]:
        """Attach the files of the workspace that a text names; returns the attachments and what is missing."""
        boundary = self.conversation.parts.files.get().boundary
        names = find_mentions(text, boundary.workspace)
        found = [one for name in names for one in attach_file(name, boundary)]
        return found, describe_missing_files(names, boundary.workspace)

    def is_at(self, workspace: Path) -> bool:
        return os.path.realpath(self.workspace) == os.path.realpath(workspace)

    def _record_event(self, event: Event) -> None:
        if isinstance(event, ConfirmationRequested):
            self.question_ids.add(event.correlation_id)
            self.open_questions[event.correlation_id] = event
        if isinstance(event, ConfirmationResolved):
            self.open_questions.pop(event.correlation_id, None)
        if isinstance(event, TurnFinished):
            self._turn_over = True
        if isinstance(event, TurnStarted):
            self.turn_notices.clear()
        if isinstance(event, Notice):
            self.turn_notices.append(event)
        if isinstance(event, MessageRecorded) and event.role == "user" and not self.turn_message:
            self.turn_message = event.message_id
        self.last_used = time.monotonic()
        self.speeds.record_event(event)
        frame = EventFrame(event)
        self.log.add(event.seq, frame)
        self._feed.add(self._feed.last + 1, frame)
        self._notify(self, event)

    @property
    def idle(self) -> bool:
        return not self.running and not self.log.readers

    async def ensure_saved(self) -> None:
        """Raise UnsavedError if messages are only in memory."""
        await self.conversation.parts.session.ensure_saved()

    async def close(self) -> None:
        try:
            await self._stack.aclose()
        finally:
            if self.turn is not None:
                await asyncio.wait([self.turn])
            self._stop()
            self.log.close()


class Hub:
    """One per daemon. `opener` builds a conversation, and `notify` is called with each event."""

    def __init__(
        self,
        opener: Opener,
        limits: HubLimits,
        notify: Callable[[DaemonSession, Event], None] = lambda _held, _event: None,
    ) -> None:
        self._opener, self._notify = opener, notify
        self._limits = limits
        self._held: dict[str, DaemonSession] = {}
        self._feed = EventFeed()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.closing = False

    async def open(self, options: ConversationOptions) -> tuple[str, bool]:
        """Open a session, new or resumed; returns its id and if it was resumed. Closes the workspace's other one unless
        `beside` is set. One that works is closed by `force` only: otherwise the new one is opened beside it."""
        async with self._opening_locks[os.path.realpath(options.workspace)]:
            self._refuse_when_closing()
            here = [held for held in self._held.values() if held.is_at(options.workspace)]
            if options.session and any(held.session_id == options.session for held in here):
                return options.session, True
            working = [held for held in here if held.running and not options.force]
            for other in here if not options.beside else ():
                if other not in working:
                    await self.close(other.session_id)
            options = replace(options, beside=options.beside or bool(working))
            await self._make_room_for_session()
            held = await self._open_session(options)
            self._held[held.session_id] = held
            self._watch_idle_sessions()
            if self.closing:
                await self.close(held.session_id)
            self._refuse_when_closing()
            return held.session_id, options.session is not None

    async def _open_session(self, options: ConversationOptions) -> DaemonSession:
        stack = AsyncExitStack()
        try:
            conversation = await stack.enter_async_context(self._opener(options))
            conversation.idle.is_busy_elsewhere = lambda: any(other.running for other in self._held.values())
            held = DaemonSession(conversation, options.workspace, stack, self._feed, self._notify)
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
        if held is not None:
            held.last_used = time.monotonic()
        else:
            raise NotFoundError(f"Session {session_id} is not open here.", action="Open it with POST /sessions.")
        return held

    def describe(self, session_id: str) -> dict[str, bool | int]:
        """Report if a session is open here, if a turn runs in it, and its number of open questions."""
        held = self._held.get(session_id)
        questions = len(held.open_questions) if held else 0
        return {"open": held is not None, "running": held is not None and held.working, "questions": questions}

    def find(self, session_id: str) -> DaemonSession | None:
        return self._held.get(session_id)

    def make_room_for_client(self) -> None:
        """If as many listen as may, end the oldest stream of a session without a turn, else the oldest of the feed.
        Raises TooManyClientsError if there is neither."""
        most = self._limits.most_clients
        if sum(len(log.readers) for log in (self._feed, *(held.log for held in self._held.values()))) < most:
            return
        idle = [reader for held in self._held.values() if not held.running for reader in held.log.readers]
        readers = idle or self._feed.readers
        if not readers:
            raise TooManyClientsError(
                f"{most} clients are already connected.", action="Disconnect one, or raise daemon.maxClients."
            )
        min(readers, key=lambda reader: reader.opened).release()

    async def _make_room_for_session(self) -> None:
        """If too many sessions are open, close the one that was unused longest."""
        while len(self._held) >= self._limits.most_sessions:
            idle = [held for held in self._held.values() if held.idle]
            if not idle:
                raise TooManyClientsError(
                    f"{len(self._held)} sessions are open and in use.", action="Close one with DELETE /sessions/ID."
                )
            await self.close(min(idle, key=lambda held: held.last_used).session_id)

    def _watch_idle_sessions(self) -> None:
        """Set a timer for the session that was unused longest; nothing polls."""
        if self._timer is None and self._held and not self.closing:
            oldest = min(held.last_used for held in self._held.values())
            wait = max(oldest + self._limits.idle_seconds - time.monotonic(), MIN_IDLE_CHECK_SECONDS)
            self._timer = asyncio.get_running_loop().call_later(wait, self._start_closing_idle)

    def _start_closing_idle(self) -> None:
        task = asyncio.ensure_future(self._close_idle_sessions())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _close_idle_sessions(self) -> None:
        limit = time.monotonic() - self._limits.idle_seconds
        for held in list(self._held.values()):
            if not held.idle:
                held.last_used = time.monotonic()
            elif held.last_used <= limit:
                with contextlib.suppress(OllmError):  # A session that cannot be saved stays open and is tried again.
                    await self.close(held.session_id)
                held.last_used = time.monotonic()
        self._timer = None
        self._watch_idle_sessions()

    async def start_turn(self, held: DaemonSession, message: MessageBody, sender: str = "") -> int:
        """Start a turn, for the paired device `sender` if there is one; returns the number of the last event before
        it."""
        self._refuse_when_closing()

        def begin() -> Coroutine[Any, Any, None]:
            attachments = held.attachments.take(message.attachments)
            held.conversation.parts.session.sender = sender
            return self._run_turn(held, message, attachments)

        return await held.begin_turn(begin)

    async def _run_turn(self, held: DaemonSession, message: MessageBody, attachments: tuple[Attachment, ...]) -> None:
        named, problems = await asyncio.to_thread(held.attach_mentions, message.text if message.mentions else "")
        async with held.conversation.turn(message.text, (*named, *attachments)) as events:
            async for event in events:
                if isinstance(event, TurnStarted):
                    for problem in problems:
                        held.conversation.parts.stream.emit(Notice(level="warning", text=problem))

    def follow_all(self, known: str | None, sessions: frozenset[str]) -> EventReader:
        """Read the events of all sessions, or of those named, after the known one; counts as a client."""
        running = [held for held in self._held.values() if held.running]
        frames = (frame for held in running for frame in held.log.list_frames(held.turn_after))
        return self._feed.follow(known, frames, sessions)

    async def close(self, session_id: str) -> None:
        """Close a session. Raises UnsavedError, and keeps it open, if messages are only in memory."""
        held = self._held.get(session_id)
        if held is not None:
            await held.ensure_saved()
            await self.discard(session_id)

    async def discard(self, session_id: str) -> None:
        """Close a session even if messages are not saved."""
        held = self._held.pop(session_id, None)
        if held is not None:
            await held.close()

    async def drain(self, seconds: float) -> None:
        """Give running turns `seconds` to end, except those that wait for an answer: nobody can give one any more. Then
        close everything."""
        self.closing = True
        turns = [held.turn for held in self._held.values() if held.turn and held.running and not held.open_questions]
        if turns:
            await asyncio.wait(turns, timeout=seconds)
        self._feed.close()
        failed: list[UnsavedError] = []
        for session_id in list(self._held):
            try:
                await self.discard(session_id)
            except UnsavedError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    async def close_requested(self) -> None:
        """Close sessions that other processes asked for; a polite request gets only unused ones."""
        for session_id, held in list(self._held.items()):
            if held.conversation.asked_to_close(idle=held.idle):
                await self.close(session_id)

    def _refuse_when_closing(self) -> None:
        if self.closing:
            raise ClosingError("The daemon is shutting down.", action="Start it again: ollm daemon start.")
