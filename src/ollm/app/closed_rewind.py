"""Rewind and redo of a closed session: its files and its conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from ollm.app.interrupted_restore import FoundRestore, Step, find_restore, make_step, recover_restore
from ollm.app.workspace import WorkspaceScope
from ollm.domain.clock import format_stamp
from ollm.domain.struct import Data
from ollm.runtime.changes import describe_redo, find_redoable_step, find_user_message, is_rewound, make_redo_step
from ollm.runtime.commands.base import fence_text
from ollm.runtime.rewind import (
    changes_nothing,
    describe_nothing,
    describe_outcome,
    describe_plan,
    describe_result,
    render_diffs,
    to_plain_data,
)
from ollm.services.file_checkpoints.restore import InterruptedRestore, RestoreScope

if TYPE_CHECKING:
    from ollm.app.closed_session import ClosedSession
    from ollm.domain.session import Session
    from ollm.services.chat_recording.service import ChatRecordingService
    from ollm.services.file_checkpoints.records import CheckpointRecord
    from ollm.services.file_checkpoints.restore import RestoreKind, RestoreResult
    from ollm.services.file_checkpoints.service import FileCheckpoints
    from ollm.services.file_checkpoints.tree import RestorePlan

SEEN_WITH = "with `ollm sessions view`"


class RewindOutcome(Data, frozen=True):
    """Outcome of a rewind, done or previewed; `text` describes it for people."""

    session_id: str
    message_id: int
    what: RestoreScope
    dry_run: bool
    files: list[dict[str, str]]
    skipped: list[dict[str, str]]
    text: str


class ClosedRewind:
    """Rewind of a closed session. Raises BusyError if it is open somewhere."""

    def __init__(self, closed: ClosedSession, session_id: str) -> None:
        self._closed = closed
        self._session_id = session_id
        self._scope = WorkspaceScope(closed.process, closed.workspace)

    @cached_property
    def _checkpoints(self) -> FileCheckpoints:
        return self._scope.create_checkpoints()

    async def run(
        self, number: int, *, files: bool, force: bool, dry_run: bool, talk: bool = True, diff: bool = False
    ) -> RewindOutcome:
        """Rewind to before a message."""
        what: RestoreScope = "both" if files and talk else "files" if files else "talk"
        if dry_run:
            return await self._preview(number, what, force=force, diff=diff)
        found = await recover_restore(self._scope)
        killed = found.restore if not force else None
        if killed and self._is_own(killed, "rewind") and (killed.message_id, killed.scope) == (number, what):
            return self._repeat(found, killed)
        async with self._open_session(found) as (recording, session):
            with found.add_to_errors():
                find_user_message(session, number, SEEN_WITH)
                plan = await self._plan(number, what, force=force)
            if changes_nothing(plan, talk=talk and not is_rewound(session, number)):
                text = found.join_text(describe_nothing(number, plan, files_only=what == "files"))
                return self._make_outcome(number, what, text, plan)
            step: Step = {"step": "rewind" if talk else "rewind-files", "before": number}
            result = None
            if plan is not None:
                record, result, restore_id = await self._restore_files(session, plan, what, "rewind")
                step |= {"record": record.number, "restoreId": restore_id}
            if talk:
                prompt = await self._closed.build_prompt(session)
                made = await self._closed.snapshots.create_snapshot(prompt.capture_state(), "rewind")
                step["snapshotId"] = made.id if made else None
            await self._record_step(recording, session, step)
            if plan is not None and talk:
                self._checkpoints.finish_restore()
        head = f"Rewound to before message {number}." if talk else describe_outcome(number, result)
        said = describe_result(result) if result else "No files were changed since then." if files else ""
        return self._make_outcome(number, what, found.join_text(head, said), result)

    async def _preview(self, number: int, what: RestoreScope, *, force: bool, diff: bool) -> RewindOutcome:
        """Preview a rewind. Writes nothing, and does not complete an interrupted one."""
        session = self._read_session()
        found = await find_restore(self._scope)
        find_user_message(session, number, SEEN_WITH)
        plan = await self._plan(number, what, force=force)
        lines = [found.text] if found.text else []
        if what != "files":
            lines.append(f"Would remove message {number} and everything after it from the context.")
        if what != "talk":
            lines.append(describe_plan(plan) if plan else "No files were changed since then.")
        if plan and diff and (diffs := await asyncio.to_thread(render_diffs, self._checkpoints, plan.files)):
            lines += ["", fence_text("\n".join(diffs), "diff")]
        return self._make_outcome(number, what, "\n".join(lines), plan, dry_run=True)

    async def redo(self, *, force: bool, dry_run: bool) -> RewindOutcome:
        """Undo the last rewind."""
        if dry_run:
            return await self._preview_redo(force=force)
        found = await recover_restore(self._scope)
        if found.restore and self._is_own(found.restore, "redo"):
            return self._repeat(found, found.restore)
        async with self._open_session(found) as (recording, session):
            with found.add_to_errors():
                step = find_redoable_step(session, force=force)
                plan = await self._plan_redo(step, force=force)
            done: Step = {}
            result = None
            if plan is not None:
                what: RestoreScope = "both" if step["step"] == "rewind" else "files"
                _, result, restore_id = await self._restore_files(session, plan, what, "redo")
                done = {"restoreId": restore_id, "left": len(result.skipped)}
            await self._record_step(recording, session, make_redo_step(step, done))
            if plan is not None:
                self._checkpoints.finish_restore()
        text = found.join_text(describe_redo(step), describe_result(result) if result else "")
        return self._make_outcome(int(step["before"]), find_scope(step), text, result)

    async def _preview_redo(self, *, force: bool) -> RewindOutcome:
        session = self._read_session()
        found = await find_restore(self._scope)
        killed = found.restore
        if killed and killed.kind == "redo":
            return self._repeat(found, killed, dry_run=True)
        own = killed and self._is_own(killed, "rewind")
        step = make_step([], killed) if killed and own else find_redoable_step(session, force=force)
        plan = await self._plan_redo(step, force=force)
        what = f"Would take back the rewind to before message {step['before']}."
        text = found.join_text(what, describe_plan(plan) if plan else "")
        return self._make_outcome(int(step["before"]), find_scope(step), text, plan, dry_run=True)

    def _read_session(self) -> Session:
        return self._closed.process.session_files.read(self._session_id).session

    @asynccontextmanager
    async def _open_session(self, found: FoundRestore) -> AsyncIterator[tuple[ChatRecordingService, Session]]:
        recording = self._closed.create_recording_service()
        with found.add_to_errors():
            session = (await recording.open_session(self._session_id)).session
        try:
            yield recording, session
        finally:
            await recording.close_session(self._session_id)
            self._scope.close()

    async def _plan(self, number: int, what: RestoreScope, *, force: bool) -> RestorePlan | None:
        if what == "talk":
            return None
        return await asyncio.to_thread(self._checkpoints.plan_rewind, self._session_id, number, force=force)

    async def _plan_redo(self, step: Step, *, force: bool) -> RestorePlan | None:
        if step.get("record") is None:
            return None
        return await asyncio.to_thread(self._checkpoints.plan_redo, self._session_id, step["record"], force=force)

    async def _restore_files(
        self, session: Session, plan: RestorePlan, what: RestoreScope, kind: RestoreKind
    ) -> tuple[CheckpointRecord, RestoreResult, str]:
        newest = max((message.id for message in session.messages), default=0)
        return await asyncio.to_thread(self._checkpoints.restore, self._session_id, newest, plan, what, kind)

    async def _record_step(self, recording: ChatRecordingService, session: Session, step: Step) -> None:
        stamped = {**step, "timestamp": format_stamp(self._closed.process.clock())}
        history = [*session.metadata.context_history, stamped]
        await recording.update_metadata(self._session_id, {"contextHistory": history})

    def _is_own(self, killed: InterruptedRestore, kind: RestoreKind) -> bool:
        return (killed.session_id, killed.kind) == (self._session_id, kind)

    def _repeat(self, found: FoundRestore, killed: InterruptedRestore, *, dry_run: bool = False) -> RewindOutcome:
        """Return the interrupted rewind as the outcome if it is the requested one."""
        return self._make_outcome(killed.message_id, killed.scope, found.text, killed.result, dry_run=dry_run)

    def _make_outcome(
        self,
        number: int,
        what: RestoreScope,
        text: str,
        done: RestorePlan | RestoreResult | None,
        *,
        dry_run: bool = False,
    ) -> RewindOutcome:
        data = to_plain_data(done) if done else {"files": [], "skipped": []}
        return RewindOutcome(
            session_id=self._session_id, message_id=number, what=what, dry_run=dry_run, text=text, **data
        )


def find_scope(step: Step) -> RestoreScope:
    if step["step"] != "rewind":
        return "files"
    return "both" if step.get("record") is not None else "talk"
