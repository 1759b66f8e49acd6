"""Tools as data: a call's record and result (S2.3, T10.7), risk, verdicts and confirmations (T7, T8)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from msgspec import UNSET, UnsetType, convert
from msgspec.structs import replace

from ollm.domain.messages import ImagePart, JsonObject
from ollm.domain.struct import Data, SparseData

CallStatus = Literal["running", "ok", "failed", "denied", "cancelled", "interrupted"]
Decision = Literal["allow", "ask", "deny"]
GrantScope = Literal["once", "session", "always", "everywhere"]  # The scope "always" applies to this workspace.
Access = Literal["read", "write", "run"]
ToolCategory = Literal["read", "notes", "write", "web", "run"]  # Only built-in tools have a category.
MAX_SUMMARY_CHARS = 200
SCOPE_WORDS: dict[GrantScope, str] = {
    "once": "yes",
    "session": "yes, for this session",
    "always": "yes, always in this workspace",
    "everywhere": "yes, everywhere",
}


class Risk(StrEnum):
    """The harm a tool can do (T7.7)."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ErrorInfo(Data, frozen=True):
    """The reason a call failed: `type` is one of the names listed in docs/tools.md."""

    type: str
    message: str


class CallOutput(SparseData, frozen=True):
    """The result of a call: one channel for the model, one for the person.

    `full_output` holds the text truncated from `llm_content` (up to 1 MiB), so that `recall` can read it.
    `diff` and `images` are displayed, or sent to models with vision; they are not part of the text.
    """

    llm_content: str
    return_display: str = ""
    full_output: str | None = None
    exit_code: int | None = None
    diff: str = ""
    images: tuple[ImagePart, ...] = ()


class ToolResult(CallOutput, frozen=True):
    """The outcome of a call."""

    error: ErrorInfo | None = None

    @property
    def ok(self) -> bool:
        return self.error is None


class AnsweredQuestion(Data, frozen=True):
    """A question raised by a call and the person's answer, both as displayed."""

    question: str
    answer: str


class RecordedResult(CallOutput, frozen=True):
    """A result as recorded in the session (D's fields, plus the truncated text and the person's answers)."""

    questions: tuple[AnsweredQuestion, ...] = ()


class ToolCallRecord(Data, frozen=True):
    """One call in the session's `toolCalls`: written when it starts (result null) and again when it ends. `summary`
    describes the call as displayed when it ran; calls from earlier versions have none."""

    id: str
    name: str
    args: JsonObject
    timestamp: str
    result: RecordedResult | None = None
    message_id: int = 0
    status: CallStatus = "running"
    error: ErrorInfo | None = None
    summary: str | UnsetType = UNSET
    wire_id: str | UnsetType = UNSET  # The server's id for the call.


class ToolSchema(Data, frozen=True):
    """A tool as the model sees it: name, one or two sentences, JSON Schema of the parameters."""

    name: str
    description: str
    parameters: JsonObject


class Location(Data, frozen=True):
    """A resource used by a call: a path (as given, resolved by policy) or a URL."""

    target: str
    access: Access = "read"


class PolicyRequest(Data, frozen=True):
    """A validated call as policy sees it. `params` have the tool's own (camelCase) names."""

    tool: str
    params: dict[str, Any]
    risk: Risk = Risk.MEDIUM
    locations: tuple[Location, ...] = ()
    reads_only: bool = False
    identity: str = ""  # A grant for a tool from outside is bound to this, not to its name alone.


class RuleReference(Data, frozen=True):
    """The rule that decided: `layer` is configured, built-in, grant, protection, approval or default."""

    layer: str
    text: str
    file: str | None = None
    line: int | None = None


class VerdictPart(Data, frozen=True):
    """One simple command of a shell line, with its decision and reason."""

    command: str
    decision: Decision
    reason: str


class Verdict(Data, frozen=True):
    """Decision of the policy. `locked` verdicts (protected files, paths outside) need confirmation every time: no
    grant, approval level or `--yes` covers them, and without a terminal they are denied."""

    decision: Decision
    reason: str
    risk: Risk = Risk.MEDIUM
    rule: RuleReference | None = None
    parts: tuple[VerdictPart, ...] = ()
    locked: bool = False
    grant: str | None = None  # The narrowest grant that `this session` or `always` would write.
    prefix: str | None = None  # A wider grant may cover all commands that begin with these words.
    error_type: str = "Denied"  # For writes outside the workspace it is OutsideWorkspace.
    approve: tuple[str, ...] = ()  # A person's yes opens these resolved paths (`Boundary.approve_paths`).
    reads: bool = False  # True for a shell line that only reads.
    outside: bool = False  # A yes lets it run once outside the sandbox.


class FileChange(Data, frozen=True):
    """A file change made by a call, with the path as the model wrote it; `before` is None for a new file."""

    path: str
    before: str | None
    after: str


class ConfirmationDetails(Data, frozen=True):
    """Contents of a question to a person (T7.8)."""

    call_id: str
    tool: str
    description: str
    risk: Risk
    reason: str
    locations: tuple[str, ...] = ()
    diff: str = ""
    changes: tuple[FileChange, ...] = ()  # Front ends with their own comparison need whole texts.
    command: str = ""
    parts: tuple[VerdictPart, ...] = ()
    grant: str | None = None
    prefix: str | None = None
    locked: bool = False
    rule: RuleReference | None = None
    typed: bool = False  # True if a yes carries a typed text.

    @property
    def unusual(self) -> str:
        """The reason to show with the question itself: a high risk, protection, or a rule of the person's own."""
        own = self.locked or (self.rule is not None and self.rule.layer in ("configured", "sandbox"))
        return f"high risk · {self.reason}" if self.risk == Risk.HIGH else self.reason if own else ""


class ConfirmationAnswer(Data, frozen=True):
    """The answer to a confirmation. The model reads `reason` after a refusal. `text` is the typed text if the question
    requests one; otherwise it describes what an approval covers beyond this call."""

    approved: bool
    text: str = ""
    scope: GrantScope = "once"
    reason: str = ""
    prefix: bool = False  # Grants commands that begin with `ConfirmationDetails.prefix`.
    device: str = ""  # The paired device of the answer, or "" for the machine's own user.


class Todo(Data, frozen=True):
    """One line of the todo list (T11.5-8)."""

    id: str
    text: str
    status: Literal["open", "done"] = "open"


def read_result(call: JsonObject) -> ToolResult:
    """Read the result of a recorded call; an interrupted call has none."""
    return convert({**(call.get("result") or {"llmContent": ""}), "error": call.get("error")}, ToolResult)


def describe_call(name: str, args: JsonObject, summary: str | UnsetType | None) -> str:
    """Return the recorded summary of a call, or its name and first argument for calls from earlier versions."""
    if isinstance(summary, str) and summary:
        return summary
    first = next((value for value in args.values() if isinstance(value, str)), "")
    return " ".join(f"{name} {first}".split())[:MAX_SUMMARY_CHARS]


def describe_answer(details: ConfirmationDetails, answer: ConfirmationAnswer | None) -> str:
    if answer is None:
        return "no answer in time"
    if answer.device:
        return f"{describe_answer(details, replace(answer, device=''))}, answered from {answer.device}"
    if not answer.approved:
        return f"no: {answer.reason}" if answer.reason else "no"
    if details.typed:
        return answer.text or "(empty)"
    if answer.text:
        return f"yes, {answer.text}"
    granted = details.prefix if answer.prefix else details.grant
    return SCOPE_WORDS[answer.scope] + (f" ({granted})" if granted and answer.scope != "once" else "")
