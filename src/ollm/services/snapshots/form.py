"""What is in a snapshot file, and the context read back from one (H: snapshot structure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ollm.domain.context import ActiveContext, GoalStack, ModeName, ReasoningStorage
from ollm.domain.counting import format_count
from ollm.domain.errors import DamagedError
from ollm.domain.messages import PromptMessage
from ollm.domain.snapshot import ContextSnapshot, SnapshotMetadata, SnapshotTrigger
from ollm.domain.struct import Data

DEFAULT_MODE: ModeName = "code"
MAX_ASKED_CHARACTERS = 80


class ContextState(Data, frozen=True):
    """What a snapshot is made from. `user_messages` are all of the session's, in full, by number, with those that
    the context holds shortened or not at all."""

    session_id: str
    model: str
    window: int
    token_count: int
    context: ActiveContext
    user_messages: dict[int, str] = msgspec.field(default_factory=dict)
    archive_tokens: int = 0
    reasoning_model: bool = False


def make_snapshot(state: ContextState, trigger: SnapshotTrigger, named: tuple[str, str]) -> ContextSnapshot:
    context = state.context
    entries = [_make_entry(index, message, state.user_messages) for index, message in enumerate(context.messages)]
    standing = {entry["id"] for entry in entries if entry["role"] == "user"}
    beyond = [
        {"id": number, "index": None, "role": "user", "content": text, "sources": [number]}
        for number, text in sorted(state.user_messages.items())
        if number not in standing
    ]
    users = [*beyond, *(entry for entry in entries if entry["role"] == "user")]
    return ContextSnapshot(
        id=named[0],
        session_id=state.session_id,
        timestamp=named[1],
        token_count=state.token_count,
        summary=_describe_context(context, state.user_messages),
        user_messages=tuple(users),
        messages=tuple(entry for entry in entries if entry["role"] != "user"),
        metadata=_make_metadata(state, len(users)),
        goal_stack=context.goals,
        reasoning_storage=context.reasoning,
        trigger=trigger,
        mode=context.mode,
        checkpoints=context.checkpoints,
    )


def _make_entry(index: int, message: PromptMessage, words: dict[int, str]) -> dict[str, Any]:
    """A message with id and index; a user message in full, and as `shown` what the context holds of it."""
    number = message.sources[0] if message.sources else None
    entry = {"id": message.call_id or number or f"engine-{index}", "index": index, **msgspec.to_builtins(message)}
    full = words.get(number) if message.role == "user" and number is not None else None
    if full is not None and full != message.content:
        entry |= {"content": full, "shown": message.content}
    return entry


def _make_metadata(state: ContextState, users: int) -> SnapshotMetadata:
    goals = state.context.goals
    return SnapshotMetadata(
        model=state.model,
        context_size=state.window,
        compression_ratio=round(state.token_count / state.archive_tokens, 4) if state.archive_tokens else 1.0,
        total_user_messages=users,
        active_goal_id=goals.active.id if goals.active else None,
        total_goals_completed=sum(goal.status == "completed" for goal in goals.goals),
        total_checkpoints=len(state.context.checkpoints),
        is_reasoning_model=state.reasoning_model,
        total_thinking_tokens=state.context.reasoning.total_tokens,
    )


def _describe_context(context: ActiveContext, words: dict[int, str]) -> str:
    last = next((m for m in reversed(context.messages) if m.role == "user"), None)
    asked = words.get(last.sources[0] if last.sources else 0, last.content) if last else ""
    first = " ".join(asked.split())
    first = f"{first[: MAX_ASKED_CHARACTERS - 1].rstrip()}…" if len(first) > MAX_ASKED_CHARACTERS else first
    return (
        f"{format_count(len(context.messages), 'message')}, {format_count(len(context.checkpoints), 'checkpoint')}"
        + (f"; last asked: {first}" if first else "")
    )


def read_context(snapshot: ContextSnapshot) -> ActiveContext:
    """The context a snapshot file holds, in any form that was ever written."""
    return ActiveContext(
        messages=tuple(_parse_message(entry) for entry in _order_entries(snapshot)),
        checkpoints=snapshot.checkpoints,
        goals=snapshot.goal_stack or GoalStack(),
        reasoning=snapshot.reasoning_storage or ReasoningStorage(),
        mode=snapshot.mode or DEFAULT_MODE,
    )


def _order_entries(snapshot: ContextSnapshot) -> Sequence[dict[str, Any]]:
    """User and other messages joined by id; by index where there is one, else by time, else as they are."""
    users = [entry for entry in snapshot.user_messages if entry.get("index", 0) is not None]
    ids = {str(entry["id"]) for entry in users if "id" in entry}
    others = [entry for entry in snapshot.messages if entry.get("role") != "user" or str(entry.get("id")) not in ids]
    together = [*others, *users] if any(entry.get("role") == "user" for entry in others) else [*users, *others]
    for name in ("index", "timestamp"):
        if all(name in entry for entry in together):
            return sorted(together, key=lambda entry: entry[name])
    return together


def _parse_message(entry: dict[str, Any]) -> PromptMessage:
    content = entry.get("shown", entry.get("content"))
    if not isinstance(content, str):
        parts = entry.get("parts", content if isinstance(content, list) else [])
        content = "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
    known: dict[str, Any] = {
        name: entry[name]
        for name in ("thinking", "images", "calls", "callId", "toolName", "sources", "failed")
        if name in entry
    }
    number = entry.get("id")
    if "sources" not in known and isinstance(number, int) and number > 0:
        known["sources"] = [number]
    form: dict[str, Any] = {"role": entry.get("role"), "content": content, **known}
    try:
        return msgspec.convert(form, PromptMessage)
    except msgspec.ValidationError as error:
        raise DamagedError(f"A message of the snapshot cannot be read: {error}.") from error
