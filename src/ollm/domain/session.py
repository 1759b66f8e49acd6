"""The session file as data (S2): the document, its metadata and the summary a list shows."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ollm.domain.messages import Message
from ollm.domain.struct import Data
from ollm.domain.tasks import ParentCall
from ollm.domain.tools import ToolCallRecord

SCHEMA_VERSION = 1
SessionStatus = Literal["active", "closed", "archived"]
ModeTrigger = Literal["manual", "auto", "tool"]


class ModeChange(Data, frozen=True):
    """A step of `modeHistory` (H150)."""

    from_: str = msgspec.field(name="from")
    to: str
    timestamp: str
    trigger: ModeTrigger
    confidence: float = 1.0


class SessionMetadata(Data, frozen=True):
    """Facts about a session besides its messages. Unknown fields survive: the store folds plain dicts."""

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
    parent: ParentCall | UnsetType | None = UNSET  # of a task: the call it was begun by
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
    """One line of a session list (D128), with what people look for."""

    session_id: str
    start_time: str
    last_activity: str
    model: str
    message_count: int
    token_count: int
    title: str = ""
    workspace: str | None = None
    status: SessionStatus = "closed"
    damaged: str | None = None  # what is wrong with the file, in a sentence
    origin: str | None = None
