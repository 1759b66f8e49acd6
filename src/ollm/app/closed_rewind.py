"""Rewind and redo of a session that is not open: its files and its conversation."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ollm.app.interrupted_restore import NOTHING, FoundRestore, RewindOutcome, find_restore, recover_restore
from ollm.app.workspace import WorkspaceScope
from ollm.domain.clock import format_stamp
from ollm.domain.errors import UsageError
from ollm.runtime.changes import describe_redo, find_redoable_step, is_rewound, make_redo_step
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

if TYPE_CHECKING:
    from ollm.app.closed_session import ClosedSession
    from ollm.domain.session import Session
    from ollm.services.file_checkpoints import FileCheckpoints, RestorePlan, RestoreResult, RestoreScope


class ClosedRedo:
    """Raises BusyError when the session is open somewhere."""

    def __init__(self, closed: ClosedSession, session_id: str) -> None:
        self._closed = closed
        self._session_id = session_id
        self._scope = WorkspaceScope(closed.process, closed.workspace)

    @cached_property
    def _checkpoints(self) -> FileCheckpoints:
        return self._scope.create_checkpoints()

    async def run(self, *, force: bool, dry_run: bool) -> RewindOutcome:
        if dry_run:
            return await self._preview(force=force)
        recording = self._closed.create_recording_service()
        found = await recover_restore(self._scope)
        if found.kind == "redo" and found.session_id == self._session_id:
            return found.make_outcome(self._session_id, "files" if found.scope == "files" else "both")
        with found.add_to_errors():
            session = (await recording.open_session(self._session_id)).session
        try:
            with found.add_to_errors():
                step = find_open_step(session, force=force)
                plan = await self._plan(step, force=force)
            done, said, data = await self._restore_files(session, step, plan)
            stamp = {"timestamp": format_stamp(self._closed.process.clock())}
            history = [*session.metadata.context_history, {**make_redo_step(step, done), **stamp}]
            await recording.update_metadata(self._session_id, {"contextHistory": history})
            if plan is not None:
                self._checkpoints.finish_restore()
        finally:
            await recording.close_session(self._session_id)
            self._scope.close()
        return self._make_outcome(step, found.join_text(describe_redo(step), *said), data, dry_run=False)

    async def _preview(self, *, force: bool) -> RewindOutcome:
        """What would be done; nothing is written, and what was interrupted stays so."""
        session = self._closed.process.session_files.read(self._session_id).session
        found = await find_restore(self._scope, self._session_id)
        if found.kind == "redo":
            return found.make_outcome(self._session_id, "files" if found.scope == "files" else "both", dry_run=True)
        step = found.step or find_open_step(session, force=force)
        plan = await self._plan(step, force=force)
        return self._describe(step, plan, found.text)

    async def _plan(self, step: dict[str, Any], *, force: bool) -> RestorePlan | None:
        if step.get("record") is None:
            return None
        checkpoints = self._scope.create_checkpoints()
        return await asyncio.to_thread(checkpoints.plan_redo, self._session_id, step["record"], force=force)

    async def _restore_files(
        self, session: Session, step: dict[str, Any], plan: RestorePlan | None
    ) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
        """What is to be recorded, what is to be said, and the same for programs."""
        if plan is None:
            return {}, [], {"files": [], "skipped": []}
        newest = max((message.id for message in session.messages), default=0)
        what: RestoreScope = "both" if step["step"] == "rewind" else "files"
        checkpoints = self._checkpoints
        _, result, restore_id = await asyncio.to_thread(
            checkpoints.restore, self._session_id, newest, plan, what, "redo"
        )
        done = {"restoreId": restore_id, "left": len(result.skipped)}
        return done, [describe_result(result)], to_plain_data(result)

    def _describe(self, step: dict[str, Any], plan: RestorePlan | None, finished: str) -> RewindOutcome:
        what = f"Would take back the rewind to before message {step['before']}."
        lines = [*([finished] if finished else []), what]
        if plan is not None:
            lines.append(describe_plan(plan))
        data = to_plain_data(plan) if plan else {"files": [], "skipped": []}
        return self._make_outcome(step, "\n".join(lines), data, dry_run=True)

    def _make_outcome(self, step: dict[str, Any], text: str, data: dict[str, Any], *, dry_run: bool) -> RewindOutcome:
        files = step.get("record") is not None
        return RewindOutcome(
            session_id=self._session_id,
            message_id=int(step["before"]),
            what=("both" if files else "talk") if step["step"] == "rewind" else "files",
            dry_run=dry_run,
            text=text,
            **data,
        )


def find_open_step(session: Session, *, force: bool) -> dict[str, Any]:
    """The rewind to take back. Raises UsageError when there is none, or something was said since."""
    said = max((message.timestamp for message in session.messages if message.role == "user"), default="")
    return find_redoable_step(session.metadata.context_history, said, force=force)


class ClosedRewind:
    """Raises BusyError when the session is open somewhere."""

    def __init__(self, closed: ClosedSession, session_id: str) -> None:
        self._closed = closed
        self._process = closed.process
        self._session_id = session_id
        self._scope = WorkspaceScope(closed.process, closed.workspace)

    @cached_property
    def _checkpoints(self) -> FileCheckpoints:
        return self._scope.create_checkpoints()

    async def run(
        self, number: int, *, files: bool, force: bool, dry_run: bool, talk: bool = True, diff: bool = False
    ) -> RewindOutcome:
        what: RestoreScope = "both" if files and talk else "files" if files else "talk"
        if dry_run:
            return await self._preview(number, what, force=force, diff=diff)
        recording = self._closed.create_recording_service()
        found = await recover_restore(self._scope)
        if found.is_rewind(self._session_id, number, what) and not force:  # it was this one that was killed
            return found.make_outcome(self._session_id, "both" if talk else "files")
        with found.add_to_errors():
            session = (await recording.open_session(self._session_id)).session
        try:
            with found.add_to_errors():
                require_user_message(session, number)
                plan = await self._plan(number, what, force=force)
            if changes_nothing(plan, talk=talk and not is_out_of_context(session, number)):
                return self._leave_all(number, what, plan, found)
            result, step = await self._restore_files(session, plan, what)
            await self._record_step(recording, session, number, step, talk=talk)
            if step and talk:
                self._checkpoints.finish_restore()
        finally:
            await recording.close_session(self._session_id)
            self._scope.close()
        head = f"Rewound to before message {number}." if talk else describe_outcome(number, result)
        said = describe_result(result) if result else "No files were changed since then." if files else ""
        return RewindOutcome(
            session_id=self._session_id,
            message_id=number,
            what=what,
            dry_run=False,
            text=found.join_text(head, said),
            **(to_plain_data(result) if result else NOTHING),
        )

    def _leave_all(
        self, number: int, what: RestoreScope, plan: RestorePlan | None, found: FoundRestore
    ) -> RewindOutcome:
        """Where nothing is to be done: no step that would have to be taken back."""
        text = found.join_text(describe_nothing(number, plan, files_only=what == "files"))
        data = to_plain_data(plan) if plan else NOTHING
        return RewindOutcome(
            session_id=self._session_id, message_id=number, what=what, dry_run=False, text=text, **data
        )

    async def _restore_files(
        self, session: Session, plan: RestorePlan | None, what: RestoreScope
    ) -> tuple[RestoreResult | None, dict[str, Any]]:
        """What became of the files, and what is to be recorded."""
        if plan is None:
            return None, {}
        newest = max((message.id for message in session.messages), default=0)
        checkpoints = self._checkpoints
        record, result, restore_id = await asyncio.to_thread(checkpoints.restore, self._session_id, newest, plan, what)
        return result, {"record": record.number, "restoreId": restore_id}

    async def _preview(self, number: int, what: RestoreScope, *, force: bool, diff: bool) -> RewindOutcome:
        """What would be done; nothing is written, and what was interrupted stays so."""
        session = self._process.session_files.read(self._session_id).session
        found = await find_restore(self._scope, self._session_id)
        require_user_message(session, number)
        plan = await self._plan(number, what, force=force)
        checkpoints = self._scope.create_checkpoints()
        changes = await asyncio.to_thread(render_changes, checkpoints, plan) if plan and diff else ""
        return self._describe(number, what, plan, found.text, changes)

    async def _plan(self, number: int, what: RestoreScope, *, force: bool) -> RestorePlan | None:
        if what == "talk":
            return None
        checkpoints = self._scope.create_checkpoints()
        return await asyncio.to_thread(checkpoints.plan_rewind, self._session_id, number, force=force)

    def _describe(
        self, number: int, what: RestoreScope, plan: RestorePlan | None, finished: str, changes: str
    ) -> RewindOutcome:
        lines = [finished] if finished else []
        if what != "files":
            lines.append(f"Would remove message {number} and everything after it from the context.")
        if what != "talk":
            lines.append(describe_plan(plan) if plan else "No files were changed since then.")
        lines += ["", changes] if changes else []
        data = to_plain_data(plan) if plan else NOTHING
        return RewindOutcome(
            session_id=self._session_id, message_id=number, what=what, dry_run=True, text="\n".join(lines), **data
        )

    async def _record_step(
        self, recording: Any, session: Session, number: int, step: dict[str, Any], *, talk: bool
    ) -> None:
        if talk:
            prompt = await self._closed.build_prompt(session)
            made = await self._closed.snapshots.create_snapshot(prompt.capture_state(), "rewind")
            step = {"step": "rewind", "before": number, "snapshotId": made.id if made else None, **step}
        else:
            step = {"step": "rewind-files", "before": number, **step}
        step["timestamp"] = format_stamp(self._process.clock())
        history = [*session.metadata.context_history, step]
        await recording.update_metadata(self._session_id, {"contextHistory": history})


def render_changes(checkpoints: FileCheckpoints, plan: RestorePlan) -> str:
    """What would change in the files, line by line, as a block of Markdown."""
    diffs = render_diffs(checkpoints, plan.files)
    return fence_text("\n".join(diffs), "diff") if diffs else ""


def is_out_of_context(session: Session, number: int) -> bool:
    """Whether a message was taken out of the context by a rewind that still holds."""
    said = max((message.timestamp for message in session.messages if message.role == "user"), default="")
    return is_rewound(session.metadata.context_history, said, number)


def require_user_message(session: Session, number: int) -> None:
    if all(message.id != number or message.role != "user" for message in session.messages):
        raise UsageError(
            f"Message {number} is not one of your messages.", action="See the numbers with `ollm sessions view`."
        )
