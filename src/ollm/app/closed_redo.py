"""Taking back the last rewind of a session that is not open: its files at once, its talk when it is next resumed."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ollm.app.interrupted_restore import find_restore, recover_restore
from ollm.app.rewind_outcome import RewindOutcome
from ollm.app.workspace import WorkspaceScope
from ollm.domain.clock import format_stamp
from ollm.runtime.changes import describe_redo, find_redoable_step, make_redo_step
from ollm.runtime.rewind import describe_plan, describe_result, to_plain_data

if TYPE_CHECKING:
    from ollm.app.closed_session import ClosedSession
    from ollm.domain.session import Session
    from ollm.services.file_checkpoints import FileCheckpoints, RestorePlan, RestoreScope


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
