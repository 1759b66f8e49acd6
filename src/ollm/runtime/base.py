"""The interface a front end uses: conversation, options, turn events with their stream, and observers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import field

from ollm.domain.clock import Clock, format_stamp
from ollm.domain.context import ModeName, Usage
from ollm.domain.events import AnyEvent, Event, Notice, TurnFinished, TurnReason
from ollm.domain.messages import AnyPart, ImagePart, Message, TextPart, replace_surrogates
from ollm.domain.session import ParentCall
from ollm.domain.struct import Data
from ollm.domain.tools import ConfirmationAnswer, Todo, ToolCallRecord

FollowUp = Literal["none", "exit", "send", "open-session", "new-session"]
Listener = Callable[[AnyEvent], None]


class CommandReply(Data, frozen=True):
    """What a slash command came to. `text` is Markdown for the person, `data` the same for programs.

    `follow_up` asks the front end to do something it alone can: leave, send `argument` as the next message,
    or open the session named by `argument`.
    """

    text: str = ""
    data: Any = None
    ok: bool = True
    follow_up: FollowUp = "none"
    argument: str = ""


class Attachment(Data, frozen=True):
    """Something the person puts beside their message: a named text, or a picture."""

    name: str
    text: str = ""
    image: ImagePart | None = None


def build_message_parts(text: str, attachments: tuple[Attachment, ...]) -> tuple[AnyPart, ...]:
    """The person's words first, then what they put beside them."""
    parts: list[AnyPart] = [TextPart(replace_surrogates(text))]
    for attachment in attachments:
        if attachment.image:
            parts.append(attachment.image)
        else:
            parts.append(TextPart(replace_surrogates(f"\n\n[{attachment.name}]\n{attachment.text}")))
    return tuple(parts)


class ChangeWatch:
    """Hears of calls that may change files; this one does not care."""

    async def before_change(self, names: Sequence[str] | None) -> None:
        """A call is run next that writes these files and no others, or nobody knows which."""

    async def after_changes(self) -> None:
        """The calls of a step are over: what changes from here on is somebody else's."""


class ForeignTurn(Data, frozen=True):
    """A turn that somebody else began: what they said, and the number of the last event before it."""

    text: str
    after: int


class Status(Data, frozen=True):
    """What the status line shows between turns. `turn_after` is there when a turn is running that somebody else may
    have begun: the number of the last event before it. `last_event` is the number of the newest one."""

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
    sandbox: str = ""  # the level commands are confined at; empty while nothing has asked for it
    turn_after: int | None = None
    turn_message: int = 0  # number of the message that began the running turn; 0 before it is written down
    last_event: int = 0


def get_recap_end(status: Status) -> int | None:
    """Before which message a recap ends: a running turn is shown from its events, and not a second time."""
    running = status.turn_after is not None and status.turn_message
    return status.turn_message + 1 if running else None


class Conversation(Protocol):
    """A session being talked to. The terminal cannot tell a local one from one in the daemon."""

    @property
    def session_id(self) -> str | None: ...

    def turn(
        self, text: str, attachments: tuple[Attachment, ...] = ()
    ) -> AbstractAsyncContextManager[AsyncIterator[AnyEvent]]:
        """One turn. Leaving the block early cancels it; the iterator ends after `TurnFinished`.

        `text` goes to the model as it is, also when it begins with a slash: `command` runs commands."""
        ...

    def follow_turn(self, after: int) -> AbstractAsyncContextManager[AsyncIterator[AnyEvent]]:
        """The turn that runs already, from the event after number `after`. Leaving the block stops nothing."""
        ...

    async def wait_for_foreign_turn(self) -> ForeignTurn | None:
        """Wait until somebody else begins a turn; None when nobody will, or none would be heard of."""
        ...

    async def respond(self, correlation_id: str, answer: ConfirmationAnswer) -> bool:
        """Answer a confirmation; False when another answer came first."""
        ...

    def note_typing(self) -> None:
        """Somebody is about to speak: what was begun while it was quiet makes way."""
        ...

    async def cancel(self) -> None:
        """Stop the running turn; its `TurnFinished` still comes."""
        ...

    async def command(self, name: str, arguments: str = "") -> CommandReply:
        """Run a slash command (`/name arguments`)."""
        ...

    async def status(self) -> Status: ...

    async def history(self, before: int | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """A page of the archive, oldest first: messages with their calls resolved, as plain JSON."""
        ...

    async def close(self) -> None: ...


class ConversationOptions(Data, frozen=True):
    """Which session, in which workspace, with what besides the settings."""

    workspace: Path
    session: str | None = None  # an id, or a unique prefix of one
    newest: bool = False  # resume the newest of the workspace
    full: bool = False
    force: bool = False
    beside: bool = False  # beside whoever has the workspace: the session's own lock is enough
    holder: str = ""  # who has the workspace through this, where it is not a chat
    one_shot: bool = False
    interactive: bool = False  # somebody is there to answer questions
    mode: ModeName | None = None
    grants: tuple[str, ...] = ()
    yes: bool = False
    flags: dict[str, Any] = field(default_factory=dict)
    mcp_servers: dict[str, Any] = field(default_factory=dict)  # those the front end brings; asked about before they run
    home: Path | None = None  # in place of ~/.ollm
    parent: ParentCall | None = None  # the call that began it: it is a task
    max_steps: int | None = None  # in place of loopDetection.maxTurns
    record: bool = True  # False: the session is erased, with every trace of it, when the conversation is closed


class TurnReport(Data, frozen=True):
    """What a turn came to."""

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
    """Called in order; one that fails is told to the user and does not stop the turn. Each does what it needs to."""

    async def session_opened(self, session_id: str, *, resumed: bool) -> None:
        """The session is there: new, or resumed with its context restored."""

    async def before_turn(self, text: str) -> None:
        """The user's message is recorded, the model was not connected yet. Raises DeniedError to stop the turn."""

    async def before_request(self) -> None:
        """The model is asked next, for the first time in this turn or again."""

    async def after_turn(self, report: TurnReport) -> None:
        """Everything of the turn is recorded."""

    async def context_changed(self) -> None:
        """A command changed goals, context entries or the mode; what is to outlive a crash is on disk afterwards."""

    async def session_closed(self, session_id: str) -> None:
        """The conversation ends; its parts are still there."""


class EventStream:
    """`emit` fills in session, number and time. Listeners are called at once, in the order they came.

    `redact` takes secrets out of what is said to have gone wrong: a server may repeat a key that it does not know."""

    def __init__(self, clock: Clock, session_id: str = "", redact: Callable[[str], str] = str) -> None:
        self.session_id = session_id
        self.last_seq = 0
        self._clock = clock
        self.redact = redact
        self._listeners: list[Listener] = []

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
            listener(sent)  # type: ignore[arg-type]  # every Event that exists is in AnyEvent

    def add_listener(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every event from now on; the returned function ends it."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def subscribe(self) -> EventSubscription:
        return EventSubscription(self)


class EventSubscription:
    """Every event from the moment it was made, as an async iterator; ends after `close`."""

    def __init__(self, stream: EventStream) -> None:
        self._queue: asyncio.Queue[AnyEvent | None] = asyncio.Queue()
        self._stop = stream.add_listener(self._queue.put_nowait)

    def close(self) -> None:
        self._stop()
        self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[AnyEvent]:
        while (event := await self._queue.get()) is not None:
            yield event


async def iterate_until_finished(subscription: EventSubscription) -> AsyncIterator[AnyEvent]:
    async for event in subscription:
        yield event
        if isinstance(event, TurnFinished):
            return
