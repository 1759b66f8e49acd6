"""A conversation on this machine: owns the session and the running turn, and sends events to listeners."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import msgspec

from ollm.domain.context import Usage
from ollm.domain.errors import BusyError, OllmError, TurnFailedError
from ollm.domain.events import Event, Notice, TextDelta, ToolStarted, TurnFinished
from ollm.domain.messages import AnyPart
from ollm.domain.tools import ConfirmationAnswer
from ollm.runtime.base import (
    Attachment,
    CommandReply,
    ForeignTurn,
    Status,
    TurnObserver,
    TurnReport,
    build_message_parts,
)
from ollm.runtime.changes import get_approval, update_tools
from ollm.runtime.parts import ConversationParts
from ollm.runtime.resume.workspace_record import RESUMED_ENTRY_KEY
from ollm.runtime.turn import Turn
from ollm.tools.framework.base import Tool, ToolSpec

log = logging.getLogger("ollm.conversation")
STOP_AGAIN_SECONDS = 2.0  # A second stop must not interrupt what the first one saves.
QUIET_SECONDS = 2.0


class LocalConversation:
    """One session with one turn at a time. Starts empty: the first message creates the session."""

    def __init__(self, parts: ConversationParts, observers: Sequence[TurnObserver] = ()) -> None:
        self.parts = parts
        self._observers = observers
        self._turn: asyncio.Task[None] | None = None
        self.closed = False
        self._warned: set[str] = set()
        self.busy = False  # It is True while a turn runs; a command outside a turn does not count.
        self._commands: set[asyncio.Task[CommandReply]] = set()
        self._stopped_at = 0.0
        self.idle = IdleCompaction(parts)

    @property
    def session_id(self) -> str | None:
        return self.parts.session.id

    @asynccontextmanager
    async def turn(self, text: str, attachments: tuple[Attachment, ...] = ()) -> AsyncIterator[AsyncIterator[Event]]:
        """Run one turn and yield its events up to and including `TurnFinished`. Leaving the block early cancels it. The
        text goes to the model unchanged, whatever it begins with: `command` runs commands."""
        if self._turn and not self._turn.done():
            raise BusyError("A turn is running in this session.", action="Wait for it, or stop it.")
        await self.idle.stop()
        async with self.parts.stream.follow_turn() as events:
            self._turn = asyncio.create_task(self._run_turn(text, attachments), name="turn")
            try:
                yield events
            finally:
                await self._end_turn()

    async def ask(self, text: str, attachments: tuple[Attachment, ...] = ()) -> str:
        """Run one turn to its end and return the answer. Raises TurnFailedError if it ends in any other way. Its
        tokens are added to `usage`. If no listener answers questions, policy decides."""
        answer: list[str] = []
        async with self.turn(text, attachments) as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    answer.clear()  # Only the text after the last call is the answer.
                elif isinstance(event, TextDelta):
                    answer.append(event.text)
                elif isinstance(event, TurnFinished) and event.reason != "answered":
                    raise TurnFailedError(event.reason, event.message)
        return "".join(answer).strip()

    @property
    def usage(self) -> Usage:
        """Total tokens of all turns since the conversation was opened."""
        return self.parts.state.usage

    @property
    def cost(self) -> float:
        """Total cost of these tokens by `provider.price`, or 0 if no price is set."""
        return self.parts.state.cost

    def follow_turn(self, after: int) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Yield the remaining events of the running turn."""
        return self.parts.stream.follow_turn()

    async def wait_for_foreign_turn(self) -> ForeignTurn | None:
        """Return None: no other client can start a turn in a session that this process has open."""
        return None

    def add_tool(self, tool: ToolSpec | type[Tool[None]]) -> None:
        """Let the model call one more tool from the next turn on. It replaces a tool of the same name."""
        self.parts.registry.get().register(tool)
        update_tools(self.parts)

    def asked_to_close(self, *, idle: bool = False) -> bool:
        """Return True if another process wants this workspace."""
        return self.parts.asked_to_close(idle=idle)

    async def respond(self, correlation_id: str, answer: ConfirmationAnswer) -> bool:
        return self.parts.bus.get().respond(correlation_id, answer)

    def note_typing(self) -> None:
        self.idle.cancel()

    async def cancel(self) -> None:
        """Stop the turn or a command. The turn's work is then saved; a second cancel right after does not interrupt
        that."""
        self.note_typing()
        for command in self._commands:
            command.cancel()
        if self._turn and not self._turn.done():
            self._stop(self._turn)

    def _stop(self, turn: asyncio.Task[None]) -> None:
        now = self.parts.monotonic()
        if turn.cancelling() and now - self._stopped_at < STOP_AGAIN_SECONDS:
            return
        self._stopped_at = now
        turn.cancel()

    async def command(self, name: str, arguments: str = "") -> CommandReply:
        from ollm.runtime.commands import leaves_context, run_command

        if not self.busy and not leaves_context(name, arguments):
            await self.idle.stop()
        before = self._read_lasting_state()
        command = asyncio.create_task(run_command(self.parts, name, arguments, busy=self.busy), name=f"/{name}")
        self._commands.add(command)
        command.add_done_callback(self._commands.discard)
        try:
            reply = await command
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            reply = CommandReply(text="Stopped.", ok=False)
        if self._read_lasting_state() != before and not self.closed:
            await self.create_session()
            for observer in self._observers:
                await self._warn_on_failure(observer.context_changed())
        return reply

    def _read_lasting_state(self) -> tuple[object, ...]:
        """Read the state commands change and a crash must not lose: context, goals, the user's entries, mode."""
        prompt = self.parts.prompt
        return prompt.revision, prompt.goals.stack, tuple(prompt.entries.get_context_by_source("user")), prompt.mode

    async def status(self) -> Status:
        parts, budget = self.parts, self.parts.prompt.compute_budget()
        return Status(
            session_id=parts.session.id,
            title=parts.session.title,
            model=parts.state.model.name,
            provider=parts.state.model.provider.name,
            base_url=parts.state.model.provider.base_url,
            window=budget.window,
            mode=parts.prompt.mode,
            approval=get_approval(parts),
            workspace=str(parts.workspace),
            used=parts.prompt.used_tokens,
            limit=budget.limit,
            trigger=budget.trigger,
            fixed=budget.fixed + budget.checkpoints,
            todos=parts.notes.get().list_todos() if parts.session.id else (),
            notices=tuple(parts.notices),
            sandbox=parts.sandbox.get().known_level,
        )

    async def history(self, before: int | None = None, limit: int = 50) -> list[dict[str, Any]]:
        return self.parts.session.load_page(before, limit)

    async def close(self) -> None:
        """Stop the turn, end background work and close the session. Safe to call twice."""
        if self.closed:
            return
        self.closed = True
        await self.idle.stop()
        await self._end_turn()
        if session_id := self.session_id:
            for observer in self._observers:
                await self._warn_on_failure(observer.session_closed(session_id))
        if dispatch := self.parts.dispatch.built:
            await dispatch.close()
        await self.parts.closing.aclose()

    async def _run_turn(self, text: str, attachments: tuple[Attachment, ...]) -> None:
        """Run one turn and finish it, whatever happens."""
        parts, finished = self.parts, TurnFinished(reason="model-error")

        def emit(event: Event) -> None:
            nonlocal finished
            if isinstance(event, TurnFinished):
                finished = event  # It is sent when everything is saved.
            else:
                parts.stream.emit(event)

        try:
            await self.create_session()
            parts.session.begin_turn()
            self.busy = True
            try:
                turn, later = Turn(parts, emit, self._observers), list[tuple[AnyPart, ...]]()
                if parts.state.material[1]:
                    from ollm.runtime.commands.git_changes import take_material

                    attachments, later = take_material(parts.state, text, attachments)
                attached = [each.text for each in attachments]
                await turn.run(build_message_parts(text, attachments), text, attached, later)
            finally:
                self.busy = False
                finished = await self._save_turn(finished)
        except Exception as error:
            log.exception("A turn failed.", extra={"operation": "turn"})
            parts.stream.emit(Notice(level="error", text=f"Internal error: {error}"))
            raise
        finally:
            parts.stream.emit(finished)
        if finished.reason == "answered" and not self.closed:
            self.idle.start()

    async def _save_turn(self, finished: TurnFinished) -> TurnFinished:
        """Save the turn and notify the observers. Return the finish event with the tokens of tasks added."""
        session, state = self.parts.session, self.parts.state
        state.cost += state.model.compute_cost(finished.usage)
        if self.parts.tasks and (tasks := self.parts.tasks.built):
            used, cost = tasks.take_usage()
            state.cost += cost
            finished = msgspec.structs.replace(finished, usage=finished.usage + used)
        report = TurnReport(
            session_id=session.require_id(),
            messages=tuple(session.messages),
            calls=tuple(session.calls.values()),
            reason=finished.reason,
            usage=finished.usage,
        )
        self.parts.prompt.entries.remove_context(RESUMED_ENTRY_KEY)
        self.parts.state.last_loop = finished.message if finished.reason == "loop" else ""
        if finished.reason != "answered":
            why = self.parts.stream.redact(finished.message)
            await self._warn_on_failure(session.record_failed_turn(finished.reason, why))
        await self._warn_on_failure(session.save())
        state.usage = state.usage + finished.usage
        for observer in self._observers:
            await self._warn_on_failure(observer.after_turn(report))
        return finished

    async def create_session(self) -> None:
        """Create the session now, unless there is one."""
        if self.parts.session.id is None:
            session_id = await self.parts.session.create(self.parts.state.model)
            self.parts.stream.session_id = session_id
            self.parts.prompt.set_session_id(session_id)
            for observer in self._observers:
                await self._warn_on_failure(observer.session_opened(session_id))

    async def _warn_on_failure(self, work: Awaitable[None]) -> None:
        """Do work beside the turn. On failure, warn the user and continue the turn."""
        try:
            await work
        except OllmError as error:
            log.warning(error.message, extra={"operation": "turn", "action": error.action})
            self.parts.stream.emit(Notice(level="warning", text=str(error)))
        except OSError as error:
            told = f"{error.filename or 'A file'} could not be written: {error.strerror}."
            log.warning(told, exc_info=error, extra={"operation": "turn"})
            if told not in self._warned:
                self._warned.add(told)
                self.parts.stream.emit(Notice(level="warning", text=told))

    async def _end_turn(self) -> None:
        if self._turn is None:
            return
        turn, self._turn = self._turn, None
        if not turn.done():
            self._stop(turn)
        await asyncio.wait([turn])
        if not turn.cancelled():
            turn.result()


Conversation = LocalConversation  # The library uses this name.


class IdleCompaction:
    """Compacts while the server is idle: one request at a time, and only if the next turn would need it anyway."""

    def __init__(self, parts: ConversationParts) -> None:
        self._parts = parts
        self.is_busy_elsewhere: Callable[[], bool] = lambda: False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """After an answer, compact if that is near, and let the models of roles do their chores."""
        if self._parts.roles or (self._is_due() and hasattr(self._parts.state.model.provider, "is_idle")):
            self._task = asyncio.create_task(self._work(), name="idle compaction")

    def cancel(self) -> None:
        """Cancel the request, because the user is about to send a message."""
        if self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        """Stop the request and wait for its end. Work already done stays."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _is_due(self) -> bool:
        """Return True if one more turn of the usual size would start a compaction."""
        wanted, prompt = self._parts.compactor.settings, self._parts.prompt
        if not wanted.enabled or wanted.idle == "off" or wanted.strategy == "truncate":
            return False
        turns = max(1, sum(message.role == "user" for message in prompt.get_active_context().messages))
        return prompt.message_tokens * (turns + 1) > prompt.compute_budget().trigger * turns

    async def _work(self) -> None:
        await asyncio.sleep(QUIET_SECONDS)
        if self.is_busy_elsewhere():
            return
        from ollm.runtime.chores import work_while_idle

        with suppress(OllmError):
            await work_while_idle(self._parts, self._is_due)
