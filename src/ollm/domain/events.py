"""Events for front ends. Every event has type, sessionId, seq and timestamp.

Delivery: a conversation numbers its events from 1 without gaps (`seq`) and hands each subscriber all of them in order.
`ToolFinished` comes exactly once per call, `TurnFinished` exactly once per turn and last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Union

import msgspec

from ollm.domain.context import ModeName, Usage
from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails, Todo, ToolResult

TurnReason = Literal["answered", "no-server", "model-error", "context-full", "loop", "timeout", "cancelled", "denied"]
NoticeLevel = Literal["info", "warning", "error"]


class Event(msgspec.Struct, frozen=True, rename="camel", tag_field="type", kw_only=True):
    """Base of all events; the conversation fills in the first three fields when it sends an event."""

    session_id: str = ""
    seq: int = 0
    timestamp: str = ""


class SessionCreated(Event, frozen=True, tag="session-created"):
    model: str
    provider: str


class MessageRecorded(Event, frozen=True, tag="message-recorded"):
    message_id: int
    role: str


class ToolCallRecorded(Event, frozen=True, tag="tool-call-recorded"):
    call_id: str
    name: str
    status: str


class SessionSaved(Event, frozen=True, tag="session-saved"):
    """The journal was merged into the session document."""


class SnapshotCreated(Event, frozen=True, tag="snapshot-created"):
    snapshot_id: str
    trigger: str


class AutoSnapshotCreated(Event, frozen=True, tag="auto-snapshot-created"):
    snapshot_id: str
    trigger: str


class SnapshotRestored(Event, frozen=True, tag="snapshot-restored"):
    snapshot_id: str


class SnapshotDeleted(Event, frozen=True, tag="snapshot-deleted"):
    snapshot_id: str


class SnapshotError(Event, frozen=True, tag="snapshot-error"):
    message: str


class Compressed(Event, frozen=True, tag="compressed"):
    strategy: str
    original_token_count: int
    compressed_token_count: int


class CompressionSkipped(Event, frozen=True, tag="compression-skipped"):
    reason: str


class CompressionError(Event, frozen=True, tag="compression-error"):
    message: str


class CheckpointCreated(Event, frozen=True, tag="checkpoint-created"):
    checkpoint_id: str
    message_ids: tuple[int, ...]
    tokens: int


class CheckpointAged(Event, frozen=True, tag="checkpoint-aged"):
    checkpoint_id: str
    age: str
    tokens: int


class TurnStarted(Event, frozen=True, tag="turn-started"):
    message_id: int
    text: str


class TextDelta(Event, frozen=True, tag="text-delta"):
    text: str


class ThinkingDelta(Event, frozen=True, tag="thinking-delta"):
    text: str


MIN_PRICED_SECONDS = 10


class PrefillProgress(Event, frozen=True, tag="prefill-progress"):
    """The server is loading the model, reading the prompt or writing a summary; totals are 0 if not reported. While
    `queued`, `total` counts the requests ahead."""

    processed: int = 0
    total: int = 0
    stage: Literal["queued", "connecting", "loading", "reading", "compacting"] = "reading"
    seconds_left: float | None = None  # Estimated from the measured speed.
    cached: int = 0  # The server does not read these tokens of `processed` again.

    @property
    def priced_tokens(self) -> int:
        """Return the new tokens to read if all of them take long by the measured speed, else 0."""
        new, left = self.total - self.cached, self.total - self.processed
        return new if left > 0 and (self.seconds_left or 0) * new >= MIN_PRICED_SECONDS * left else 0


class ToolStarted(Event, frozen=True, tag="tool-started"):
    call_id: str
    name: str
    summary: str
    args: dict[str, object] = msgspec.field(default_factory=dict)


class ToolOutput(Event, frozen=True, tag="tool-output"):
    call_id: str
    text: str


class ToolFinished(Event, frozen=True, tag="tool-finished"):
    """A tool call ended, successfully or not. Sent exactly once per call, even when cancelled."""

    call_id: str
    name: str
    status: str
    result: ToolResult
    seconds: float = 0.0


class ConfirmationRequested(Event, frozen=True, tag="confirmation-requested"):
    correlation_id: str
    details: ConfirmationDetails


class ConfirmationResolved(Event, frozen=True, tag="confirmation-resolved"):
    """The outcome of a confirmation. `outcome` distinguishes a refusal, a time-out and a cancelled turn."""

    correlation_id: str
    outcome: Literal["approved", "refused", "timeout", "cancelled"]
    answer: ConfirmationAnswer | None = None


class ContextUsage(Event, frozen=True, tag="context-usage"):
    used: int
    limit: int
    window: int
    trigger: int
    fixed: int = 0  # Instructions, tool schemas and checkpoints, which are never compressed.
    thinking: int = 0  # This part of `used` is thinking that goes back to the model.
    reused_share: float | None = None
    broken_by: str | None = None


class ModeChanged(Event, frozen=True, tag="mode-changed"):
    from_: ModeName = msgspec.field(name="from")
    to: ModeName
    trigger: str
    confidence: float = 1.0


class TodosChanged(Event, frozen=True, tag="todos-changed"):
    todos: tuple[Todo, ...]


class LoopWarning(Event, frozen=True, tag="loop-warning"):
    pattern: str
    details: str
    count: int


class LoopDetected(Event, frozen=True, tag="loop-detected"):
    pattern: str
    details: str
    count: int


class PromptTruncated(Event, frozen=True, tag="prompt-truncated"):
    """The server provably read less of the prompt than it was sent."""

    sent_tokens: int
    read_tokens: int


class Notice(Event, frozen=True, tag="notice"):
    """One line for the person."""

    level: NoticeLevel
    text: str


def make_notice(event: Event) -> Notice | None:
    """Return an event as one line for the person, the same in every front end; None if it has another form."""
    level: NoticeLevel = "warning"
    match event:
        case Notice():
            return event
        case Compressed(original_token_count=before, compressed_token_count=after):
            level, text = "info", f"Compacted {before:,} → {after:,} tokens; full history kept."
        case CompressionError(message=message) | SnapshotError(message=message):
            text = message
        case LoopWarning():
            text = f"The model may be looping: {event.details}."
        case LoopDetected():
            level, text = "error", f"Stopped: the model is looping: {event.details} ({event.pattern})."
        case PromptTruncated(sent_tokens=sent, read_tokens=read):
            text = f"The server read only {read:,} of {sent:,} prompt tokens."
        case _:
            return None
    return Notice(level=level, text=text)


class TurnFinished(Event, frozen=True, tag="turn-finished"):
    reason: TurnReason
    usage: Usage = Usage()
    message: str = ""
    failing: str = ""


if TYPE_CHECKING:
    AnyEvent = Event
else:

    def __getattr__(name: str) -> object:
        if name == "AnyEvent":  # Decoders and the API's schema need every kind of event.
            return Union[tuple(Event.__subclasses__())]  # noqa: UP007 - the members are listed by their classes
        raise AttributeError(name)
