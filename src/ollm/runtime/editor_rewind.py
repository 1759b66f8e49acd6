"""Rewind in an editor: restore changes made there, and leave unsaved files unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ollm.domain.errors import OllmError
from ollm.services.edit_ledger import compute_digest
from ollm.services.file_checkpoints.restore import (
    CHANGED_IN_EDITOR,
    NOT_SHOWN,
    NOT_WRITABLE,
    UNSAVED,
    RestoreResult,
    drop_paths,
    join_changes,
    make_step,
)
from ollm.services.file_checkpoints.tree import RestorePlan, SkippedPath
from ollm.tools.files.file_change import open_files, read_shown, write_buffer
from ollm.tools.framework.base import ToolContext

if TYPE_CHECKING:
    from ollm.services.file_checkpoints.records import CheckpointRecord, EditorChange
    from ollm.services.file_checkpoints.service import FileCheckpoints
    from ollm.services.file_checkpoints.tree import PathChange


class EditorRewind:
    """Reads and writes files through the editor of `context`."""

    def __init__(self, context: ToolContext, checkpoints: FileCheckpoints) -> None:
        self._context = replace(context, changed_in_editor=leave_to_restore)
        self._checkpoints = checkpoints
        self._loop = asyncio.get_running_loop()

    async def revise_plan(
        self, plan: RestorePlan | None, records: Iterable[CheckpointRecord], number: int, *, force: bool
    ) -> RestorePlan | None:
        """Add the editor's state since these records to a plan for the disk. Return None if there is nothing to do."""
        changes = join_changes(records)
        found = plan or RestorePlan(message_id=number, current=b"", target=b"", steps=(), skipped=())
        others = {step.path: step for step in found.files if step.path not in changes}
        context = await self._load([*changes, *others])
        unsaved = [path for path, step in others.items() if self._is_unsaved(step, context)]
        found = drop_paths(found, unsaved)
        found = replace(found, skipped=(*found.skipped, *(SkippedPath(path=path, why=UNSAVED) for path in unsaved)))
        for change in changes.values():
            found = self._revise_path(found, change, context, force=force)
        return found if plan or found.steps or found.skipped else None

    def write(self, steps: Sequence[PathChange]) -> RestoreResult:
        """Restore contents in the editor. Called in a thread."""
        return asyncio.run_coroutine_threadsafe(self._write_all(steps), self._loop).result()

    async def _write_all(self, steps: Sequence[PathChange]) -> RestoreResult:
        done: list[PathChange] = []
        skipped: list[SkippedPath] = []
        for step in steps:
            if why := await self._write_step(step):
                skipped.append(SkippedPath(path=step.path, why=why))
            else:
                done.append(step)
        return RestoreResult(restored=tuple(done), skipped=tuple(skipped))

    async def _write_step(self, step: PathChange) -> str:
        """Restore a file. Return the reason if it was not restored, or "" on success."""
        assert step.before is not None
        assert step.after is not None
        context, place = await self._load([step.path]), self._find_place(step.path)
        if place not in context.buffers:
            return NOT_SHOWN
        if compute_digest(read_shown(context, place)) != step.before.value.hex():
            return CHANGED_IN_EDITOR
        try:
            written = await write_buffer(context, place, self._checkpoints.objects.read(step.after.value))
        except OllmError as error:
            return error.message
        return "" if written else NOT_WRITABLE

    def _revise_path(
        self, plan: RestorePlan, change: EditorChange, context: ToolContext, *, force: bool
    ) -> RestorePlan:
        place = self._find_place(change.path)
        if place not in context.buffers:
            return self._revise_hidden(plan, change, place)
        plan = drop_paths(plan, [change.path])
        content = read_shown(context, place)
        now = compute_digest(content)
        if now == change.before:
            return plan
        if now != change.after and not force:
            return skip_path(plan, change.path, CHANGED_IN_EDITOR)
        if context.editor is None or not context.editor.writes:
            return skip_path(plan, change.path, NOT_WRITABLE)
        self._checkpoints.objects.put(content)
        step = make_step(change.path, place, now, change.before)
        return replace(plan, steps=(*plan.steps, step), in_editor=(*plan.in_editor, change.path))

    def _is_unsaved(self, step: PathChange, context: ToolContext) -> bool:
        """Return True if the editor shows content that is neither on disk nor the content to restore."""
        shown = context.buffers.get(self._find_place(step.path))
        return shown is not None and (step.after is None or compute_digest(shown) != step.after.value.hex())

    def _revise_hidden(self, plan: RestorePlan, change: EditorChange, place: Path) -> RestorePlan:
        """Plan a file the editor does not show by its content on disk. Skip it if the change is not there."""
        planned = {step.path for step in plan.steps} | {one.path for one in plan.skipped}
        saved = place.read_bytes() if place.is_file() else b""
        if change.path in planned or compute_digest(saved) == change.before:
            return plan
        return skip_path(plan, change.path, NOT_SHOWN)

    def _find_place(self, path: str) -> Path:
        return (self._checkpoints.root / path).resolve()

    async def _load(self, paths: Iterable[str]) -> ToolContext:
        return await open_files(self._context, [self._find_place(path) for path in paths])


async def leave_to_restore(_path: Path, _before: bytes, _after: bytes) -> None:
    """Do nothing: the restore holds the lock and records the changes itself."""


def skip_path(plan: RestorePlan, path: str, why: str) -> RestorePlan:
    return replace(plan, skipped=(*plan.skipped, SkippedPath(path=path, why=why)))
