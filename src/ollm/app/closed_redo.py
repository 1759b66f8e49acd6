"""Taking back the last rewind of a session that is not open: its files at once, its talk when it is next resumed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ollm.app.closed_rewind import RewindOutcome
from ollm.app.interrupted_restore import finish_restore
from ollm.app.workspace import WorkspaceScope
from ollm.domain.clock import format_stamp
from ollm.runtime.changes import find_redoable_step
from ollm.runtime.rewind import describe_plan, describe_result, to_plain_data

if TYPE_CHECKING:
    from ollm.app.closed_session import ClosedSession
    from ollm.domain.session import Session
    from ollm.services.file_checkpoints import RestorePlan, RestoreScope


class ClosedRedo:
    """Raises BusyError when the session is open somewhere."""

    def __init__(self, closed: ClosedSession, session_id: str) -> None:
        self._closed = closed
        self._session_id = session_id
        self._scope = WorkspaceScope(closed.process, closed.workspace)

    async def run(self, *, force: bool, dry_run: bool) -> RewindOutcome:
        recording = self._closed.create_recording_service()
        finished = await finish_restore(self._scope)
        session = (await recording.open_session(self._session_id)).session
        try:
            step = find_open_step(session)
            plan = await self._plan(step, force=force)
            if dry_run:
                return self._describe(step, plan, finished)
            done, said, data = await self._restore_files(session, step, plan)
            done = {"step": "redo", **done, "timestamp": format_stamp(self._closed.process.clock())}
            history = [*session.metadata.context_history, done]
            await recording.update_metadata(self._session_id, {"contextHistory": history})
            if plan is not None:
                self._scope.create_checkpoints().finish_restore()
        finally:
            await recording.close_session(self._session_id)
            self._scope.close()
        lines = [*([finished] if finished else []), f"The rewind to before message {step['before']} is taken back."]
        return self._make_outcome(step, "\n".join([*lines, *said]), data, dry_run=False)

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
        checkpoints = self._scope.create_checkpoints()
        _, result, restore_id = await asyncio.to_thread(
            checkpoints.restore, self._session_id, newest, plan, what, "redo"
        )
        return {"restoreId": restore_id}, [describe_result(result)], to_plain_data(result)

    def _describe(self, step: dict[str, Any], plan: RestorePlan | None, finished: str) -> RewindOutcome:
        lines = [*([finished] if finished else []), f"Would take back the rewind to before message {step['before']}."]
        if plan is not None:
            lines.append(describe_plan(plan))
        data = to_plain_data(plan) if plan else {"files": [], "skipped": []}
        return self._make_outcome(step, "\n".join(lines), data, dry_run=True)

    def _make_outcome(self, step: dict[str, Any], text: str, data: dict[str, Any], *, dry_run: bool) -> RewindOutcome:
        files = step.get("record") is not None
        return RewindOutcome(
            session_id=self._session_id,
            message_id=int(step["before"]),
            what="files" if step["step"] == "rewind-files" else "both" if files else "talk",
            dry_run=dry_run,
            text=text,
            **data,
        )


def find_open_step(session: Session) -> dict[str, Any]:
    """The rewind to take back. Raises UsageError when there is none, or something was said since."""
    said = max((message.timestamp for message in session.messages if message.role == "user"), default="")
    return find_redoable_step(session.metadata.context_history, said)
