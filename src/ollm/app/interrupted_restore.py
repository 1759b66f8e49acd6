"""A rewind that was killed, found and completed when its workspace is next used."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ollm.domain.struct import Data

if TYPE_CHECKING:
    from ollm.app.workspace import WorkspaceScope
    from ollm.services.file_checkpoints import InterruptedRestore


NOTHING: dict[str, Any] = {"files": [], "skipped": []}


class RewindOutcome(Data, frozen=True):
    """What was done, or would be; `text` says it to a person."""

    session_id: str
    message_id: int
    what: Literal["talk", "files", "both"]
    dry_run: bool
    files: list[dict[str, str]]
    skipped: list[dict[str, str]]
    text: str


class FoundRestore(Data, frozen=True):
    """What was interrupted, and what is to be said of it; empty where nothing was. `step` is what it will have recorded
    in the session that was asked about."""

    text: str = ""
    session_id: str = ""
    kind: str = ""
    scope: str = ""
    message_id: int = 0
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    step: dict[str, Any] | None = None

    def join_text(self, *lines: str) -> str:
        return "\n".join(line for line in (self.text, *lines) if line)

    def is_rewind(self, session_id: str, number: int, scope: str) -> bool:
        """Whether it was just this that was interrupted."""
        return (self.kind, self.session_id, self.message_id, self.scope) == ("rewind", session_id, number, scope)

    @contextmanager
    def add_to_errors(self) -> Iterator[None]:
        """What was completed is told also where something else fails then."""
        from ollm.domain.errors import OllmError

        try:
            yield
        except OllmError as error:
            if self.text:
                error.message = f"{self.text}\n{error.message}"
            raise

    def make_outcome(self, session_id: str, what: Literal["files", "both"], *, dry_run: bool = False) -> RewindOutcome:
        return RewindOutcome(
            session_id=session_id, message_id=self.message_id, what=what, dry_run=dry_run, text=self.text, **self.data
        )


async def finish_restore(scope: WorkspaceScope) -> str:
    """Complete the one of this workspace; what is to be said about it, nothing where there is none."""
    return (await recover_restore(scope)).text


async def recover_restore(scope: WorkspaceScope) -> FoundRestore:
    """Complete the one of this workspace."""
    from contextlib import suppress

    from ollm.domain.errors import BusyError, NotFoundError, OllmError
    from ollm.runtime.rewind import describe_result, to_plain_data

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
    return make_found(found, text, to_plain_data(found.result))


async def find_restore(scope: WorkspaceScope, session_id: str) -> FoundRestore:
    """The one of this workspace, left as it is; `step` where it is of this session and can be taken back."""
    from ollm.domain.counting import format_count
    from ollm.runtime.rewind import filter_files, to_plain_data

    found = await asyncio.to_thread(scope.create_checkpoints().find_interrupted)
    if found is None:
        return FoundRestore()
    left = format_count(len(filter_files(found.result)), "file")
    text = f"{name_restore(found)} was interrupted and is completed first: {left} to go."
    return make_found(found, text, to_plain_data(found.result), session_id)


def make_found(found: InterruptedRestore, text: str, data: dict[str, Any], session_id: str = "") -> FoundRestore:
    own = found.session_id == session_id and found.kind == "rewind"
    step = "rewind" if found.scope == "both" else "rewind-files"
    return FoundRestore(
        text=text,
        session_id=found.session_id,
        kind=found.kind,
        scope=found.scope,
        message_id=found.message_id,
        data=data,
        step={"step": step, "before": found.message_id, "record": found.number} if own else None,
    )


def name_restore(found: InterruptedRestore) -> str:
    return "A /redo" if found.kind == "redo" else f"A rewind to before message {found.message_id}"


async def record_rewind(scope: WorkspaceScope, found: InterruptedRestore) -> None:
    """The talk goes back too, unless it already has."""
    from ollm.domain.clock import format_stamp

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


def make_step(history: list[dict[str, Any]], found: InterruptedRestore) -> dict[str, Any]:
    """What the restore would have recorded."""
    from ollm.runtime.changes import find_open_rewinds, make_redo_step

    if found.kind == "rewind":
        name = "rewind" if found.scope == "both" else "rewind-files"
        return {"step": name, "before": found.message_id, "record": found.number}
    taken_back = find_open_rewinds(history)
    left = {"left": found.left}
    return make_redo_step(taken_back[-1], left) if taken_back else {"step": "redo-files", **left}
