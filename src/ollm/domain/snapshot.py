"""A snapshot file as data (H275): the context at one moment, to go back to."""

from __future__ import annotations

from typing import Any, Literal

from ollm.domain.context import Checkpoint, GoalStack, ModeName, ReasoningStorage
from ollm.domain.struct import Data, SparseData

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


class ContextSnapshot(Data, frozen=True):
    """Messages are kept as plain JSON with id and index, so that every format that was ever written can be read."""

    id: str
    session_id: str
    timestamp: str
    token_count: int
    summary: str
    user_messages: tuple[dict[str, Any], ...]
    messages: tuple[dict[str, Any], ...]
    metadata: SnapshotMetadata
    archived_user_messages: tuple[dict[str, Any], ...] = ()
    goal_stack: GoalStack | None = None
    reasoning_storage: ReasoningStorage | None = None
    trigger: SnapshotTrigger = "manual"
    mode: ModeName | None = None  # none in files that were written before there were modes
    checkpoints: tuple[Checkpoint, ...] = ()


class SnapshotSummary(Data, frozen=True):
    """One line of a snapshot list."""

    id: str
    session_id: str
    timestamp: str
    token_count: int
    summary: str
    trigger: SnapshotTrigger = "manual"
