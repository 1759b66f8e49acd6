"""Rewind and redo of a closed session, and the completion of a rewind that was interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from ollm.app.workspace import WorkspaceScope
from ollm.domain.clock import format_stamp
from ollm.domain.errors import BusyError, NotFoundError, OllmError
from ollm.domain.lazy import Lazy
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.runtime.changes import (
    describe_redo,
    find_open_rewinds,
    find_redoable_step,
    find_user_message,
    is_rewound,
    make_redo_step,
)
from ollm.runtime.commands.base import fence_text
from ollm.runtime.rewind import (
    RewindFlow,
    Step,
    changes_nothing,
    describe_nothing,
    describe_outcome,
    describe_plan,
    describe_result,
    filter_files,
    find_scope,
    make_rewind_step,
    render_diffs,
    to_plain_data,
)
from ollm.services.file_checkpoints.restore import InterruptedRestore, RestoreScope

if TYPE_CHECKING:
    from ollm.app.closed_session import ClosedSession
    from ollm.domain.session import Session
    from ollm.services.file_checkpoints.restore import RestoreResult
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
    """Rewind of a closed session, once. Raises BusyError if it is open somewhere."""

    def __init__(self, closed: ClosedSession, session_id: str) -> None:
        self._closed = closed
        self._session_id = session_id
        self._scope = WorkspaceScope(closed.process, closed.workspace)
        self._checkpoints = Lazy(self._scope.create_checkpoints)
        self._notes: list[str] = []  # about a rewind that was interrupted

    async def run(
        self, number: int, *, files: bool, force: bool, dry_run: bool, talk: bool = True, diff: bool = False
    ) -> RewindOutcome:
        """Rewind to before a message. A preview (`dry_run`) writes nothing and completes no interrupted rewind."""
        what: RestoreScope = "both" if files and talk else "files" if files else "talk"
        async with self._begin(dry_run=dry_run) as (killed, session, flow):
            same = killed and not force and ("rewind", number, what) == (killed.kind, killed.message_id, killed.scope)
            if killed and (same or dry_run):
                return self._make_outcome(killed.message_id, killed.scope, [], killed.result, dry_run=dry_run)
            find_user_message(session, number, SEEN_WITH)
            plan = await flow.plan(number, force=force) if files else None
            if dry_run:
                lines = await self._describe_preview(number, what, plan, diff=diff)
                return self._make_outcome(number, what, lines, plan, dry_run=True)
            if changes_nothing(plan, talk=talk and not is_rewound(session, number)):
                text = describe_nothing(number, plan, files_only=what == "files")
                return self._make_outcome(number, what, [text], plan)
            result = await flow.run(make_rewind_step(number, what), what, plan)
        head = f"Rewound to before message {number}." if talk else describe_outcome(number, result)
        said = describe_result(result) if result else NO_CHANGES if files else ""
        return self._make_outcome(number, what, [head, said], result)

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
        async with self._begin(dry_run=dry_run) as (killed, session, flow):
            if killed and (killed.kind == "redo" or dry_run):
                return self._make_outcome(killed.message_id, killed.scope, [], killed.result, dry_run=dry_run)
            step = find_redoable_step(session, force=force)
            plan = await flow.plan_redo(step, force=force)
            done: RestorePlan | RestoreResult | None = plan
            if dry_run:
                lines = [f"Would take back the rewind to before message {step['before']}."]
                lines += [describe_plan(plan)] if plan else []
            else:
                done = result = await flow.run(make_redo_step(step, {}), find_scope(step), plan)
                lines = [describe_redo(step), *([describe_result(result)] if result else [])]
        return self._make_outcome(int(step["before"]), find_scope(step), lines, done, dry_run=dry_run)

    @asynccontextmanager
    async def _begin(self, *, dry_run: bool) -> AsyncIterator[tuple[InterruptedRestore | None, Session, RewindFlow]]:
        """Complete an interrupted rewind and open the session; only look at both for a preview."""
        recording = self._closed.create_recording_service()

        async def record(step: Step) -> None:
            if step["step"] == "rewind":
                prompt = await self._closed.build_prompt(session)
                made = await self._closed.snapshots.create_snapshot(prompt.capture_state(), "rewind")
                step["snapshotId"] = made.id if made else None
            await recording.update_metadata(self._session_id, self._closed.add_step(session, step))

        try:
            if dry_run:
                found = await self._find_interrupted()
                session = self._closed.process.session_files.read(self._session_id).session
            else:
                found = await recover_restore(self._scope, self._notes.append)
                session = (await recording.open_session(self._session_id)).session
            own = found if found and found.session_id == self._session_id else None
            yield own, session, RewindFlow(session, self._checkpoints, record)
        except OllmError as error:
            error.message = "\n".join([*self._notes, error.message])
            raise
        finally:
            if not dry_run:
                await recording.close_session(self._session_id)
            self._scope.close()

    async def _find_interrupted(self) -> InterruptedRestore | None:
        found = await asyncio.to_thread(self._checkpoints.get().find_interrupted)
        if found:
            left = format_count(len(filter_files(found.result)), "file")
            self._notes.append(f"{name_restore(found)} was interrupted and is completed first: {left} to go.")
        return found

    def _make_outcome(
        self,
        number: int,
        what: RestoreScope,
        lines: list[str],
        done: RestorePlan | RestoreResult | None,
        *,
        dry_run: bool = False,
    ) -> RewindOutcome:
        data = to_plain_data(done) if done else {"files": [], "skipped": []}
        text = "\n".join(filter(None, [*self._notes, *lines]))
        return RewindOutcome(
            session_id=self._session_id, message_id=number, what=what, dry_run=dry_run, text=text, **data
        )


async def recover_restore(scope: WorkspaceScope, report: Callable[[str], None]) -> InterruptedRestore | None:
    """Complete the interrupted restore of this workspace. `report` gets a sentence about it."""
    checkpoints = scope.create_checkpoints()
    try:
        found = await asyncio.to_thread(checkpoints.recover)
        if found is None:
            return None
        with suppress(NotFoundError):  # the session is gone, and its talk with it
            await record_rewind(scope, found)
        checkpoints.finish_restore()
    except BusyError:  # whoever has the session open is at it
        return None
    except OllmError as error:
        report(f"A rewind or /redo was interrupted and could not be completed: {error}")
        return None
    report(f"{name_restore(found)} was interrupted; it is complete now. {describe_result(found.result)}")
    return found


def name_restore(found: InterruptedRestore) -> str:
    return "A /redo" if found.kind == "redo" else f"A rewind to before message {found.message_id}"


async def record_rewind(scope: WorkspaceScope, found: InterruptedRestore) -> None:
    """Rewind the conversation too, unless that was already recorded."""
    recording = scope.process.create_recording_service(lambda _event: None)
    session = (await recording.open_session(found.session_id)).session
    try:
        history = list(session.metadata.context_history)
        if all(step.get("restoreId") != found.id for step in history):
            step = {**make_step(history, found), "restoreId": found.id}
            step["timestamp"] = format_stamp(scope.process.clock())
            await recording.update_metadata(found.session_id, {"contextHistory": [*history, step]})
    finally:
        await recording.close_session(found.session_id)


def make_step(history: list[Step], found: InterruptedRestore) -> Step:
    """Build the step that the restore would have recorded."""
    if found.kind == "rewind":
        name = "rewind" if found.scope == "both" else "rewind-files"
        return {"step": name, "before": found.message_id, "record": found.number}
    taken_back = find_open_rewinds(history)
    left = {"left": found.left}
    return make_redo_step(taken_back[-1], left) if taken_back else {"step": "redo-files", **left}
