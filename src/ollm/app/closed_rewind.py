"""Going back in a session that is not open: its talk when it is next resumed, its files at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from ollm.app.interrupted_restore import finish_restore
from ollm.app.workspace import WorkspaceScope
from ollm.domain.clock import format_stamp
from ollm.domain.errors import UsageError
from ollm.domain.struct import Data
from ollm.runtime.rewind import describe_outcome, describe_plan, describe_result, to_plain_data

if TYPE_CHECKING:
    from ollm.app.closed_session import ClosedSession
    from ollm.domain.session import Session
    from ollm.services.file_checkpoints import FileCheckpoints, RestorePlan


class RewindOutcome(Data, frozen=True):
    """What was done, or would be; `text` says it to a person."""

    session_id: str
    message_id: int
    what: Literal["talk", "files", "both"]
    dry_run: bool
    files: list[dict[str, str]]
    skipped: list[dict[str, str]]
    text: str


class ClosedRewind:
    """Raises BusyError when the session is open somewhere."""

    def __init__(self, closed: ClosedSession, session_id: str) -> None:
        self._closed = closed
        self._process = closed.process
        self._session_id = session_id
        self._scope = WorkspaceScope(closed.process, closed.workspace)

    async def run(self, number: int, *, files: bool, force: bool, dry_run: bool, talk: bool = True) -> RewindOutcome:
        recording = self._closed.create_recording_service()
        finished = await finish_restore(self._scope)
        session = (await recording.open_session(self._session_id)).session
        try:
            require_user_message(session, number)
            checkpoints = self._scope.create_checkpoints()
            plan = await self._plan(checkpoints, number, force=force) if files else None
            what: Literal["talk", "files", "both"] = "both" if files and talk else "files" if files else "talk"
            if dry_run:
                return self._describe(number, what, plan, finished)
            step: dict[str, Any] = {}
            data: dict[str, Any] = {"files": [], "skipped": []}
            said = [finished] if finished else []
            result = None
            if plan is not None:
                newest = max((message.id for message in session.messages), default=0)
                record, result, restore_id = await asyncio.to_thread(
                    checkpoints.restore, self._session_id, newest, plan, what
                )
                said.append(describe_result(result))
                data, step = to_plain_data(result), {"record": record.number, "restoreId": restore_id}
            await self._record_step(recording, session, number, step, talk=talk)
            if step and talk:
                checkpoints.finish_restore()
        finally:
            await recording.close_session(self._session_id)
            self._scope.close()
        head = f"Rewound to before message {number}." if talk else describe_outcome(number, result)
        text = "\n".join([head, *said, *(["No files were changed since then."] if files and plan is None else [])])
        return RewindOutcome(
            session_id=self._session_id, message_id=number, what=what, dry_run=False, text=text, **data
        )

    async def _plan(self, checkpoints: FileCheckpoints, number: int, *, force: bool) -> RestorePlan | None:
        return await asyncio.to_thread(checkpoints.plan_rewind, self._session_id, number, force=force)

    def _describe(
        self, number: int, what: Literal["talk", "files", "both"], plan: RestorePlan | None, finished: str
    ) -> RewindOutcome:
        lines = [finished] if finished else []
        if what != "files":
            lines.append(f"Would remove message {number} and everything after it from the context.")
        if what != "talk":
            lines.append(describe_plan(plan) if plan else "No files were changed since then.")
        data = to_plain_data(plan) if plan else {"files": [], "skipped": []}
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


def require_user_message(session: Session, number: int) -> None:
    if all(message.id != number or message.role != "user" for message in session.messages):
        raise UsageError(
            f"Message {number} is not one of your messages.", action="See the numbers with `ollm sessions view`."
        )
