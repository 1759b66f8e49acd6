"""A session as data (S2): the file, its tasks and snapshots, and its records in the workspace (H275, W)."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from ollm.domain.context import Checkpoint, GoalStack, ModeName, ReasoningStorage
from ollm.domain.messages import JsonObject, Message
from ollm.domain.struct import Data, SparseData
from ollm.domain.tools import ToolCallRecord

RedactField = Callable[[str, str], str]
_UNREDACTED_FIELDS = frozenset(
    "id sessionId role type status timestamp startTime lastActivity messageId mediaType data wireId".split()  # noqa: SIM905 - shorter so
)


def redact_record(record: JsonObject, redact: RedactField) -> JsonObject:
    """Pass every text of a recorded head, message or call through `redact`, which gets its name too. Ids, times, roles
    and pictures stay; what a call's arguments name the same does not."""
    changed = {
        name: value if name in _UNREDACTED_FIELDS else _redact_value(name, value, redact)
        for name, value in record.items()
    }
    for name in ("parts", "images"):
        if isinstance(listed := record.get(name), list | tuple):
            changed[name] = [redact_record(part, redact) if isinstance(part, dict) else part for part in listed]
    if isinstance(result := record.get("result"), dict):
        changed["result"] = redact_record(result, redact)
    return changed


def _redact_value(name: str, value: Any, redact: RedactField) -> Any:
    if isinstance(value, str):
        return redact(name, value)
    if isinstance(value, dict):
        return {redact("", key): _redact_value(key, item, redact) for key, item in value.items()}
    return [_redact_value("", item, redact) for item in value] if isinstance(value, list | tuple) else value


class ParentCall(Data, frozen=True):
    """The origin of a session: the call that started a task (None if ollm started it itself), or the last message that
    a fork has in common with its parent."""

    session_id: str
    call_id: str | None = None
    message_id: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)] | UnsetType = UNSET


class TaskRequest(Data, frozen=True):
    """A task to investigate or do something. `side_by_side`: other tasks of the same answer may run in parallel."""

    prompt: str
    files: tuple[str, ...] = ()
    agent: str = ""
    call_id: str | None = None
    title: str = ""
    side_by_side: bool = False


class TaskReport(Data, frozen=True):
    """Outcome of a task. `problem` is the reason it ended early; `files` are the files it looked at,
    `changed` those it changed in a copy of the workspace."""

    text: str
    session_id: str
    steps: int
    files: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problem: str = ""


SCHEMA_VERSION = 1
MAX_INDENT = 4
SessionStatus = Literal["active", "closed", "archived"]
ModeTrigger = Literal["manual", "auto", "tool"]


class ModeChange(Data, frozen=True):
    """A step of `modeHistory` (H150)."""

    from_: str = msgspec.field(name="from")
    to: str
    timestamp: str
    trigger: ModeTrigger
    confidence: float = 1.0


class FailedTurn(Data, frozen=True):
    """A turn that ended without an answer; `message_id` is its last message."""

    message_id: int
    reason: str
    message: str = ""


class SessionMetadata(Data, frozen=True):
    """Metadata of a session. Unknown fields are preserved because the store merges plain dicts."""

    token_count: int = 0
    compression_count: int = 0
    compression_history: tuple[dict[str, Any], ...] = ()
    mode_history: tuple[dict[str, Any], ...] = ()
    context_history: tuple[dict[str, Any], ...] = ()
    workspace: str | None = None
    workspace_state: dict[str, Any] = msgspec.field(default_factory=dict)
    title: str = ""
    context_window: int | None = None
    origin: str | None = None
    parent: ParentCall | UnsetType | None = UNSET  # Only tasks and forks have one.
    failed_turns: tuple[FailedTurn, ...] | UnsetType = UNSET
    schema_version: int = SCHEMA_VERSION


class Session(Data, frozen=True):
    """The complete record of a conversation (S2.1)."""

    session_id: str
    start_time: str
    last_activity: str
    model: str
    provider: str
    messages: tuple[Message, ...]
    tool_calls: tuple[ToolCallRecord, ...]
    metadata: SessionMetadata


class SessionSummary(Data, frozen=True):
    """One line of a session list (D128): title, model, counts and state."""

    session_id: str
    start_time: str
    last_activity: str
    model: str
    message_count: int
    token_count: int
    title: str = ""
    workspace: str | None = None
    status: SessionStatus = "closed"
    damaged: str | None = None  # It is a sentence about the fault of the file.
    origin: str | None = None
    parent: ParentCall | None = None


class MessageHit(Data, frozen=True):
    """A message or call that a search found; the words are between « and » in `snippet`."""

    session_id: str
    message_id: int
    number: int
    role: str
    timestamp: str
    title: str
    snippet: str


SnapshotTrigger = Literal["compression", "threshold", "mode", "manual", "restore", "rewind", "compact", "window"]


class SnapshotMetadata(SparseData, frozen=True):
    model: str
    context_size: int
    compression_ratio: float
    total_user_messages: int
    active_goal_id: str | None = None
    total_goals_completed: int | None = None
    total_checkpoints: int | None = None
    is_reasoning_model: bool | None = None
    total_thinking_tokens: int | None = None


class SnapshotSummary(Data, frozen=True):
    """One line of a snapshot list."""

    id: str
    session_id: str
    timestamp: str
    token_count: int
    summary: str
    trigger: SnapshotTrigger = "manual"


class ContextSnapshot(SnapshotSummary, frozen=True, kw_only=True):
    """A snapshot of a context. Messages are plain JSON with id and index, so that every older format can be read."""

    user_messages: tuple[dict[str, Any], ...]
    messages: tuple[dict[str, Any], ...]
    metadata: SnapshotMetadata
    archived_user_messages: tuple[dict[str, Any], ...] = ()
    goal_stack: GoalStack | None = None
    reasoning_storage: ReasoningStorage | None = None
    mode: ModeName | None = None  # Files written before modes existed have no mode.
    checkpoints: tuple[Checkpoint, ...] = ()


class CommandOutcome(Data, frozen=True):
    command: str
    outcome: str  # It is "ok", "exit 1" or "Timeout".

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"


class Episode(Data, frozen=True):
    """One turn as recorded by the engine; `number` is the number of the user's message."""

    session_id: str
    number: int
    timestamp: int  # It is in epoch milliseconds.
    request: str
    answer: str = ""
    reason: str = "answered"
    files: tuple[str, ...] = ()
    commands: tuple[CommandOutcome, ...] = ()
    decisions: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


class PlanStep(Data, frozen=True):
    text: str
    done: bool = False


class PlanState(Data, frozen=True):
    """Progress of the work: the steps, the current one, and whether it waits for an answer."""

    steps: tuple[PlanStep, ...] = ()
    current_step_index: int = 0
    awaiting_continuation: bool = False
    paused: bool = False

    @property
    def current_step(self) -> PlanStep | None:
        return self.steps[self.current_step_index] if 0 <= self.current_step_index < len(self.steps) else None

    @property
    def done_count(self) -> int:
        return sum(step.done for step in self.steps)


class ShownSession(Data, frozen=True):
    """The entry of a session in every list. A fork names its `parent`."""

    session_id: str
    title: str
    model: str
    parent: str | None = None


class ChatSession(ShownSession, frozen=True, kw_only=True):
    """A row of `chat_sessions` (W). Times are epoch milliseconds. `parent` is from the archive, not a column."""

    status: SessionStatus
    created_at: int
    updated_at: int
    summary: str = ""
    recent_messages: tuple[dict[str, Any], ...] = ()
    plan: PlanState = msgspec.field(default_factory=PlanState)
    workspace: str | None = None  # It is from the archive, not a column.


Line = TypeVar("Line", bound=ShownSession)


def arrange_forks(lines: Iterable[Line]) -> list[Line]:
    """Put forks under their parents, with indented titles. A family stands where its first member stood."""
    known = {line.session_id: line for line in lines}
    forks: dict[str | None, list[Line]] = {}
    for line in known.values():
        forks.setdefault(line.parent, []).append(line)
    arranged: dict[str, Line] = {}
    for line in known.values():
        waiting = [(_find_oldest_ancestor(line, known), 0)]
        while waiting:
            found, depth = waiting.pop()
            if found.session_id not in arranged:
                title = f"{'  ' * (min(depth, MAX_INDENT) - 1)}↳ {found.title}" if depth else found.title
                arranged[found.session_id] = msgspec.structs.replace(found, title=title)
                waiting += [(fork, depth + 1) for fork in reversed(forks.get(found.session_id, []))]
    return list(arranged.values())


def _find_oldest_ancestor(line: Line, known: dict[str, Line]) -> Line:
    seen: set[str] = set()
    while line.parent in known and line.session_id not in seen:  # A damaged file may name a descendant as its parent.
        seen.add(line.session_id)
        line = known[line.parent]
    return line
