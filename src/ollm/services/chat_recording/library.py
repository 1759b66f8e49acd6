"""The library of all sessions: list, delete, limit and trash, rename, archive. Synchronous.

Sessions deleted by the user are erased everywhere. Sessions removed by the limit move to the trash."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec.structs import replace

from ollm.config.settings import SessionSettings
from ollm.domain.clock import Clock, now
from ollm.domain.errors import BusyError, OllmError, StorageError, UsageError
from ollm.domain.session import SessionMetadata, SessionSummary
from ollm.domain.struct import Data
from ollm.store.session_files.places import SessionPlaces
from ollm.store.session_files.store import SessionFiles

if TYPE_CHECKING:
    from ollm.store.session_index.index import SessionIndex
    from ollm.store.session_index.stamps import Progress


TASK_ORIGIN = "task"


def list_unindexed(directory: Path, tasks: bool = False) -> list[SessionSummary]:
    """List the sessions in a directory from their files alone, last active first."""
    from ollm.store.session_index.index import SessionIndex

    with contextlib.closing(SessionIndex.make_in_memory(directory)) as index:
        return _convert_lines(index.list_sessions(tasks=tasks))


def _convert_lines(lines: Iterable[dict[str, Any]]) -> list[SessionSummary]:
    import msgspec

    return [msgspec.convert(line, SessionSummary) for line in lines]


def find_tasks(summaries: Iterable[SessionSummary], parents: Iterable[str]) -> list[str]:
    """Find the ids of the tasks among these sessions that the parents started."""
    wanted, tasks = set(parents), (summary for summary in summaries if summary.origin == TASK_ORIGIN)
    return [task.session_id for task in tasks if task.parent and task.parent.session_id in wanted]


Outcome = Literal["damaged", "mended"]


class Finding(Data, frozen=True):
    """A problem, and whether it was repaired."""

    session_id: str
    problem: str
    outcome: Outcome = "damaged"


def check_sessions(files: SessionFiles, *, repair: bool, progress: Progress | None = None) -> list[Finding]:
    ids = files.places.list_ids()
    findings: list[Finding] = []
    for done, session_id in enumerate(ids, start=1):
        if problem := _find_problem(files, session_id):
            found = Finding(session_id=session_id, problem=problem)
            findings.append(_repair_session(files, found) if repair else found)
        if progress:
            progress(done, len(ids))
    return findings


def _find_problem(files: SessionFiles, session_id: str) -> str:
    """Read all of a session, and describe its damage and leftovers, or return ""."""
    is_left = any(files.places.directory.glob(f".{session_id}.*.tmp")) and not files.is_open(session_id)
    left = "a temporary file was left behind" if is_left else ""
    try:
        with files.open_reader(session_id) as reader:
            for entries in (reader.iter_messages(), reader.iter_calls()):
                deque(entries, maxlen=0)
            return "; ".join(filter(None, (reader.damage, left)))
    except OllmError as error:
        return str(error)


def _repair_session(files: SessionFiles, found: Finding) -> Finding:
    try:
        writer, _ = files.open(found.session_id, to_continue=False)
        try:
            writer.close()
        finally:
            writer.abandon()
    except OllmError as error:
        return replace(found, problem=f"{found.problem}; not repaired: {error.message}")
    return replace(found, outcome="mended")


def read_metadata(files: SessionFiles, session_id: str) -> SessionMetadata:
    """Read what the head of a session says, or nothing if it cannot be read."""
    try:
        return files.describe_session(session_id).metadata
    except OllmError:
        return SessionMetadata()


class ErasableStore(Protocol):
    """A store with data about sessions: snapshots, undo copies, a workspace's rows, the index."""

    def erase(self, session_id: str) -> None:
        """Erase all data of a session. An unknown session is not an error."""


class DeletionLog(Protocol):
    """A log of deletions for other places that hold copies of sessions."""

    def add_deletion(self, session_id: str) -> None:
        """Log a deletion. Called before the session is deleted, so that a crash in between leaves no copy behind."""

    def withdraw_deletion(self, session_id: str) -> None:
        """Withdraw the log entry of a failed deletion."""


FindErasableStores = Callable[[str | None], Iterable[ErasableStore]]
"""The stores that may know a session, given the workspace it was held in."""


class SessionLibrary:
    """All sessions of the archive. A session that is open in any process is never touched."""

    def __init__(
        self,
        files: SessionFiles,
        index: SessionIndex | None = None,
        settings: SessionSettings | None = None,
        *,
        traces: FindErasableStores = lambda _: (),
        deletions: DeletionLog | None = None,
        clock: Clock = now,
    ) -> None:
        self.files = files
        self.index = index
        self._settings = settings or SessionSettings()
        self._traces = traces
        self._deletions = deletions
        self._clock = clock

    @property
    def places(self) -> SessionPlaces:
        return self.files.places

    def list_summaries(self, progress: Progress | None = None, *, tasks: bool = False) -> list[SessionSummary]:
        """List sessions, last active first, without `tasks` unless requested. A damaged file is reported and does not
        hide others."""
        if self.index is None:
            return list_unindexed(self.places.directory, tasks=tasks)
        return _convert_lines(self.index.list_sessions(progress, tasks=tasks))

    def find_tasks(self, ids: Iterable[str]) -> list[str]:
        """Find the task sessions that these sessions started, including those in the trash."""
        parents = list(ids)
        found = find_tasks(self._list_with_tasks(), parents)
        return [*found, *(self._find_trashed_tasks(parents) if self.places.trash else ())]

    def _list_with_tasks(self) -> list[SessionSummary]:
        """List all sessions with tasks, from the files if the index fails: deletion does not depend on it."""
        try:
            return self.list_summaries(tasks=True)
        except (OllmError, OSError):
            return list_unindexed(self.places.directory, tasks=True)

    def _find_trashed_tasks(self, parents: Sequence[str]) -> list[str]:
        return find_tasks(list_unindexed(self._require_trash(), tasks=True), parents)

    def delete(self, session_id: str, *, with_tasks: bool = True, everywhere: bool = True) -> None:
        """Erase a session as `delete_many` does. Raises `BusyError` while a process has it open."""
        for error in self.delete_many([session_id], with_tasks=with_tasks, everywhere=everywhere):
            raise error

    def delete_many(
        self,
        ids: Sequence[str],
        progress: Progress | None = None,
        *,
        with_tasks: bool = True,
        everywhere: bool = True,
    ) -> list[OllmError]:
        """Erase these sessions and their tasks, and return the errors.
        `everywhere` also logs the deletion for copies in other places; the limit deletes only here."""
        if with_tasks:
            ids = [*ids, *(found for found in self.find_tasks(ids) if found not in ids)]
        gone: list[str] = []
        failed: list[OllmError] = []
        for done, session_id in enumerate(ids, start=1):
            try:
                failed += self._remove(session_id, self._deletions if everywhere else None)
                gone.append(session_id)
            except OllmError as error:
                failed.append(error)
            if progress:
                progress(done, len(ids))
        if self.index and gone:
            try:
                self.index.erase_all(gone, progress)
            except (StorageError, OSError) as error:
                failed.append(_make_incomplete_error(gone, error))
        return failed

    def _remove(self, session_id: str, deletions: DeletionLog | None) -> list[OllmError]:
        """Remove the files of a session and its data in other stores, except the index. Returns the faults of those."""
        workspace = read_metadata(self.files, session_id).workspace
        if deletions:
            deletions.add_deletion(session_id)
        try:
            self.files.remove(session_id)
        except OllmError:
            if deletions:
                deletions.withdraw_deletion(session_id)
            raise
        failed = []
        for trace in self._traces(workspace):
            try:
                trace.erase(session_id)
            except OllmError as error:
                failed.append(str(error))
        told = f"Session {session_id} was deleted, but some data remains: {' '.join(failed)}"
        return [StorageError(told)] if failed else []

    def delete_all_but(self, keep: int) -> list[str]:
        """Delete the least recently active sessions until `keep` are left, and return the deleted ids."""
        if keep < 0:
            raise UsageError(f"Cannot keep {keep} sessions.", action="Give a number, 0 or more.")
        old = [found.session_id for found in self.list_summaries()[keep:] if found.status != "active"]
        _raise_unless_busy(self.delete_many(old))
        return [session_id for session_id in old if not self.places.has(session_id)]

    def enforce_limit(self) -> list[str]:
        """Move sessions over `maxSessions` to the trash, one-shot sessions first, and purge the trash."""
        limit = self._settings.max_sessions
        self.purge_trash()
        if limit == 0 or len(self.places.list_ids()) <= limit:
            return []
        sessions = self.list_summaries()
        closed = [found for found in sessions if found.status != "active"]
        gone: list[str] = []
        remove = self.move_to_trash if self._settings.trash_days else partial(self.delete, everywhere=False)
        for found in sorted(closed, key=lambda found: (found.origin != "one-shot", found.last_activity)):
            if len(sessions) - len(gone) <= limit:
                break
            with contextlib.suppress(BusyError):
                remove(found.session_id)
                gone.append(found.session_id)
        return gone

    def move_to_trash(self, session_id: str) -> None:
        """Move a session and its tasks to the trash, where it can be restored for `trashDays`."""
        for found in (session_id, *find_tasks(self._list_with_tasks(), [session_id])):
            self.files.move(found, self._require_trash(), at=self._clock())
            if self.index:
                self.index.forget(found)

    def restore(self, session_id: str) -> None:
        """Restore a session and its tasks from the trash."""
        for found in (session_id, *self._find_trashed_tasks([session_id])):
            self.files.restore_from_trash(found, at=self._clock())

    def list_trashed(self) -> list[SessionSummary]:
        """List the sessions in the trash, last active first."""
        return list_unindexed(self._require_trash())

    def purge_trash(self) -> None:
        """Delete sessions that have been in the trash for longer than `trashDays`."""
        if self.places.trash is None:
            return
        oldest = self._clock() - timedelta(days=self._settings.trash_days)
        old = self.files.list_trashed_before(oldest)
        _raise_unless_busy(self.delete_many(old, everywhere=False) if old else [])

    def rename(self, session_id: str, title: str) -> str | None:
        """Rename a session. Returns the damage that was repaired in the process."""
        return self._change(session_id, {"title": title})

    def archive(self, session_id: str, archived: bool) -> str | None:
        """Archive a session, so that it is no longer offered, or unarchive it. Returns the repaired damage."""
        state = self.files.describe_session(session_id).metadata.workspace_state
        return self._change(session_id, {"workspaceState": {**state, "status": "archived" if archived else "closed"}})

    def _change(self, session_id: str, metadata: dict[str, Any]) -> str | None:
        writer, loaded = self.files.open(session_id, to_continue=False)
        try:
            writer.change_fields(loaded.session.last_activity, {}, metadata)
            writer.close()
        finally:
            writer.abandon()
        if self.index:
            self.index.update_session(session_id)
        return loaded.damage

    def _require_trash(self) -> Any:
        if self.places.trash is None:
            raise UsageError("No trash directory.")
        return self.places.trash


def _raise_unless_busy(errors: list[OllmError]) -> None:
    for error in errors:
        if not isinstance(error, BusyError):
            raise error


def _make_incomplete_error(ids: list[str], error: StorageError | OSError) -> StorageError:
    what = f"Session {ids[0]} is" if len(ids) == 1 else f"{len(ids)} sessions are"
    why, action = (error.message, error.action) if isinstance(error, StorageError) else (str(error), "")
    return StorageError(f"{what} deleted, but some data remains: {why}", action=action)


def format_removed_notice(ids: list[str], days: int) -> str:
    """Format the notice about sessions that the limit removed."""
    count = "1 old session was" if len(ids) == 1 else f"{len(ids)} old sessions were"
    if not days:
        return f"{count} deleted to stay within maxSessions."
    return f"{count} moved to the trash to stay within maxSessions; see `ollm sessions list --trash`."
