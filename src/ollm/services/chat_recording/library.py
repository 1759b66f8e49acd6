"""All the sessions there are: list, delete, the limit and the trash (design 3.9), rename, archive. Synchronous.

What a person asks to delete is gone for good and everywhere; what the limit removes waits in the trash.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ollm.config.settings import SessionSettings
from ollm.domain.clock import Clock, now
from ollm.domain.errors import BusyError, OllmError, StorageError, UsageError
from ollm.domain.session import SessionSummary
from ollm.services.chat_recording.traces import Traces, no_traces
from ollm.store.session_files import Places, SessionFiles, SessionWriter

if TYPE_CHECKING:
    from ollm.services.chat_recording.checking import Finding
    from ollm.store.session_index.index import Progress, SessionIndex


class SessionLibrary:
    """The archive as a whole. A session that is open in any process is never touched."""

    def __init__(
        self,
        files: SessionFiles,
        index: SessionIndex | None = None,
        settings: SessionSettings | None = None,
        *,
        traces: Traces = no_traces,
        clock: Clock = now,
    ) -> None:
        self.files = files
        self.index = index
        self._settings = settings or SessionSettings()
        self._traces = traces
        self._clock = clock

    @property
    def places(self) -> Places:
        return self.files.places

    def summaries(self, progress: Progress | None = None) -> list[SessionSummary]:
        """Last active first. One damaged file is named and hides no other."""
        if self.index is None:
            found = [self.files.summary(session_id) for session_id in self.places.ids()]
        else:
            import msgspec

            found = [msgspec.convert(line, SessionSummary) for line in self.index.lines(progress)]
        return sorted(found, key=lambda summary: summary.last_activity, reverse=True)

    def delete(self, session_id: str) -> None:
        """Remove every trace of a session, in the trash too. Raises `BusyError` while a process has it open."""
        workspace = self._workspace_of(session_id)
        self.files.remove(session_id)
        failed = []
        for trace in (*self._traces(workspace), *([self.index] if self.index else [])):
            try:
                trace.erase(session_id)
            except OllmError as error:
                failed.append(str(error))
        if failed:
            raise StorageError(f"Session {session_id} is gone, but not every trace of it: {' '.join(failed)}")

    def delete_all_but(self, keep: int) -> list[str]:
        """Delete the least recently active until `keep` are left; gives the ids that went."""
        if keep < 0:
            raise UsageError(f"Cannot keep {keep} sessions.", action="Give a number from 0 up.")
        return [found.session_id for found in self.summaries()[keep:] if self._when_free(found, self.delete)]

    def enforce_limit(self) -> list[str]:
        """Move what is over `maxSessions` to the trash, one-shot sessions first, and empty what is too old there."""
        limit = self._settings.max_sessions
        self.purge_trash()
        if limit == 0 or len(self.places.ids()) <= limit:
            return []
        sessions = self.summaries()
        candidates = sorted(sessions, key=lambda found: (found.origin != "one-shot", found.last_activity))
        gone: list[str] = []
        remove = self.to_trash if self._settings.trash_days else self.delete
        for found in candidates:
            if len(sessions) - len(gone) <= limit:
                break
            if self._when_free(found, remove):
                gone.append(found.session_id)
        return gone

    def to_trash(self, session_id: str) -> None:
        """Put a session where it can be restored from for `trashDays`."""
        self.files.move(session_id, self._trash(), at=self._clock())
        if self.index:
            self.index.erase(session_id)

    def restore(self, session_id: str) -> None:
        """Take a session back out of the trash."""
        self.files.bring_back(session_id, at=self._clock())

    def trashed(self) -> list[SessionSummary]:
        """The sessions in the trash, last active first."""
        trash = SessionFiles(Places(directory=self._trash()), self._clock)
        found = [trash.summary(session_id) for session_id in trash.places.ids()]
        return sorted(found, key=lambda summary: summary.last_activity, reverse=True)

    def purge_trash(self) -> None:
        """Delete for good what has been in the trash too long."""
        if self.places.trash is None:
            return
        oldest = self._clock() - timedelta(days=self._settings.trash_days)
        for session_id in self.files.trashed_before(oldest):
            with contextlib.suppress(BusyError):
                self.delete(session_id)

    def rename(self, session_id: str, title: str) -> None:
        self._change(session_id, {"title": title})

    def archive(self, session_id: str, archived: bool) -> None:
        """Archived sessions stay, but are no longer offered."""
        state = self.files.described(session_id).metadata.workspace_state
        self._change(session_id, {"workspaceState": {**state, "status": "archived" if archived else "closed"}})

    def check(self, *, repair: bool, progress: Progress | None = None) -> list[Finding]:
        """What is wrong with the files of all sessions; `repair` mends what can be mended."""
        from ollm.services.chat_recording.checking import check

        return check(self.files, repair=repair, progress=progress)

    def _change(self, session_id: str, metadata: dict[str, Any]) -> None:
        writer, loaded = self.files.open(session_id, to_continue=False)
        _close(writer, lambda: writer.change(loaded.session.last_activity, {}, metadata))
        if self.index:
            self.index.note(session_id)

    def _when_free(self, found: SessionSummary, remove: Callable[[str], None]) -> bool:
        if found.status == "active":
            return False
        try:
            remove(found.session_id)
        except BusyError:
            return False
        return True

    def _trash(self) -> Any:
        if self.places.trash is None:
            raise UsageError("There is no trash here.")
        return self.places.trash

    def _workspace_of(self, session_id: str) -> str | None:
        try:
            return self.files.described(session_id).metadata.workspace
        except OllmError:
            return None


def _close(writer: SessionWriter, work: Callable[[], None]) -> None:
    try:
        work()
    finally:
        writer.close()


def removed_notice(ids: list[str], days: int) -> str:
    """What a person is told when the limit removed sessions."""
    count = "1 old session was" if len(ids) == 1 else f"{len(ids)} old sessions were"
    if not days:
        return f"{count} deleted to stay within maxSessions."
    return f"{count} moved to the trash to stay within maxSessions; `ollm sessions list --trash` shows them."
