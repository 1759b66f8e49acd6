"""Rewind and redo of a closed session: its files and its conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ollm.app.interrupted_restore import FoundRestore, find_restore, make_step, recover_restore
from ollm.app.workspace import WorkspaceScope
from ollm.domain.lazy import Lazy
from ollm.domain.struct import Data
from ollm.runtime.changes import describe_redo, find_redoable_step, find_user_message, is_rewound, make_redo_step
from ollm.runtime.commands.base import fence_text
from ollm.runtime.rewind import (
    RewindFlow,
    Step,
    changes_nothing,
    describe_nothing,
    describe_outcome,
    describe_plan,
    describe_result,
    find_scope,
    make_rewind_step,
    render_diffs,
    to_plain_data,
)
from ollm.services.file_checkpoints.restore import InterruptedRestore, RestoreScope

if TYPE_CHECKING:
    from ollm.app.closed_session import ClosedSession
    from ollm.domain.session import Session
    from ollm.services.file_checkpoints.restore import RestoreKind, RestoreResult
    from ollm.services.file_checkpoints.tree import RestorePlan

SEEN_WITH = "with `ollm sessions view`"
NO_CHANGES = "No files were changed since then."


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
        self._checkpoints = Lazy(self._scope.create_checkpoints)

    async def run(
        self, number: int, *, files: bool, force: bool, dry_run: bool, talk: bool = True, diff: bool = False
    ) -> RewindOutcome:
        """Rewind to before a message. A preview (`dry_run`) writes nothing and completes no interrupted rewind."""
        what: RestoreScope = "both" if files and talk else "files" if files else "talk"
        async with self._begin(dry_run=dry_run) as (found, session, flow):
            killed = found.restore if not force and not dry_run else None
            if killed and self._is_own(killed, "rewind") and (killed.message_id, killed.scope) == (number, what):
                return self._repeat(found, killed)
            with found.add_to_errors():
                find_user_message(session, number, SEEN_WITH)
                plan = await flow.plan(number, force=force) if files else None
            if dry_run:
                text = found.join_text(*await self._describe_preview(number, what, plan, diff=diff))
                return self._make_outcome(number, what, text, plan, dry_run=True)
            if changes_nothing(plan, talk=talk and not is_rewound(session, number)):
                text = found.join_text(describe_nothing(number, plan, files_only=what == "files"))
                return self._make_outcome(number, what, text, plan)
            result = await flow.run(make_rewind_step(number, what), what, plan)
        head = f"Rewound to before message {number}." if talk else describe_outcome(number, result)
        said = describe_result(result) if result else NO_CHANGES if files else ""
        return self._make_outcome(number, what, found.join_text(head, said), result)

    async def _describe_preview(
        self, number: int, what: RestoreScope, plan: RestorePlan | None, *, diff: bool
    ) -> list[str]:
        talk = f"Would remove message {number} and everything after it from the context." if what != "files" else ""
        lines = [talk, "" if what == "talk" else describe_plan(plan) if plan else NO_CHANGES]
        if plan and diff and (diffs := await asyncio.to_thread(render_diffs, self._checkpoints.get(), plan.files)):
            lines.append("\n" + fence_text("\n".join(diffs), "diff"))
        return lines

    async def redo(self, *, force: bool, dry_run: bool) -> RewindOutcome:
        """Undo the last rewind."""
        async with self._begin(dry_run=dry_run) as (found, session, flow):
            killed = found.restore
            if killed and self._is_own(killed, "redo"):
                return self._repeat(found, killed, dry_run=dry_run)
            with found.add_to_errors():
                undone = dry_run and killed and self._is_own(killed, "rewind")
                step = make_step([], killed) if killed and undone else find_redoable_step(session, force=force)
                plan = await flow.plan_redo(step, force=force)
            done: RestorePlan | RestoreResult | None = plan
            if dry_run:
                lines = [f"Would take back the rewind to before message {step['before']}."]
                lines += [describe_plan(plan)] if plan else []
            else:
                done = result = await flow.run(make_redo_step(step, {}), find_scope(step), plan)
                lines = [describe_redo(step), *([describe_result(result)] if result else [])]
        text = found.join_text(*lines)
        return self._make_outcome(int(step["before"]), find_scope(step), text, done, dry_run=dry_run)

    @asynccontextmanager
    async def _begin(self, *, dry_run: bool) -> AsyncIterator[tuple[FoundRestore, Session, RewindFlow]]:
        """Complete an interrupted rewind and open the session; only look at both for a preview."""
        recording = self._closed.create_recording_service()
        found = await (find_restore if dry_run else recover_restore)(self._scope)
        if dry_run:
            session = self._closed.process.session_files.read(self._session_id).session
        else:
            with found.add_to_errors():
                session = (await recording.open_session(self._session_id)).session

        async def record(step: Step) -> None:
            if step["step"] == "rewind":
                prompt = await self._closed.build_prompt(session)
                made = await self._closed.snapshots.create_snapshot(prompt.capture_state(), "rewind")
                step["snapshotId"] = made.id if made else None
            await recording.update_metadata(self._session_id, self._closed.add_step(session, step))

        try:
            yield found, session, RewindFlow(session, self._checkpoints, record)
        finally:
            if not dry_run:
                await recording.close_session(self._session_id)
            self._scope.close()

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
