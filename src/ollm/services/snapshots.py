"""Snapshots of a conversation's context: file format, creation, listing and restoring (S5, H)."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.config.settings import SnapshotSettings
from ollm.domain.clock import Clock, format_stamp, make_id, now
from ollm.domain.context import ActiveContext, GoalStack, ModeName, ReasoningStorage
from ollm.domain.errors import DamagedError, OllmError, StorageError
from ollm.domain.events import (
    AutoSnapshotCreated,
    Event,
    Notice,
    SnapshotCreated,
    SnapshotDeleted,
    SnapshotError,
    SnapshotRestored,
)
from ollm.domain.messages import PromptMessage
from ollm.domain.session import ContextSnapshot, SnapshotMetadata, SnapshotSummary, SnapshotTrigger
from ollm.domain.struct import Data
from ollm.domain.text import format_count, shorten_line

if TYPE_CHECKING:
    from ollm.store.snapshot_files import SnapshotFiles

DEFAULT_MODE: ModeName = "code"
MAX_ASKED_CHARACTERS = 80


class ContextState(Data, frozen=True):
    """Input of a snapshot. `user_messages` has the full text of every user message of the session by number, including
    messages that the context has shortened or dropped."""

    session_id: str
    model: str
    window: int
    token_count: int
    context: ActiveContext
    user_messages: dict[int, str] = msgspec.field(default_factory=dict)
    archive_tokens: int = 0
    reasoning_model: bool = False


def make_snapshot(state: ContextState, trigger: SnapshotTrigger, snapshot_id: str, timestamp: str) -> ContextSnapshot:
    context = state.context
    entries = [_make_entry(index, message, state.user_messages) for index, message in enumerate(context.messages)]
    ids_in_context = {entry["id"] for entry in entries if entry["role"] == "user"}
    outside_context = [
        {"id": number, "index": None, "role": "user", "content": text, "sources": [number]}
        for number, text in sorted(state.user_messages.items())
        if number not in ids_in_context
    ]
    users = [*outside_context, *(entry for entry in entries if entry["role"] == "user")]
    return ContextSnapshot(
        id=snapshot_id,
        session_id=state.session_id,
        timestamp=timestamp,
        token_count=state.token_count,
        summary=_describe_context(context, state.user_messages),
        user_messages=tuple(users),
        messages=tuple(entry for entry in entries if entry["role"] != "user"),
        metadata=SnapshotMetadata(
            model=state.model,
            context_size=state.window,
            compression_ratio=round(state.token_count / state.archive_tokens, 4) if state.archive_tokens else 1.0,
            total_user_messages=len(users),
            active_goal_id=context.goals.active.id if context.goals.active else None,
            total_goals_completed=sum(goal.status == "completed" for goal in context.goals.goals),
            total_checkpoints=len(context.checkpoints),
            is_reasoning_model=state.reasoning_model,
            total_thinking_tokens=context.reasoning.total_tokens,
        ),
        goal_stack=context.goals,
        reasoning_storage=context.reasoning,
        trigger=trigger,
        mode=context.mode,
        checkpoints=context.checkpoints,
    )


def _make_entry(index: int, message: PromptMessage, full_texts: dict[int, str]) -> dict[str, Any]:
    """Make an entry with id and index. For a user message, `shown` is the text in the context if shortened."""
    number = message.sources[0] if message.sources else None
    entry = {"id": message.call_id or number or f"engine-{index}", "index": index, **msgspec.to_builtins(message)}
    full = full_texts.get(number) if message.role == "user" and number is not None else None
    if full is not None and full != message.content:
        entry |= {"content": full, "shown": message.content}
    return entry


def _describe_context(context: ActiveContext, full_texts: dict[int, str]) -> str:
    last = next((m for m in reversed(context.messages) if m.role == "user"), None)
    asked = full_texts.get(last.sources[0] if last.sources else 0, last.content) if last else ""
    excerpt = shorten_line(asked, MAX_ASKED_CHARACTERS)
    return (
        f"{format_count(len(context.messages), 'message')}, {format_count(len(context.checkpoints), 'checkpoint')}"
        + (f"; last asked: {excerpt}" if excerpt else "")
    )


def read_context(snapshot: ContextSnapshot) -> ActiveContext:
    """Read the context from a snapshot of any version."""
    return ActiveContext(
        messages=tuple(_parse_message(entry) for entry in _order_entries(snapshot)),
        checkpoints=snapshot.checkpoints,
        goals=snapshot.goal_stack or GoalStack(),
        reasoning=snapshot.reasoning_storage or ReasoningStorage(),
        mode=snapshot.mode or DEFAULT_MODE,
    )


def _order_entries(snapshot: ContextSnapshot) -> Sequence[dict[str, Any]]:
    """Merge user and other messages without duplicates: by index, else by time, else in the stored order."""
    users = [entry for entry in snapshot.user_messages if entry.get("index", 0) is not None]
    ids = {str(entry["id"]) for entry in users if "id" in entry}
    others = [entry for entry in snapshot.messages if entry.get("role") != "user" or str(entry.get("id")) not in ids]
    entries = [*others, *users] if any(entry.get("role") == "user" for entry in others) else [*users, *others]
    for name in ("index", "timestamp"):
        if all(name in entry for entry in entries):
            return sorted(entries, key=lambda entry: entry[name])
    return entries


SNAPSHOT_FIELDS = (
    *("thinking", "thinkingField", "thinkingDetails", "origin"),
    *("images", "calls", "callId", "toolName", "sources", "failed"),
)


def _parse_message(entry: dict[str, Any]) -> PromptMessage:
    content = entry.get("shown", entry.get("content"))
    if not isinstance(content, str):
        parts = entry.get("parts", content if isinstance(content, list) else [])
        content = "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
    known: dict[str, Any] = {name: entry[name] for name in SNAPSHOT_FIELDS if name in entry}
    number = entry.get("id")
    if "sources" not in known and isinstance(number, int) and number > 0:
        known["sources"] = [number]
    form: dict[str, Any] = {"role": entry.get("role"), "content": content, **known}
    try:
        return msgspec.convert(form, PromptMessage)
    except msgspec.ValidationError as error:
        raise DamagedError(f"A message of the snapshot cannot be read: {error}.") from error


OVERFLOW_SHARE = 0.95
Callback = Callable[[], Awaitable[None] | None]

_log = logging.getLogger(__name__)


class SnapshotManager:
    """Takes, restores and removes the snapshots of sessions. A failed snapshot is reported and stops nothing."""

    def __init__(
        self,
        files: SnapshotFiles,
        settings: SnapshotSettings | None = None,
        *,
        emit: Callable[[Event], None] = lambda _event: None,
        clock: Clock = now,
    ) -> None:
        self._files = files
        self._settings = settings or SnapshotSettings()
        self._emit = emit
        self._clock = clock
        self.thresholds: list[tuple[float, Callback]] = []
        self._share = 0.0  # Filled share of the context at the last check.
        self._disabled_notice_shown = False

    async def create_snapshot(
        self, state: ContextState, trigger: SnapshotTrigger = "manual", *, keep: str = ""
    ) -> ContextSnapshot | None:
        """Save the context. Returns None if snapshots are off or saving failed; both are reported.

        Snapshots over the limit are deleted, `keep` last.
        """
        if not self._is_wanted(trigger):
            return None
        stamp = make_id(), format_stamp(self._clock())
        snapshot = await asyncio.to_thread(make_snapshot, state, trigger, *stamp)  # The snapshot may be large.
        try:
            await asyncio.to_thread(self._files.write, snapshot)
            self._files.register(snapshot)
        except (OSError, OllmError) as error:
            self._report(error, "No snapshot was taken")
            return None
        try:
            self._clean_up(snapshot, keep)
        except (OSError, OllmError) as error:
            self._report(error, "Old snapshots could not be deleted")
        made = SnapshotCreated if trigger == "manual" else AutoSnapshotCreated
        self._emit(made(snapshot_id=snapshot.id, trigger=trigger))
        return snapshot

    async def restore_snapshot(self, snapshot_id: str, current: ContextState | None = None) -> ActiveContext:
        """Return the saved context. `current` is saved first, so that the restore can be undone."""
        try:
            snapshot = self._files.load(snapshot_id)
            if current is not None and current.session_id != snapshot.session_id:
                raise StorageError(
                    f"Snapshot {snapshot_id} belongs to session {snapshot.session_id}, not to this one.",
                    action=f"Resume that one first: ollm chat --session {snapshot.session_id}",
                )
            context = read_context(snapshot)
        except OllmError as error:
            self._emit(SnapshotError(message=str(error)))
            raise
        if current is not None:
            await self.create_snapshot(current, "restore", keep=snapshot_id)
        self._emit(SnapshotRestored(snapshot_id=snapshot_id))
        return context

    async def list_snapshots(self, session_id: str) -> list[SnapshotSummary]:
        """List the snapshots, newest first."""
        return self._files.list_summaries(session_id)

    async def delete_snapshot(self, snapshot_id: str) -> None:
        self._files.delete(snapshot_id)
        self._emit(SnapshotDeleted(snapshot_id=snapshot_id))

    def on_context_threshold(self, share: float, callback: Callback) -> None:
        """Call back when usage reaches `share`, and again only after it has dropped below."""
        self.thresholds.append((share, callback))

    def on_before_overflow(self, callback: Callback) -> None:
        """Call back when the context is 95 % full."""
        self.on_context_threshold(OVERFLOW_SHARE, callback)

    async def check_thresholds(self, current_tokens: int, max_tokens: int) -> None:
        """Check usage; called after each message."""
        before, self._share = self._share, current_tokens / max_tokens if max_tokens > 0 else 0.0
        for share, callback in self.thresholds:
            if before < share <= self._share:
                outcome = callback()
                if inspect.isawaitable(outcome):
                    await outcome

    def _report(self, error: Exception, problem: str) -> None:
        _log.warning("%s: %s", problem, error)
        self._emit(SnapshotError(message=str(error)))
        self._emit(Notice(level="warning", text=f"{problem}: {error}. The session is not affected."))

    def _is_wanted(self, trigger: SnapshotTrigger) -> bool:
        if self._settings.enabled:
            return trigger in ("manual", "restore") or self._settings.auto_create
        if trigger == "manual" or not self._disabled_notice_shown:
            self._disabled_notice_shown = True
            self._emit(
                Notice(level="info", text="Snapshots are turned off (snapshots.enabled: false); none was taken.")
            )
        return False

    def _clean_up(self, newest: ContextSnapshot, keep: str) -> None:
        """Delete automatic snapshots first, oldest first, never the newest one."""
        existing = [entry for entry in self._files.list_summaries(newest.session_id) if entry.id != newest.id]
        extra = len(existing) + 1 - self._settings.max_count
        existing.reverse()
        existing.sort(key=lambda entry: (entry.id == keep, entry.trigger == "manual"))
        for entry in existing[: max(0, extra)]:
            self._files.delete(entry.id)
            self._emit(SnapshotDeleted(snapshot_id=entry.id))
