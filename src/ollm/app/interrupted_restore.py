"""Completion of an interrupted rewind when its workspace is next used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ollm.app.workspace import WorkspaceScope
from ollm.domain.clock import Clock, format_stamp
from ollm.domain.errors import BusyError, NotFoundError, OllmError
from ollm.domain.session import Session
from ollm.runtime.changes import find_open_rewinds, make_redo_step
from ollm.runtime.rewind import Step, describe_result
from ollm.services.file_checkpoints.restore import InterruptedRestore


async def recover_restore(scope: WorkspaceScope, report: Callable[[str], None]) -> InterruptedRestore | None:
    """Complete the interrupted restore of this workspace. `report` gets a sentence about it."""
    checkpoints = scope.create_checkpoints()
    try:
        found = await asyncio.to_thread(checkpoints.recover)
        if found is None:
            return None
        with suppress(NotFoundError):  # A deleted session has no conversation to rewind.
            await record_rewind(scope, found)
        checkpoints.finish_restore()
    except BusyError:  # Another process has the session open and completes it.
        return None
    except OllmError as error:
        report(f"A rewind or /redo was interrupted and could not be completed: {error}")
        return None
    name = "A /redo" if found.journal.kind == "redo" else f"A rewind to before message {found.journal.message_id}"
    report(f"{name} was interrupted; it is complete now. {describe_result(found.result)}")
    return found


async def record_rewind(scope: WorkspaceScope, found: InterruptedRestore) -> None:
    """Add the rewind or redo to the history of the conversation, unless it is there already."""
    recording = scope.process.create_recording_service(lambda _event: None)
    session = (await recording.open_session(found.journal.session_id)).session
    try:
        history = list(session.metadata.context_history)
        if all(step.get("restoreId") != found.journal.id for step in history):
            step = {**make_step(history, found), "restoreId": found.journal.id}
            await recording.update_metadata(found.journal.session_id, add_step(session, step, scope.process.clock))
    finally:
        await recording.close_session(found.journal.session_id)


def add_step(session: Session, step: Step, clock: Clock) -> dict[str, Any]:
    """Return the metadata of a session with one more step of its context."""
    stamped = {**step, "timestamp": format_stamp(clock())}
    return {"contextHistory": [*session.metadata.context_history, stamped]}


def make_step(history: list[Step], found: InterruptedRestore) -> Step:
    """Build the step that the restore would have recorded."""
    journal = found.journal
    if journal.kind == "rewind":
        name = "rewind" if journal.scope == "both" else "rewind-files"
        return {"step": name, "before": journal.message_id, "record": journal.number}
    taken_back = find_open_rewinds(history)
    left = {"left": journal.left + len(found.result.skipped)}
    return make_redo_step(taken_back[-1], left) if taken_back else {"step": "redo-files", **left}
