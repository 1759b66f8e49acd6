"""A workspace and its sessions (W: WorkspaceContext), rebuilt from the archive, and its lease."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ollm.config.settings import ResumeSettings
from ollm.domain.clock import make_id, parse_epoch_ms
from ollm.domain.errors import BusyError, OllmError, UsageError
from ollm.domain.messages import replace_surrogates
from ollm.domain.session import ChatSession, Episode, PlanState, Session, SessionSummary
from ollm.runtime.prompt.messages import render_messages
from ollm.runtime.resume.workspace_record import list_writing_tools, read_last_number
from ollm.services.workspace_memory import RecentWindow, from_records, make_episode, render_rolling_summary, to_record
from ollm.store.workspace_db import WorkspaceDatabase

if TYPE_CHECKING:
    from ollm.store.lease import Lease


class WorkspaceContext:
    """Records of the sessions of one folder, even if it was moved."""

    def __init__(
        self,
        path: Path,
        database: WorkspaceDatabase,
        archived: Callable[[], Iterable[SessionSummary]],
        settings: ResumeSettings,
        is_worktree: Callable[[str | None], bool] = lambda _: False,
    ) -> None:
        self.path = path
        self.database = database
        self._archived = archived
        self._settings = settings
        self._is_worktree = is_worktree

    def list_sessions(self) -> list[ChatSession]:
        """List the workspace's sessions, newest first, with title and status from the archive. Those missing from the
        database are taken from there."""
        return [record for record, _ in self.list_counted_sessions()]

    def list_counted_sessions(self) -> list[tuple[ChatSession, int]]:
        """List the workspace's sessions, each with its number of messages."""
        known = {record.session_id: record for record in self.database.list_sessions()}
        places, origins = self.load_aliases(), self.load_origins()
        found = [
            (
                merge_archive_status(known.get(summary.session_id) or build_brief_record(summary), summary),
                summary.message_count,
            )
            for summary in self._archived()
            if summary.session_id in known
            or summary.workspace in places
            or summary.session_id in origins
            or self._is_worktree(summary.workspace)
        ]
        return sorted(found, key=lambda counted: counted[0].updated_at, reverse=True)

    def list_one_shot_ids(self) -> set[str]:
        """Return the ids of sessions created by `ollm -p`."""
        return {summary.session_id for summary in self._archived() if summary.origin == "one-shot"}

    def check_ownership(self, session: Session) -> None:
        """Check that a session belongs here. Raises UsageError if it belongs to another workspace."""
        if not self.owns(session):
            home = session.metadata.workspace
            raise UsageError(
                f"That session belongs to {home}.",
                action=f"ollm chat --workspace {home} --session {session.session_id}",
            )

    def owns(self, session: Session) -> bool:
        """Return True if a session belongs here. One without a workspace belongs wherever it is resumed."""
        home = session.metadata.workspace
        known = home is None or home in self.load_aliases() or session.session_id in self.load_origins()
        return known or self._is_worktree(home)

    def find_known_until(self, session_id: str) -> int:
        """Return the number up to which the database covers a session. A resume need not read earlier messages."""
        record = self.database.get_session(session_id)
        kept = read_last_number(self.database.load_context(session_id))
        return min(kept, find_newest_number(record), self._find_newest_episode(session_id)) if record else 0

    def get_record(self, session: Session, load: Callable[[], Session]) -> ChatSession:
        """Return the record to resume from. If the newest messages, which are in `session`, are not in the database, it
        is made again from as many as `load` returns."""
        known = self.database.get_session(session.session_id)
        until = find_newest_number(known) if known else 0
        asked = max((message.id for message in session.messages if message.role == "user"), default=0)
        has_episodes = self._find_newest_episode(session.session_id) >= asked
        if known and has_episodes and all(message.id <= until for message in session.messages):
            return known
        return self.rebuild_record(load(), known)

    def rebuild_record(self, session: Session, known: ChatSession | None) -> ChatSession:
        with self.database.begin_transaction():
            seen = {found.number for found in self.database.list_episodes(session.session_id)}
            made = build_episodes(session, list_writing_tools())
            self.database.add_episodes([found for found in made if found.number not in seen])
            plan = known.plan if known else PlanState()
            record = build_full_record(session, self.database.list_episodes(session.session_id), plan, self._settings)
            self.database.put_session(record)
        return record

    def _find_newest_episode(self, session_id: str) -> int:
        return next((episode.number for episode in self.database.list_episodes(session_id, newest=1)), 0)

    def load_origins(self) -> dict[str, str]:
        """Return where copied sessions come from: the path of the original folder, by session id."""
        copied = self._read_fact("copied")
        return {session_id: path for path, ids in copied.items() for session_id in ids}

    def adopt(self, session_id: str, origin: str) -> None:
        """Let a session from another folder, on another machine, belong here too."""
        with self.database.begin_transaction():
            copied = self._read_fact("copied")
            copied[origin] = sorted({*copied.get(origin, []), session_id})
            self._write_fact("copied", copied)

    def load_aliases(self) -> set[str]:
        """Return this folder's path and its paths before it was moved."""
        return {
            str(self.path),
            replace_surrogates(str(self.path)),
            str(self.path).encode("utf-8", "replace").decode(),  # Older versions wrote it so.
            *self._read_fact("aliases"),
        }

    def is_former(self, folder: str | None) -> bool:
        """Return True for a path that this folder had before it was moved."""
        return folder in self._read_fact("aliases")

    def detect_move(self) -> None:
        """Detect that the folder was moved (it keeps its identity) or copied (it gets a new one)."""
        here, before = str(self.path), self.database.get_fact("path")
        if before == here:
            return
        with self.database.begin_transaction():
            identity = self.database.get_or_create_id()
            if before is not None and self._is_original(Path(before), identity):
                self._begin_as_copy(before)
            elif before is not None:
                self._write_fact("aliases", sorted({*self.load_aliases(), before} - {here}))
            self.database.set_fact("path", here)

    def _is_original(self, other: Path, identity: str) -> bool:
        """Return True if the folder at the previous path still exists with the same identity."""
        place = other / ".ollm"
        if not (place / "memory.db").is_file() or place.samefile(self.database.directory):
            return False
        theirs = WorkspaceDatabase(place)
        try:
            return theirs.get_fact("id") == identity
        except OllmError:
            return False
        finally:
            theirs.close()

    def _begin_as_copy(self, before: str) -> None:
        copied = self._read_fact("copied")
        copied[before] = [record.session_id for record in self.database.list_sessions()]
        self._write_fact("copied", copied)
        self.database.set_fact("id", make_id())
        self._write_fact("aliases", [])

    def _read_fact(self, name: str) -> Any:
        import json

        return json.loads(self.database.get_fact(name) or "{}")

    def _write_fact(self, name: str, value: Any) -> None:
        import json

        self.database.set_fact(name, json.dumps(value))  # JSON escapes the bytes of a path that are not UTF-8.


def find_newest_number(record: ChatSession) -> int:
    """Return the number of the newest message in a record's window."""
    return max((number for m in from_records(record.recent_messages) for number in m.sources), default=0)


def merge_archive_status(record: ChatSession, summary: SessionSummary) -> ChatSession:
    """Update title and status from the archive, which has renames, archiving and whether a live process has it open."""
    parent = summary.parent.session_id if summary.parent else None
    title = summary.title or record.title
    return msgspec.structs.replace(
        record, title=title, status=summary.status, parent=parent, workspace=summary.workspace
    )


def build_brief_record(summary: SessionSummary) -> ChatSession:
    return ChatSession(
        session_id=summary.session_id,
        title=summary.title,
        model=summary.model,
        status=summary.status,
        created_at=parse_epoch_ms(summary.start_time),
        updated_at=parse_epoch_ms(summary.last_activity),
    )


def build_full_record(
    session: Session, episodes: list[Episode], plan: PlanState, settings: ResumeSettings
) -> ChatSession:
    newest = session.messages[-settings.messages * 2 :]
    window = RecentWindow(settings, render_messages(newest, session.tool_calls))
    return ChatSession(
        session_id=session.session_id,
        title=session.metadata.title,
        model=session.model,
        status="closed",
        created_at=parse_epoch_ms(session.start_time),
        updated_at=parse_epoch_ms(session.last_activity),
        plan=plan,
        summary=render_rolling_summary(episodes, plan, settings.summary_chars),
        recent_messages=tuple(to_record(message) for message in window.collect_messages()),
    )


def build_episodes(session: Session, writing_tools: Collection[str]) -> list[Episode]:
    """Build one episode per user message from the archive."""
    starts = [index for index, message in enumerate(session.messages) if message.role == "user"]
    calls = {call.id: call for call in session.tool_calls}
    found = []
    for start, end in pairwise([*starts, len(session.messages)]):
        request, *rest = session.messages[start:end]
        answer = next((m.text for m in reversed(rest) if m.role == "assistant" and m.text), "")
        made = [calls[name] for m in rest if m.role == "assistant" for name in m.call_ids if name in calls]
        at = parse_epoch_ms(request.timestamp)
        reason = "answered" if answer and not rest[-1].interrupted else "cancelled"
        found.append(
            make_episode(session.session_id, request.id, at, request.text, answer, reason, made, writing_tools)
        )
    return found


OWNER_TIMEOUT_SECONDS = 5.0
RETRY_INTERVAL_SECONDS = 0.05


async def take_lease(lease: Lease, *, force: bool) -> None:
    """Acquire the workspace lease. With `force`, ask the owner to close and wait five seconds."""
    loop, asked = asyncio.get_running_loop(), False
    deadline = loop.time() + OWNER_TIMEOUT_SECONDS
    while True:
        try:
            return lease.acquire()
        except BusyError as error:
            if not force:
                raise
            if not asked and not lease.ask_owner_to_close():
                action = "It cannot be asked to close: close it there, or open beside it."
                raise BusyError(error.message, action=action) from None
            if loop.time() > deadline:
                raise BusyError(
                    f"{error.message} It was asked to close but did not.", action="Stop that process, then try again."
                ) from error
        asked = True
        await asyncio.sleep(RETRY_INTERVAL_SECONDS)
