"""Files and checkpoints as they are now, looked at without writing anything: what a restore would do, what changed."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ollm.domain.errors import StorageError
from ollm.services.file_checkpoints.apply import observe_path
from ollm.services.file_checkpoints.capture import CapturedTree
from ollm.services.file_checkpoints.editor_changes import list_unsaved
from ollm.services.file_checkpoints.endings import EndFinder
from ollm.services.file_checkpoints.neighbours import find_neighbours_paths
from ollm.services.file_checkpoints.plan import (
    CHANGED_BY_OTHERS,
    CHANGED_SINCE_CUT_OFF,
    RestorePlan,
    drop_hidden,
    is_same_state,
    plan_steps,
)
from ollm.services.file_checkpoints.records import CheckpointRecord, CheckpointRecords
from ollm.services.file_checkpoints.restore import peek_journal
from ollm.services.file_checkpoints.tree import PathChange, compare_trees
from ollm.store.file_objects import FileObjects
from ollm.system.beneath import LinkFound


class CheckpointView:
    """`now` is the tree as it was when the view was made."""

    def __init__(self, root: Path, objects: FileObjects, now: CapturedTree) -> None:
        self._root = root
        self._objects = objects
        self._now = now
        self._ends = EndFinder(root, objects, now.digest, peek_journal(objects))

    def list_records(self, session_id: str) -> list[CheckpointRecord]:
        """With the ends of those that were cut off; one that is still going on has none."""
        return self._ends.complete(session_id, CheckpointRecords(self._objects, session_id).load())

    def list_changes(self, record: CheckpointRecord) -> list[PathChange]:
        """What happened between the beginning and the end of a record, up to now while it is open; what an editor
        has not saved is among it."""
        if not record.has_trees:
            return []
        found = self._compare(record.begin, record.end)
        if record.named and not record.end:
            found = [change for change in found if change.path in record.named]
        return [*found, *list_unsaved(record, self._root, {change.path for change in found})]

    def plan(self, session_id: str, start: CheckpointRecord, message_id: int, *, force: bool) -> RestorePlan:
        """What going back to the beginning of a record would do."""
        target = bytes.fromhex(start.begin)
        found = drop_hidden(compare_trees(self._objects, self._now.digest, target, hidden=True))
        changes = [change for change in found if not self._is_as_then(change)]
        others = {} if force else self._find_foreign_paths(session_id, start, {change.path for change in changes})
        steps, skipped = plan_steps(changes, others, self._find_flaw)
        return RestorePlan(
            message_id=message_id,
            current=self._now.digest,
            target=target,
            steps=steps,
            skipped=skipped,
            ignored=self._now.ignored,
            uncovered=self._now.uncovered,
        )

    def _find_flaw(self, digest: bytes) -> str:
        """Why a saved content cannot be had; nothing where it can."""
        try:
            self._objects.read(digest)
        except StorageError as error:
            return str(error)
        return ""

    def _is_as_then(self, change: PathChange) -> bool:
        """Whether a path that a rule hides now holds what it held then: only the rule changed."""
        if change.before is None or change.before.kind != "i":
            return False
        try:
            return is_same_state(observe_path(self._root, change.path), change.after)
        except (OSError, LinkFound):
            return False

    def _find_foreign_paths(self, session_id: str, start: CheckpointRecord, wanted: set[str]) -> dict[str, str]:
        """What changed between the turns of this session, after them, or in turns of another; and why it stays. Of
        what sessions of other workspaces changed only the paths `wanted`."""
        own = [r for r in self.list_records(session_id) if r.has_trees and r.number >= start.number]
        restored = {
            change for record in own if record.kind in ("rewind", "redo") for change in self.list_changes(record)
        }
        found: dict[str, str] = {}
        for record, following in zip(own, [*own[1:], None], strict=False):
            if record.end:
                why = CHANGED_SINCE_CUT_OFF if record.cut_off else CHANGED_BY_OTHERS
                self._add_changes(found, record.end, following.begin if following else "", why)
        for other in self._objects.list_sessions():
            for record in self.list_records(other) if other != session_id else ():
                if record.has_trees and (record.ended or start.started) >= start.started:
                    self._add_changes(found, record.begin, record.end, CHANGED_BY_OTHERS, restored)
        near = find_neighbours_paths(self._root, self._objects.folder, wanted, start.started)
        return {**dict.fromkeys(near, CHANGED_BY_OTHERS), **found}

    def _add_changes(
        self, found: dict[str, str], before: str, after: str, why: str, known: Collection[PathChange] = ()
    ) -> None:
        """`known` are changes of our own restores: in another session's stretch they are still ours."""
        for change in self._compare(before, after):
            if change not in known:
                found.setdefault(change.path, why)

    def _compare(self, before: str, after: str) -> list[PathChange]:
        """Two trees, the second as it is now where it is not given."""
        later = bytes.fromhex(after) if after else self._now.digest
        return list(compare_trees(self._objects, bytes.fromhex(before), later))
