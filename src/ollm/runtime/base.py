"""What a front end holds: a conversation, near or behind the daemon, and what it says back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

from msgspec import field

from ollm.domain.events import AnyEvent
from ollm.domain.messages import AnyPart, ImagePart, TextPart, replace_surrogates
from ollm.domain.struct import Data
from ollm.domain.tools import ConfirmationAnswer, Todo

FollowUp = Literal["none", "exit", "send", "open-session", "new-session"]


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
