"""Detection and completion of an interrupted rewind when its workspace is next used."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ollm.domain.clock import format_stamp
from ollm.domain.errors import BusyError, NotFoundError, OllmError
from ollm.domain.struct import Data
from ollm.domain.text import format_count
from ollm.runtime.changes import find_open_rewinds, make_redo_step
from ollm.runtime.rewind import Step, describe_result, filter_files
from ollm.services.file_checkpoints.restore import InterruptedRestore

if TYPE_CHECKING:
    from ollm.app.workspace import WorkspaceScope


class FoundRestore(Data, frozen=True):
    """An interrupted restore and the message about it, both empty if there was none."""

    text: str = ""
    restore: InterruptedRestore | None = None

    def join_text(self, *lines: str) -> str:
        return "\n".join(line for line in (self.text, *lines) if line)

    @contextmanager
    def add_to_errors(self) -> Iterator[None]:
        """Add the report of a completed restore to any error raised inside."""
        try:
            yield
        except OllmError as error:
            if self.text:
                error.message = f"{self.text}\n{error.message}"
            raise


async def recover_restore(scope: WorkspaceScope) -> FoundRestore:
    """Complete the interrupted restore of this workspace."""
    checkpoints = scope.create_checkpoints()
    try:
        found = await asyncio.to_thread(checkpoints.recover)
        if found is None:
            return FoundRestore()
        with suppress(NotFoundError):  # the session is gone, and its talk with it
            await record_rewind(scope, found)
        checkpoints.finish_restore()
    except BusyError:  # whoever has the session open is at it
        return FoundRestore()
    except OllmError as error:
        return FoundRestore(text=f"A rewind or /redo was interrupted and could not be completed: {error}")
    text = f"{name_restore(found)} was interrupted; it is complete now. {describe_result(found.result)}"
    return FoundRestore(text=text, restore=found)


async def find_restore(scope: WorkspaceScope) -> FoundRestore:
    """Find the interrupted restore of this workspace without changing it."""
    found = await asyncio.to_thread(scope.create_checkpoints().find_interrupted)
    if found is None:
        return FoundRestore()
    left = format_count(len(filter_files(found.result)), "file")
    return FoundRestore(
        text=f"{name_restore(found)} was interrupted and is completed first: {left} to go.", restore=found
    )


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
