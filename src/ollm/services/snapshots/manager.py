"""`SnapshotManager` (H): the context at one moment, kept to go back to."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ollm.config.settings import SnapshotSettings
from ollm.domain.clock import Clock, NewId, format_stamp, make_id, now
from ollm.domain.errors import OllmError, StorageError
from ollm.domain.events import (
    AutoSnapshotCreated,
    Event,
    Notice,
    SnapshotCreated,
    SnapshotDeleted,
    SnapshotError,
    SnapshotRestored,
)

if TYPE_CHECKING:
    from ollm.domain.context import ActiveContext
    from ollm.domain.snapshot import ContextSnapshot, SnapshotSummary, SnapshotTrigger
    from ollm.services.snapshots.form import ContextState
    from ollm.store.snapshot_files import SnapshotFiles

OVERFLOW_SHARE = 0.95
Callback = Callable[[], Awaitable[None] | None]

_log = logging.getLogger(__name__)


class SnapshotManager:
    """Takes, restores and removes the snapshots of sessions. A failure is told and stops nothing."""

    def __init__(
        self,
        files: SnapshotFiles,
        settings: SnapshotSettings | None = None,
        *,
        emit: Callable[[Event], None] = lambda _event: None,
        clock: Clock = now,
        ids: NewId = make_id,
    ) -> None:
        self._files = files
        self._settings = settings or SnapshotSettings()
        self._emit = emit
        self._clock = clock
        self._ids = ids
        self._thresholds: list[_Threshold] = []
        self._told_off = False

    async def create_snapshot(
        self, state: ContextState, trigger: SnapshotTrigger = "manual", *, spare: str = ""
    ) -> ContextSnapshot | None:
        """Save the context; None when the settings say no, or when it failed, which is told.

        Of the others `spare` is the last to be cleaned up."""
        if not self._is_wanted(trigger):
            return None
        from ollm.services.snapshots.form import make_snapshot

        snapshot = make_snapshot(state, trigger, (self._ids(), format_stamp(self._clock())))
        try:
            self._files.save(snapshot)
            self._clean_up(snapshot, spare)
        except (OSError, OllmError) as error:
            _log.warning("A snapshot of session %s could not be written: %s", state.session_id, error)
            self._emit(SnapshotError(message=str(error)))
            self._emit(Notice(level="warning", text=f"No snapshot was taken: {error}. The session is not affected."))
            return None
        made = SnapshotCreated if trigger == "manual" else AutoSnapshotCreated
        self._emit(made(snapshot_id=snapshot.id, trigger=trigger))
        return snapshot

    async def restore_snapshot(self, snapshot_id: str, current: ContextState | None = None) -> ActiveContext:
        """The context of then, message for message. `current` is kept as a snapshot first, so this can be undone."""
        from ollm.services.snapshots.form import read_context

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
            await self.create_snapshot(current, "restore", spare=snapshot_id)
        self._emit(SnapshotRestored(snapshot_id=snapshot_id))
        return context

    async def list_snapshots(self, session_id: str) -> list[SnapshotSummary]:
        """Newest first."""
        return self._files.list_summaries(session_id)

    async def delete_snapshot(self, snapshot_id: str) -> None:
        self._files.delete(snapshot_id)
        self._emit(SnapshotDeleted(snapshot_id=snapshot_id))

    def on_context_threshold(self, share: float, callback: Callback) -> None:
        """Called when usage first reaches `share`, and again only after it was below in between."""
        self._thresholds.append(_Threshold(share, callback))

    def on_before_overflow(self, callback: Callback) -> None:
        """Called when the context is nearly full, at 95 %."""
        self.on_context_threshold(OVERFLOW_SHARE, callback)

    async def check_thresholds(self, current_tokens: int, max_tokens: int) -> None:
        """To be called after each message."""
        share = current_tokens / max_tokens if max_tokens > 0 else 0.0
        for threshold in self._thresholds:
            if threshold.check_crossing(share):
                outcome = threshold.callback()
                if inspect.isawaitable(outcome):
                    await outcome

    def _is_wanted(self, trigger: SnapshotTrigger) -> bool:
        if self._settings.enabled:
            return trigger == "manual" or self._settings.auto_create
        if trigger == "manual" or not self._told_off:
            self._told_off = True
            self._emit(
                Notice(level="info", text="Snapshots are turned off (snapshots.enabled: false); none was taken.")
            )
        return False

    def _clean_up(self, newest: ContextSnapshot, spare: str) -> None:
        """Automatic ones go first, oldest first; the one just taken stays."""
        standing = [entry for entry in self._files.list_summaries(newest.session_id) if entry.id != newest.id]
        extra = len(standing) + 1 - self._settings.max_count
        standing.reverse()
        standing.sort(key=lambda entry: (entry.id == spare, entry.trigger == "manual"))
        for entry in standing[: max(0, extra)]:
            self._files.delete(entry.id)
            self._emit(SnapshotDeleted(snapshot_id=entry.id))


class _Threshold:
    def __init__(self, share: float, callback: Callback) -> None:
        self._share = share
        self.callback = callback
        self._armed = True

    def check_crossing(self, share: float) -> bool:
        """True once for each time the share is reached from below."""
        reached = share >= self._share
        fires = reached and self._armed
        self._armed = not reached
        return fires
