"""The active context as data: prompt messages, checkpoints, entries, goals and thinking (S3, S5, H)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ollm.domain.messages import PromptMessage
from ollm.domain.struct import Data, SparseData

Strategy = Literal["summarize", "truncate", "hybrid"]
CheckpointAge = Literal["detailed", "medium", "compact"]
EntrySource = Literal["hook", "extension", "user", "system"]
ModeName = Literal["assistant", "plan", "code", "debug"]
ReplayThinking = Literal["turn", "session", "off"]
DEFAULT_REPLAY: ReplayThinking = "session"
Approval = Literal["read-only", "ask", "accept-edits", "yolo"]


class RequestLine(Data, frozen=True):
    """The user's request in message `number`: in full, or shortened to a line."""

    number: int
    text: str
    whole: bool = True


RECORD_HEAD = "[Record of messages that left the context; recall brings back any by number]"


class Checkpoint(Data, frozen=True):
    """A record that replaces old messages: the user's requests and a summary. `message_ids` are the cited messages.

    The parts that change with every compression come last, so that the server can reuse its cache of the rest."""

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
        """Build the context message: a record that cites the messages it replaces, not a request."""
        if not self.message_ids:
            return PromptMessage(role="system", content=self.text)
        done = f"Summary of messages {format_number_ranges(self.message_ids)}:" if self.text else ""
        content = "\n".join(filter(None, (RECORD_HEAD, self._asked, done, self.text)))
        return PromptMessage(role="system", content=content, sources=self.message_ids)

    @property
    def _asked(self) -> str:
        """One line per request; `~` marks a shortened one."""
        if not self.requests:
            return ""
        lines = (f"#{line.number}{'' if line.whole else '~'} {line.text}" for line in self.requests)
        return "\n".join(("The user asked (~ shortened):", *lines))


MAX_CITED_RANGES = 5


def format_number_ranges(numbers: Iterable[int]) -> str:
    """Format message numbers as `1-4, 7, 9-12`. Many ranges become one, so that a long history costs no more."""
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
    """An additional entry of the system prompt (S5): ordered by priority, highest first, then by insertion."""

    key: str
    content: str
    timestamp: str
    priority: float = 50
    source: EntrySource = "user"
    ttl_seconds: float | None = None
    volatile: bool = False


NOTE_PRIORITY = 55.0  # Notes stand between project instructions and the user's entries, so the order is stable.


def make_note_entry(key: str, text: str) -> ContextEntry:
    """Make the entry of a note that the person wrote for all sessions of the workspace."""
    return ContextEntry(key=key, content=text, timestamp="", priority=NOTE_PRIORITY, source="user")


class CompressionRecord(Data, frozen=True):
    """One success in `compressionHistory`, with its full checkpoint so that any context can be rebuilt."""

    timestamp: str
    trigger: str
    strategy: Strategy
    original_token_count: int
    compressed_token_count: int
    message_ids: tuple[int, ...]
    checkpoint: Checkpoint | None


class CompressionResult(Data, frozen=True):
    """Outcome of a compression (D177): the system prompt, the checkpoints as messages, and the remaining messages.

    `skipped` is the reason nothing changed. `fallback` is the reason the model's summary was not used.
    `message_ids` are the messages that left the context.
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


class GoalDecision(Data, frozen=True):
    text: str
    locked: bool = False
    tags: tuple[str, ...] = ()
    timestamp: str = ""


class Goal(Data, frozen=True):
    """A goal and its details (H: goalStack)."""

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
    """Thinking traces: the newest in full, older ones shortened (H)."""

    traces: tuple[ReasoningTrace, ...] = ()
    total_tokens: int = 0


class ActiveContext(Data, frozen=True):
    """Content of a request apart from the system prompt, with its state."""

    messages: tuple[PromptMessage, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    goals: GoalStack = GoalStack()
    reasoning: ReasoningStorage = ReasoningStorage()
    mode: ModeName = "assistant"
    folded: bool = False  # True if something is shortened, so that `recall` must be available.


class Budget(Data, frozen=True):
    """Tokens used in the window, and the threshold for compression."""

    window: int
    limit: int
    fixed: int
    checkpoints: int
    available: int
    trigger: int


class Usage(Data, frozen=True):
    """Token counts of a request or a turn; 0 if the server did not report them."""

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
    """The session, model, window and mode a prompt is built for."""

    session_id: str
    model: str
    window: int
    mode: ModeName = "code"
    origin: str = ""  # The hash of server and model, or "" if nothing is sent.
    replay: ReplayThinking = DEFAULT_REPLAY


class ContextView(Data, frozen=True):
    """A context, its budget, and the number of the current request message."""

    system: PromptMessage
    context: ActiveContext
    budget: Budget
    system_tokens: int
    request: int | None = None
    recall_tokens: int = 0  # The tools grow by this many tokens when something is first folded away.

    @property
    def request_messages(self) -> tuple[PromptMessage, ...]:
        return tuple(entry for entry in self.context.messages if self.request in entry.sources)

    @property
    def reads_results(self) -> bool:
        """True if the next request carries tool results in a running turn."""
        return any(entry.role == "tool" for entry in self.context.messages[-1:])
