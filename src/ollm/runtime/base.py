"""The interface a front end uses: conversation, options, turn events with their stream, and observers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import field

from ollm.domain.clock import Clock, format_stamp
from ollm.domain.context import ModeName, Usage
from ollm.domain.events import ConfirmationRequested, Event, Notice, TurnFinished, TurnReason
from ollm.domain.messages import (
    UNPARSED_KEY,
    AnyPart,
    ImagePart,
    JsonObject,
    Message,
    TextPart,
    ToolCall,
    replace_surrogates,
)
from ollm.domain.model_facts import Source
from ollm.domain.session import ParentCall
from ollm.domain.struct import Data
from ollm.domain.tools import ConfirmationAnswer, Todo, ToolCallRecord

FollowUp = Literal["none", "exit", "send", "open-session", "new-session", "open-folder", "finish-worktree"]
Listener = Callable[[Event], None]
WriteFacts = Callable[[str, dict[str, Any], Mapping[str, Source]], object]


class CommandReply(Data, frozen=True):
    """The result of a slash command. `text` is Markdown for the user, `data` the same for programs.

    `follow_up` requests an action only the front end can take: quit, send `argument` as the next message, open the
    session named by `argument`, or a new one in that folder, let tools use that folder, or finish the worktree once
    the session is closed.
    """

    text: str = ""
    data: Any = None
    ok: bool = True
    follow_up: FollowUp = "none"
    argument: str = ""


class Attachment(Data, frozen=True):
    """An attachment to the user's message: a named text or an image."""

    name: str
    text: str = ""
    image: ImagePart | None = None


def build_message_parts(text: str, attachments: tuple[Attachment, ...]) -> tuple[AnyPart, ...]:
    """Build the parts of a user message: the text first, then the attachments."""
    parts: list[AnyPart] = [TextPart(replace_surrogates(text))]
    for attachment in attachments:
        if attachment.image:
            parts.append(attachment.image)
        else:
            parts.append(TextPart(replace_surrogates(f"\n\n[{attachment.name}]\n{attachment.text}")))
    return tuple(parts)


class ChangeWatch:
    """Notified of tool calls that may change files. This default implementation does nothing."""

    async def before_change(self, names: Sequence[str] | None) -> None:
        """Called before a call that may change files: `names` are the only files it writes, None if unknown."""

    async def after_changes(self) -> None:
        """Called after the calls of a step. Later changes are not the agent's."""


class ForeignTurn(Data, frozen=True):
    """A turn another client started: the user's message, and the number of the last event before the turn."""

    text: str
    after: int


class Status(Data, frozen=True):
    """The data for the status line between turns. `turn_after` is set while a turn is running that another client
    may have started: the number of the last event before it. `last_event` is the number of the newest event.
    `questions` are those the daemon has no answer to yet, `turn_notices` those of the last turn there."""

    session_id: str | None
    title: str
    model: str
    provider: str
    base_url: str
    window: int
    mode: str
    approval: str
    workspace: str
    used: int = 0
    limit: int = 0
    trigger: int = 0
    fixed: int = 0
    todos: tuple[Todo, ...] = ()
    notices: tuple[str, ...] = field(default_factory=tuple)
    sandbox: str = ""  # It is empty until a command needs the sandbox.
    turn_after: int | None = None
    turn_message: int = 0  # It is 0 until the message is recorded.
    last_event: int = 0
    questions: tuple[ConfirmationRequested, ...] = ()
    turn_notices: tuple[Notice, ...] = ()


def get_recap_end(status: Status) -> int | None:
    """Return the message before which a recap ends, so that it does not repeat the running turn's events."""
    running = status.turn_after is not None and status.turn_message
    return status.turn_message + 1 if running else None


class Conversation(Protocol):
    """An open session. The terminal uses a local one and one in the daemon the same way."""

    @property
    def session_id(self) -> str | None: ...

    def turn(
        self, text: str, attachments: tuple[Attachment, ...] = ()
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Run one turn. Leaving the block early cancels it; the iterator ends after `TurnFinished`.

        `text` goes to the model unchanged, even if it begins with a slash: `command` runs commands."""
        ...

    def follow_turn(self, after: int) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Follow the running turn from the event after number `after`. Leaving the block stops nothing."""
        ...

    async def wait_for_foreign_turn(self) -> ForeignTurn | None:
        """Wait until another client starts a turn. Return None if none can start, or none would be reported."""
        ...

    async def respond(self, correlation_id: str, answer: ConfirmationAnswer) -> bool:
        """Answer a confirmation. Return False if another answer came first."""
        ...

    def note_typing(self) -> None:
        """Cancel work started while idle, because the user is about to send a message."""
        ...

    async def cancel(self) -> None:
        """Stop the running turn, whose `TurnFinished` still comes, or a slow command."""
        ...

    async def command(self, name: str, arguments: str = "") -> CommandReply:
        """Run a slash command (`/name arguments`)."""
        ...

    async def status(self) -> Status: ...

    async def history(self, before: int | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """Return a page of the archive, oldest first: messages with their calls resolved, as plain JSON."""
        ...

    async def close(self) -> None: ...


class ConversationOptions(Data, frozen=True):
    """The session, the workspace and the command-line options of a conversation.

    `session` is an id or a unique prefix of one; `newest` resumes the newest session of the workspace. `holder` names
    the program that holds the workspace, `home` replaces `~/.ollm`. A task has the call that began it as its `parent`;
    `works_for` is the workspace that keeps its session. `mcp_servers` come from the front end. `max_steps` replaces
    `loopDetection.maxTurns`; `check` is a command that every turn must pass, with its rounds. `announce` gets what
    takes long before the conversation opens."""

    workspace: Path
    session: str | None = None
    newest: bool = False
    full: bool = False
    force: bool = False
    beside: bool = False  # The session's own lock is enough.
    holder: str = ""
    one_shot: bool = False
    interactive: bool = False
    mode: ModeName | None = None
    grants: tuple[str, ...] = ()
    yes: bool = False
    flags: dict[str, Any] = field(default_factory=dict)
    mcp_servers: dict[str, Any] = field(default_factory=dict)  # The person is asked before they run.
    home: Path | None = None
    parent: ParentCall | None = None
    works_for: Path | None = None
    origin: str = ""
    max_steps: int | None = None
    check: tuple[str, int] | None = None
    announce: Callable[[str], object] = str
    added_roots: list[Path] = field(default_factory=list)  # `/add-dir` adds to it, also for the next conversation.
    record: bool = True  # Without it the session is erased with every trace when the conversation closes.


class TurnReport(Data, frozen=True):
    """The outcome of a turn."""

    session_id: str
    messages: tuple[Message, ...]
    calls: tuple[ToolCallRecord, ...]
    reason: TurnReason
    usage: Usage = Usage()

    @property
    def request(self) -> Message | None:
        return next((message for message in self.messages if message.role == "user"), None)

    @property
    def answer(self) -> str:
        return next((m.text for m in reversed(self.messages) if m.role == "assistant" and m.text), "")


class TurnObserver:
    """Base class for turn observers, called in order. A failure is shown to the user and does not stop the turn."""

    async def session_opened(self, session_id: str) -> None:
        """Called once a new session is open."""

    async def session_resumed(self, session_id: str) -> None:
        """Called once a session is resumed, with its context restored."""

    async def before_turn(self, text: str) -> None:
        """Called with the user message recorded and the model not connected. Raises DeniedError to stop the turn."""

    async def before_request(self) -> None:
        """Called before each request to the model in a turn."""

    async def after_turn(self, report: TurnReport) -> None:
        """Called after the whole turn is recorded."""

    async def context_changed(self) -> None:
        """Called after a command changed goals, context entries or the mode. Saves what must survive a crash."""

    async def session_closed(self, session_id: str) -> None:
        """Called when the conversation ends, while its parts still exist."""


class EventStream:
    """A stream of events. `emit` fills in session, number and time, and calls listeners at once, in order.

    `redact` removes secrets from warnings and error messages: a server may repeat a key it rejects. `unheard` has the
    warnings that came while nobody followed, such as those of a stopped tool that was still cleaning up."""

    def __init__(self, clock: Clock, redact: Callable[[str], str] = str) -> None:
        self.session_id = ""
        self.last_seq = 0
        self._clock = clock
        self.redact = redact
        self._listeners: list[Listener] = []
        self._followers = 0
        self.unheard: list[Notice] = []

    def emit(self, event: Event) -> None:
        self.last_seq += 1
        if isinstance(event, Notice) and event.level != "info":
            event = msgspec.structs.replace(event, text=self.redact(event.text))
        elif isinstance(event, TurnFinished) and event.message:
            event = msgspec.structs.replace(event, message=self.redact(event.message))
        sent = msgspec.structs.replace(
            event,
            session_id=self.session_id or event.session_id,
            seq=self.last_seq,
            timestamp=format_stamp(self._clock()),
        )
        for listener in tuple(self._listeners):
            listener(sent)
        if not self._followers:
            self._keep_unheard([sent])

    def _keep_unheard(self, events: Iterable[Event | None]) -> None:
        self.unheard += [event for event in events if isinstance(event, Notice) and event.level != "info"]

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every event from now on. Return a function that removes it."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    @asynccontextmanager
    async def follow_turn(self) -> AsyncIterator[AsyncIterator[Event]]:
        """Yield the unheard warnings and the events from now on, up to and including `TurnFinished`."""
        queue, arrived = deque[Event | None](), asyncio.Event()  # An asyncio.Queue takes ten calls for an event.

        def add(event: Event) -> None:
            if self.unheard:  # It waits until the turn has begun.
                queue.extend(self.unheard)
                self.unheard.clear()
            queue.append(event)
            arrived.set()

        async def iterate() -> AsyncIterator[Event]:
            while (queue or await arrived.wait()) and (event := queue.popleft()) is not None:
                if not queue:
                    arrived.clear()
                yield event
                if isinstance(event, TurnFinished):
                    return

        stop = self.add_listener(add)
        self._followers += 1
        try:
            yield iterate()
        finally:
            stop()
            self._followers -= 1
            self._keep_unheard(queue)
            queue.append(None)
            arrived.set()


MAX_ARGUMENT_DEPTH = 64


def start_record(call: ToolCall, timestamp: str) -> ToolCallRecord:
    """Make the record of a call that has not run yet."""
    args, wire_id = sanitize_arguments(call.arguments), call.wire_id or msgspec.UNSET
    return ToolCallRecord(id=call.id, name=call.name, args=args, timestamp=timestamp, wire_id=wire_id)


def sanitize_arguments(arguments: Any) -> JsonObject:
    """Make any arguments a model sent recordable: an object of bounded depth, with valid text."""
    given = arguments if isinstance(arguments, dict) else {UNPARSED_KEY: arguments}
    try:
        msgspec.json.encode(given)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        plain: JsonObject = _sanitize_value(given, MAX_ARGUMENT_DEPTH)
        return plain
    return given


def _sanitize_value(value: Any, depth: int) -> Any:
    match value:
        case _ if depth == 0:
            return "…"
        case dict():
            return {replace_surrogates(str(key)): _sanitize_value(item, depth - 1) for key, item in value.items()}
        case list() | tuple():
            return [_sanitize_value(item, depth - 1) for item in value]
        case str():
            return replace_surrogates(value)
        case None | bool() | int() | float():
            return value
    return replace_surrogates(str(value))
