"""The active context as data: what the model is sent, the checkpoints in it, entries, goals, thinking (S3, S5, H)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ollm.domain.messages import PromptMessage
from ollm.domain.struct import Data, SparseData

Strategy = Literal["summarize", "truncate", "hybrid"]
CheckpointAge = Literal["detailed", "medium", "compact"]
EntrySource = Literal["hook", "extension", "user", "system"]
ModeName = Literal["assistant", "plan", "code", "debug"]
Approval = Literal["read-only", "ask", "accept-edits", "yolo"]


class RequestLine(Data, frozen=True):
    """The user's request in message `number`: in full, or shortened to a line."""

    number: int
    text: str
    whole: bool = True


RECORD_HEAD = "[Record of messages that left the context; recall brings back any by number]"


class Checkpoint(Data, frozen=True):
    """The record that stands for old messages: what was asked, and a summary. `message_ids` are the ones it cites.

    What changes with every compression comes last, so that a server keeps what it has read of the rest."""

    id: str
    text: str
    message_ids: tuple[int, ...]
    timestamp: str
    tokens: int
    age: CheckpointAge = "detailed"
    engine_written: bool = False
    requests: tuple[RequestLine, ...] = ()

    @property
    def message(self) -> PromptMessage:
        """As it is in the context: a record that cites what it stands for, not a request."""
        if not self.message_ids:
            return PromptMessage(role="system", content=self.text)
        done = f"Summary of messages {format_number_ranges(self.message_ids)}:" if self.text else ""
        content = "\n".join(filter(None, (RECORD_HEAD, self._asked, done, self.text)))
        return PromptMessage(role="system", content=content, sources=self.message_ids)

    @property
    def _asked(self) -> str:
        """A line for each request; the sign says that it is shortened."""
        if not self.requests:
            return ""
        lines = (f"#{line.number}{'' if line.whole else '~'} {line.text}" for line in self.requests)
        return "\n".join(("The user asked (~ shortened):", *lines))


MAX_CITED_RANGES = 5


def format_number_ranges(numbers: Iterable[int]) -> str:
    """`1-4, 7, 9-12`: how messages are cited. Many ranges are cited as one, so that a long past costs no more."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    if len(runs) > MAX_CITED_RANGES:
        runs = [[runs[0][0], runs[-1][1]]]
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


class ContextEntry(SparseData, frozen=True):
    """Something the system prompt is told besides (S5): higher priority first, then insertion."""

    key: str
    content: str
    timestamp: str
    priority: float = 50
    source: EntrySource = "user"
    ttl_seconds: float | None = None
    volatile: bool = False


class CompressionRecord(Data, frozen=True):
    """One success in `compressionHistory`; the checkpoint is kept whole so that any context can be rebuilt."""

    timestamp: str
    trigger: str
    strategy: Strategy
    original_token_count: int
    compressed_token_count: int
    message_ids: tuple[int, ...]
    checkpoint: Checkpoint | None


class CompressionResult(Data, frozen=True):
    """Outcome of a compression (D177): the system prompt, the checkpoints as messages, the messages that stay.

    `skipped` says why nothing changed; `fallback` why the model's summary was not used. `message_ids` left the context.
    """

    compressed_messages: tuple[PromptMessage, ...]
    checkpoints: tuple[Checkpoint, ...]
    original_token_count: int
    compressed_token_count: int
    strategy: Strategy
    created: Checkpoint | None = None
    message_ids: tuple[int, ...] = ()
    skipped: str = ""
    fallback: str = ""
    notes: tuple[str, ...] = ()


class GoalDecision(Data, frozen=True):
    text: str
    locked: bool = False
    tags: tuple[str, ...] = ()
    timestamp: str = ""


class Goal(Data, frozen=True):
    """A goal with what belongs to it (H: goalStack)."""

    id: str
    text: str
    status: Literal["active", "completed"] = "active"
    subtasks: tuple[str, ...] = ()
    decisions: tuple[GoalDecision, ...] = ()
    artifacts: tuple[str, ...] = ()
    blockers: tuple[str, ...] = ()


class GoalStack(Data, frozen=True):
    goals: tuple[Goal, ...] = ()

    @property
    def active(self) -> Goal | None:
        return next((goal for goal in reversed(self.goals) if goal.status == "active"), None)


class ReasoningTrace(Data, frozen=True):
    message_id: int
    text: str
    tokens: int


class ReasoningStorage(Data, frozen=True):
    """Thinking traces: the newest in full, older ones short (H)."""

    traces: tuple[ReasoningTrace, ...] = ()
    total_tokens: int = 0


class ActiveContext(Data, frozen=True):
    """Content of a request besides the system prompt, with its state."""

    messages: tuple[PromptMessage, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    goals: GoalStack = GoalStack()
    reasoning: ReasoningStorage = ReasoningStorage()
    mode: ModeName = "assistant"
    folded: bool = False  # whether something is in it shortened, so that `recall` must be available


class Budget(Data, frozen=True):
    """Used tokens of the window, and the start of compression."""

    window: int
    limit: int
    fixed: int
    checkpoints: int
    available: int
    trigger: int


class Usage(Data, frozen=True):
    """Tokens of a request or a turn; 0 where the server did not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reused_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            reused_tokens=self.reused_tokens + other.reused_tokens,
        )


class PromptModel(Data, frozen=True):
    """Whom the prompt is for."""

    session_id: str
    model: str
    window: int
    mode: ModeName = "code"


class ContextView(Data, frozen=True):
    """A context, what it may take, and the number of the message being worked on."""

    system: PromptMessage
    context: ActiveContext
    budget: Budget
    system_tokens: int
    request: int | None = None
    recall_tokens: int = 0  # that the tools grow by when something is folded away for the first time

    @property
    def request_messages(self) -> tuple[PromptMessage, ...]:
        """The message being worked on, where it is in the context."""
        return tuple(entry for entry in self.context.messages if self.request in entry.sources)

    @property
    def reads_results(self) -> bool:
        """True if the next request brings results of tools to a turn that goes on."""
        return any(entry.role == "tool" for entry in self.context.messages[-1:])
