"""Request and reply bodies of the API (W)."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal
from uuid import uuid4

from msgspec import UNSET, Meta, UnsetType, field

from ollm.domain.errors import NotFoundError, OllmError
from ollm.domain.messages import ImagePart, Message
from ollm.domain.model_facts import ModelFacts
from ollm.domain.session import MessageHit, SessionSummary
from ollm.domain.struct import Data
from ollm.domain.tools import (
    ConfirmationAnswer,
    Decision,
    Risk,
    RuleReference,
    ToolCallRecord,
    ToolSchema,
    VerdictPart,
)
from ollm.runtime.base import Attachment

PATH_PATTERN = r"(/([^./\x00][^/\x00]*|\.[^./\x00][^/\x00]*|\.\.[^/\x00]+))+/?"  # Absolute, without `.`, `..` and `//`.
MAX_PATH_CHARS = 4096
Text = Annotated[str, Meta(min_length=1)]  # Only the request's size limits its length.
Name = Annotated[str, Meta(min_length=1, max_length=200)]
UUID_FORMAT, BASE64_FORMAT = {"format": "uuid"}, {"format": "byte"}
NO_PATH_FORMAT = {"pattern": f"^({PATH_PATTERN})?$"}
Place = Annotated[str, Meta(max_length=MAX_PATH_CHARS, extra_json_schema={"extra": {"pattern": f"^{PATH_PATTERN}$"}})]
PlaceOrNone = Annotated[str, Meta(max_length=MAX_PATH_CHARS, extra_json_schema={"extra": NO_PATH_FORMAT})]


class Problem(Data, frozen=True):
    """An error as in RFC 9457, worded as by the command."""

    title: str
    status: int
    detail: str
    action: str = ""
    type: str = "about:blank"


TITLES = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
          409: "Conflict", 413: "Too Large", 415: "Unsupported Media Type", 422: "Unprocessable", 500: "Internal Error",
          502: "No Model Server", 503: "Unavailable", 507: "Insufficient Storage"}  # fmt: skip


def make_problem(status: int, detail: str, action: str = "") -> Problem:
    return Problem(title=TITLES.get(status, "Error"), status=status, detail=detail, action=action)


class Health(Data, frozen=True):
    status: Literal["ok"]
    version: str
    sessions: int


class InitBody(Data, frozen=True, forbid_unknown_fields=True):
    workspace_path: Place


class SessionLine(Data, frozen=True):
    """A session as the list of a workspace shows it (W)."""

    session_id: str
    title: str
    model: str
    status: str
    updated_at: int
    parent: str | UnsetType = UNSET  # Set for a fork.


class WorkspaceLine(Data, frozen=True):
    workspace_path: str
    last_activity: str
    sessions: int = 0


class InitReply(Data, frozen=True):
    workspace_path: str
    trusted: bool
    sessions: list[SessionLine]


class ArchivePlace(Data, frozen=True):
    owner: str
    host: str
    in_use: str | None = None


class ListedSession(SessionSummary, frozen=True):
    """A line of all sessions: `open`, `running` and `questions` are those of this daemon; `archive` is set for one that
    is only in the team archive."""

    open: bool = False
    running: bool = False
    questions: int = 0
    archive: ArchivePlace | UnsetType = UNSET


class FoundMessage(MessageHit, frozen=True):
    archive: ArchivePlace | UnsetType = UNSET


class HistoryMessage(Message, frozen=True):
    tool_calls: tuple[ToolCallRecord, ...] = ()


class ToolLine(ToolSchema, frozen=True):
    """A tool; `parameters` is a JSON Schema."""

    risk: Risk
    reads_only: bool


class RuleLine(Data, frozen=True):
    layer: str
    tool: str
    action: str
    text: str
    file: str | None
    line: int | None
    message: str | None
    problem: str | None


class GrantLine(Data, frozen=True):
    number: int
    grant: str
    workspace: str | None


class PolicyReply(Data, frozen=True):
    """Rules in the order they are asked, and grants."""

    approval: str
    trusted: bool
    rules: list[RuleLine]
    default_action: str
    grants: list[GrantLine]


class VerdictReply(Data, frozen=True):
    decision: Decision
    reason: str
    rule: RuleReference | None
    parts: list[VerdictPart]
    risk: Risk
    locked: bool
    grant: str | None


class DecisionCounts(Data, frozen=True):
    allow: int
    ask: int
    deny: int


class JudgedCall(Data, frozen=True):
    session_id: str
    call_id: str
    tool: str
    what: str
    now: Decision
    then: Decision


class BacktestReply(DecisionCounts, frozen=True):
    calls: int
    today: DecisionCounts
    changes: list[JudgedCall]
    problems: list[str]


class InstalledModel(Data, frozen=True):
    name: str
    size: int | None
    path: str | None = None


class ServerModels(Data, frozen=True):
    label: str
    base_url: str
    models: list[InstalledModel]


class DownloadLine(Data, frozen=True):
    name: str
    about: str
    size: int
    installed: bool


class ModelsReply(Data, frozen=True):
    files: list[InstalledModel]
    servers: list[ServerModels]
    catalogue: list[DownloadLine]
    facts: list[ModelFacts]
    problems: list[str]


class SettingsReply(Data, frozen=True):
    """Settings in force, secrets hidden; `sources` names the origin of each that is set. Keys that match `changeable`
    may be changed by the client that asks."""

    settings: dict[str, Any]
    sources: dict[str, str]
    problems: list[str]
    trusted: bool
    changeable: str = ""


class SettingBody(Data, frozen=True, forbid_unknown_fields=True):
    """A setting of the user's own file; None removes it. With `dryRun` nothing is written."""

    key: Annotated[str, Meta(min_length=1, max_length=200)]
    value: Annotated[str, Meta(max_length=10_000)] | None
    dry_run: bool = False


class SettingReply(Data, frozen=True):
    """The change as a diff, secrets hidden."""

    diff: str


class OpenBody(Data, frozen=True, forbid_unknown_fields=True):
    workspace_path: Place
    session_id: Annotated[str, Meta(extra_json_schema={"extra": UUID_FORMAT})] | None = None
    full: bool = False
    force: bool = False
    beside: bool = False


class OpenReply(Data, frozen=True):
    session_id: str
    resumed: bool


class ChangeBody(Data, frozen=True, forbid_unknown_fields=True):
    title: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    status: Literal["closed", "archived"] | None = None


class AttachmentBody(Data, frozen=True, forbid_unknown_fields=True):
    """A text or a picture, or a piece of one: `id` names the one it goes on from. `data` is base64."""

    name: Name
    media_type: Literal["text/plain", "image/png", "image/jpeg", "image/gif", "image/webp"]
    data: Annotated[bytes, Meta(extra_json_schema={"extra": BASE64_FORMAT})]
    id: str | None = None


class CreatedReply(Data, frozen=True):
    id: str


class MessageBody(Data, frozen=True, forbid_unknown_fields=True):
    """`attachments` are ids of attachments sent before. With `mentions`, files of the workspace that the text names
    with `@` are attached too."""

    text: Text
    attachments: Annotated[list[str], Meta(max_length=50)] = field(default_factory=list)
    mentions: bool = False


class ShellBody(Data, frozen=True, forbid_unknown_fields=True):
    command: Annotated[str, Meta(min_length=1, max_length=10_000)]


class ShellReply(Data, frozen=True):
    """The output of a command, and the id of the attachment that holds it for the next message."""

    command: str
    ok: bool
    output: str
    attachment: str


class CommandLine(Data, frozen=True):
    """A slash command, as a list of commands shows it."""

    name: str
    usage: str
    help: str


class CommandBody(Data, frozen=True, forbid_unknown_fields=True):
    name: Name
    arguments: str = ""


class AnswerBody(ConfirmationAnswer, frozen=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=10_000)] = ""
    text: Annotated[str, Meta(max_length=10_000)] = ""


class RestoreBody(Data, frozen=True, forbid_unknown_fields=True):
    """Rewind to before a message. Files that others changed since stay unless `force` is set. With `dryRun` nothing is
    touched, and with `diff` besides `text` has the changes line by line."""

    what: Literal["talk", "files", "both"]
    dry_run: bool = False
    force: bool = False
    diff: bool = False


class CheckpointLine(Data, frozen=True):
    """A stretch in which a session changed files. `messageId` is the message that began it, and the number to restore;
    `changed` counts the files, None while it is not over."""

    number: int
    kind: str
    message_id: int
    started_at: str
    ended_at: str | None
    changed: int | None


class RestoredFile(Data, frozen=True):
    """A restored file: M modified, A added again, D deleted again."""

    path: str
    change: str


class KeptFile(Data, frozen=True):
    path: str
    why: str


class RestoreReply(Data, frozen=True):
    """Outcome of a rewind, or of its preview with dryRun."""

    what: str
    dry_run: bool
    files: list[RestoredFile]
    skipped: list[KeptFile]
    text: str


class Accepted(Data, frozen=True):
    accepted: bool


class LinkReply(Data, frozen=True):
    url: str
    expires_in_seconds: int


class DeviceRights(Data, frozen=True, forbid_unknown_fields=True):
    """The name of a device to pair, "" for one by its kind, and what it may not do: send anything, or give an answer
    that lasts."""

    name: Annotated[str, Meta(max_length=40, pattern=r"^[\w .'-]*$")] = ""
    read_only: bool = False
    no_grants: bool = False


class DeviceLine(DeviceRights, frozen=True):
    """A paired device; `lastSeen` is in seconds since 1970."""

    last_seen: float = 0.0
    address: str = ""


class PairReply(LinkReply, frozen=True):
    """The code that pairs a device, and the address that holds it."""

    code: str


class PairBody(Data, frozen=True, forbid_unknown_fields=True):
    code: Annotated[str, Meta(min_length=1, max_length=20)]


class LoginBody(Data, frozen=True, forbid_unknown_fields=True):
    ticket: Annotated[str, Meta(min_length=1, max_length=200)]


class LoginReply(Data, frozen=True):
    """The token that goes with every request of the page, beside the cookie."""

    token: str


class TranscriptMessage(Data, frozen=True):
    """A message as HTML; empty for one that only brings results, which are with their calls."""

    number: int
    role: str
    html: str


class TranscriptPage(Data, frozen=True):
    """A stretch of messages; `last` is the number of the last one before its end."""

    last: int
    messages: list[TranscriptMessage]


class RenderBody(Data, frozen=True, forbid_unknown_fields=True):
    """Markdown, or with `diff` a unified diff."""

    text: str
    diff: bool = False


class RenderReply(Data, frozen=True):
    html: str


class TurnReply(Data, frozen=True):
    """A turn that began; its events follow on the streams."""

    accepted: bool
    after: int


class PolicyCheckBody(Data, frozen=True, forbid_unknown_fields=True):
    """`params` are those of the tool, as a model would give them."""

    tool: Name
    params: dict[str, Any] = field(default_factory=dict)
    workspace_path: PlaceOrNone = ""


class RevokeBody(Data, frozen=True, forbid_unknown_fields=True):
    """The number and the text of a grant, as `GET /policy` lists it."""

    number: Annotated[float, Meta(ge=1, multiple_of=1)]  # JSON has no integers, so 2.0 counts as 2.
    grant: Name


class BacktestBody(Data, frozen=True, forbid_unknown_fields=True):
    """Rules as they are in a config file, in YAML."""

    rules: Text
    workspace_path: PlaceOrNone = ""


MAX_ATTACHMENT_BYTES = 10_000_000
MAX_OUTPUT_BYTES = 200_000  # The end of a command's output is kept.
MAX_WAITING_BYTES = 32_000_000  # Limit of all attachments that wait in one session.


class TooLargeError(OllmError):
    """An attachment over the size limit."""


class PendingAttachments:
    """Attachments of one session, until a message takes them."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[AttachmentBody, bytearray]] = {}

    def add(self, body: AttachmentBody) -> str:
        """Add an attachment, or a piece to the one that is named; returns its id."""
        name = body.id or str(uuid4())
        _, content = self._find(name) if body.id else (body, bytearray())
        waiting = sum(len(found) for _, found in self._waiting.values())
        if len(content) + len(body.data) > MAX_ATTACHMENT_BYTES or waiting + len(body.data) > MAX_WAITING_BYTES:
            self._waiting.pop(name, None)
            raise TooLargeError(
                f"{body.name[:80]!r} is too large to attach: the limit is 10 MB per file, 32 MB in total."
            )
        content += body.data
        self._waiting[name] = (body, content)
        return name

    def keep_output(self, command: str, output: str) -> str:
        """Keep the output of a command for the next message; returns its id."""
        data = output.encode("utf-8", "replace")[-MAX_OUTPUT_BYTES:]
        return self.add(AttachmentBody(name=f"$ {command}"[:200], media_type="text/plain", data=data))

    def holds(self, name: str) -> bool:
        return name in self._waiting

    def take(self, ids: list[str]) -> tuple[Attachment, ...]:
        """Take the attachments that a message names, in its order."""
        found = [self._find(name) for name in ids]
        for name in ids:
            self._waiting.pop(name, None)
        return tuple(make_attachment(body, bytes(content)) for body, content in found)

    def _find(self, name: str) -> tuple[AttachmentBody, bytearray]:
        if name not in self._waiting:
            raise NotFoundError(f"No attachment {name[:80]}.", action="Send it again.")
        return self._waiting[name]


def make_attachment(body: AttachmentBody, content: bytes) -> Attachment:
    if body.media_type == "text/plain":
        return Attachment(name=body.name, text=content.decode("utf-8", "replace"))
    image = ImagePart(media_type=body.media_type, data=base64.b64encode(content).decode())
    return Attachment(name=body.name, image=image)
