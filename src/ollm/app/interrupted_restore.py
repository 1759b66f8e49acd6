"""A rewind that was killed, found and completed when its workspace is next used."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from ollm.config.paths import Home

if TYPE_CHECKING:
    from ollm.app.workspace import WorkspaceScope
    from ollm.services.file_checkpoints import InterruptedRestore


def has_interrupted_restore(home: Home) -> bool:
    """Whether any workspace has one. Looks at one name a workspace: it is asked at every start."""
    try:
        with os.scandir(home.checkpoints) as places:
            return any(os.path.exists(f"{place.path}/restore.journal") for place in places)  # noqa: PTH110
    except OSError:
        return False


async def finish_restore(scope: WorkspaceScope) -> str:
    """Complete the one of this workspace; what is to be said about it, nothing where there is none."""
    from contextlib import suppress

    from ollm.domain.errors import NotFoundError, OllmError
    from ollm.runtime.rewind import describe_result

    checkpoints = scope.create_checkpoints()
    try:
        found = await asyncio.to_thread(checkpoints.recover)
        if found is None:
            return ""
        if found.scope == "both":
            with suppress(NotFoundError):  # the session is gone, and its talk with it
                await record_rewind(scope, found)
            checkpoints.finish_restore()
    except OllmError as error:
        return f"A rewind or /redo was interrupted and could not be completed: {error}"
    words = describe_result(found.result)
    what = "A /redo" if found.kind == "redo" else f"A rewind to before message {found.message_id}"
    return f"{what} was interrupted; it is complete now. {words}"


async def record_rewind(scope: WorkspaceScope, found: InterruptedRestore) -> None:
    """The talk goes back too, unless it already has."""
    from ollm.domain.clock import format_stamp

    recording = scope.process.create_recording_service(lambda _event: None)
    session = (await recording.open_session(found.session_id)).session
    try:
        history = list(session.metadata.context_history)
        if all(step.get("restoreId") != found.id for step in history):
            step: dict[str, Any] = {"step": found.kind, "restoreId": found.id}
            if found.kind == "rewind":
                step |= {"before": found.message_id, "record": found.number}
            step["timestamp"] = format_stamp(scope.process.clock())
            await recording.update_metadata(found.session_id, {"contextHistory": [*history, step]})
    finally:
        await recording.close_session(found.session_id)
