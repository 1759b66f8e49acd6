"""`FileCheckpoints`: saves the state of the files around a turn, and restores an earlier one.

Every operation scans all files of the workspace, so callers run it in a thread.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ollm.domain.clock import format_stamp
from ollm.domain.errors import BusyError, StorageError, ToolFailure, UsageError
from ollm.services.file_checkpoints.capture import CapturedTree
from ollm.services.file_checkpoints.change_spans import ChangeSpans, complete_records
from ollm.services.file_checkpoints.records import CheckpointRecord, CheckpointRecords
from ollm.services.file_checkpoints.restore import (
    InterruptedRestore,
    RestoreJournal,
    RestoreKind,
    RestoreResult,
    RestoreScope,
    WriteInEditor,
    is_done,
    join_results,
    list_unsaved,
    make_editor_change,
    peek_journal,
    remove_journal,
    run_journal,
    write_journal,
)
from ollm.services.file_checkpoints.tree import (
    CHANGED_BY_OTHERS,
    CHANGED_SINCE_CUT_OFF,
    PathChange,
    RestorePlan,
    TreeEntry,
    apply_changes,
    compare_trees,
    drop_hidden,
    plan_steps,
)
from ollm.store.file_objects import FileObjects, ScratchObjects
from ollm.system.beneath import LinkFound, open_regular


def list_record_changes(objects: FileObjects, root: Path, record: CheckpointRecord, end: str) -> list[PathChange]:
    """List the changes from the start of a record to a tree, including unsaved changes in an editor."""
    if not record.has_trees:
        return []
    found = list(compare_trees(objects, bytes.fromhex(record.begin), bytes.fromhex(end)))
    if record.named and not record.end:
        found = [change for change in found if change.path in record.named]
    return [*found, *list_unsaved(record, root, {change.path for change in found})]


class CheckpointView:
    """A view of the checkpoints. `now` is the tree when it was made."""

    def __init__(self, root: Path, objects: FileObjects, now: CapturedTree) -> None:
        self._root = root
        self._objects = objects
        self._now = now

    def list_records(self, session_id: str) -> list[CheckpointRecord]:
        """List the records, with the ends of interrupted ones filled in. A running record has no end."""
        records = CheckpointRecords(self._objects, session_id).load()
        return complete_records(self._root, self._objects, session_id, records)

    def list_changes(self, record: CheckpointRecord) -> list[PathChange]:
        """List the changes between the start and the end of a record, or until now while it is open, including unsaved
        changes in an editor."""
        return list_record_changes(self._objects, self._root, record, record.end or self._now.digest.hex())

    def plan(self, session_id: str, start: CheckpointRecord, message_id: int, *, force: bool) -> RestorePlan:
        target = bytes.fromhex(start.begin)
        found = drop_hidden(compare_trees(self._objects, self._now.digest, target, hidden=True))
        # A path that is now ignored may be unchanged: then only the ignore rule changed.
        changes = [c for c in found if c.before is None or c.before.kind != "i" or not is_done(self._root, c)]
        others = {} if force else self._find_foreign_paths(session_id, start)
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
        """Return the reason a saved content cannot be read, or ""."""
        try:
            self._objects.read(digest)
        except StorageError as error:
            return str(error)
        return ""

    def _find_foreign_paths(self, session_id: str, start: CheckpointRecord) -> dict[str, str]:
        """Find changes made between and after the turns of this session or in turns of others, with the reason they
        stay."""
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
        return found

    def _add_changes(
        self, found: dict[str, str], before: str, after: str, why: str, known: Collection[PathChange] = ()
    ) -> None:
        """Add changes to `found`. `known` are changes by our own restores, even within another session's span."""
        for change in self._compare(before, after):
            if change not in known:
                found.setdefault(change.path, why)

    def _compare(self, before: str, after: str) -> list[PathChange]:
        """Compare two trees. The second defaults to the current one."""
        later = bytes.fromhex(after) if after else self._now.digest
        return list(compare_trees(self._objects, bytes.fromhex(before), later))


class FileCheckpoints(ChangeSpans):
    """The checkpoints of one workspace: the spans in which its sessions changed files, and restores."""

    _restore_id = ""

    @property
    def reason_off(self) -> str:
        """The reason checkpoints are off here, or ""."""
        return self._trees.off

    def list_records(self, session_id: str) -> list[CheckpointRecord]:
        """List the records as written. An interrupted record has no end."""
        return CheckpointRecords(self.objects, session_id).load()

    def list_changes(self, record: CheckpointRecord) -> list[PathChange]:
        """List the changes between the start and the end of a closed record, including unsaved changes in an editor."""
        return list_record_changes(self.objects, self.root, record, record.end) if record.end else []

    def view_files(self) -> CheckpointView:
        """View the current files beside the saved checkpoints. Writes nothing."""
        objects = ScratchObjects(self.objects.folder)
        with objects.hold_lock():
            return CheckpointView(self.root, objects, self._trees.view_tree(objects))

    def read_entry(self, path: str, entry: TreeEntry) -> bytes:
        """Read the content of a file in a tree: the saved copy, or the file itself if it is unchanged."""
        try:
            return self.objects.read(entry.value)
        except StorageError:
            with suppress(OSError, LinkFound, ToolFailure):
                with os.fdopen(open_regular(self.root, self.root / path), "rb") as file:
                    content = file.read()
                if hashlib.sha256(content).digest() == entry.value:
                    return content
            raise

    def plan_rewind(self, session_id: str, message_id: int, *, force: bool = False) -> RestorePlan | None:
        """Plan the return of files to their state before a message. Returns None if nothing changed since. Raises
        UsageError if that state is unknown. Writes nothing."""
        self.require_on()
        start = next((one for one in self.list_records(session_id) if one.message_id >= message_id), None)
        if start is None:
            return None
        if not start.has_trees:
            raise UsageError(
                f"The files of before message {message_id} are not saved.",
                action="Rewind to a later message, or the talk alone.",
            )
        return self.view_files().plan(session_id, start, message_id, force=force)

    def plan_redo(self, session_id: str, number: int, *, force: bool = False) -> RestorePlan:
        """Plan the undo of the rewind with this record. Writes nothing."""
        self.require_on()
        start = next((one for one in self.list_records(session_id) if one.number == number), None)
        if start is None or not start.has_trees:
            raise UsageError("The files of before this rewind are no longer saved.", action="See /diff.")
        return self.view_files().plan(session_id, start, start.message_id, force=force)

    def restore(
        self,
        session_id: str,
        message_id: int,
        plan: RestorePlan,
        scope: RestoreScope,
        kind: RestoreKind = "rewind",
        write_in_editor: WriteInEditor | None = None,
    ) -> tuple[CheckpointRecord, RestoreResult, str]:
        """Execute a plan. Returns the record that can undo it, the result, and its id. If the conversation is rewound
        too, the restore is in progress until `finish_restore`."""
        with self.objects.hold_lock():
            if (other := peek_journal(self.objects)) is not None and other.session_id != session_id:
                raise BusyError(
                    "Another session is putting files of this folder back right now.",
                    action="Wait for it, look what changed, and try again.",
                )
            record = self._add_record(session_id, message_id, kind, plan)
            journal = RestoreJournal(
                id=os.urandom(8).hex(),
                root=str(self.root),
                session_id=session_id,
                number=record.number,
                message_id=plan.message_id,
                scope=scope,
                kind=kind,
                left=len(plan.skipped),
                steps=[(os.fsencode(step.path), step.before, step.after) for step in plan.disk_steps],
            )
            self._restore_id = journal.id
            write_journal(self.objects, journal)
            result = run_journal(self.objects, journal, self.root)
            shown = write_in_editor(plan.editor_steps) if write_in_editor else RestoreResult()
            ended = self._end_restore(session_id, record, result, shown)
            if scope != "both":
                remove_journal(self.objects)
        result = join_results(RestoreResult(skipped=plan.skipped), result, shown)
        return ended, result, journal.id

    def finish_restore(self) -> None:
        """Finish the restore after the conversation was rewound too."""
        journal = peek_journal(self.objects)
        if journal is None or journal.id == self._restore_id:  # Otherwise it is another session's.
            remove_journal(self.objects)

    def recover(self) -> InterruptedRestore | None:
        """Finish an interrupted restore. Call `finish_restore` after its conversation is rewound too."""
        if not self.objects.journal.exists():
            return None
        with self.objects.hold_lock():
            journal = peek_journal(self.objects)
            if journal is None:  # An unreadable restore never began.
                remove_journal(self.objects)
                return None
            self._restore_id = journal.id
            records = self.list_records(journal.session_id)
            begun = next((record for record in records if record.number == journal.number), None)
            if begun is not None and begun.end:  # Only the conversation is left to rewind.
                result = RestoreResult(restored=tuple(self.list_changes(begun)))
            else:
                result = run_journal(self.objects, journal, self.root)
                if begun is not None:
                    self._end_restore(journal.session_id, begun, result)
            if journal.scope != "both":
                remove_journal(self.objects)
        return InterruptedRestore(journal=journal, result=result)

    def _end_restore(
        self, session_id: str, record: CheckpointRecord, result: RestoreResult, shown: RestoreResult | None = None
    ) -> CheckpointRecord:
        """Record the changes of a restore, without changes others made meanwhile. `shown` is the editor's part, which
        reaches the disk when saved."""
        in_editor = shown.restored if shown else ()
        saved = [step for step in in_editor if is_done(self.root, step)]
        tree = apply_changes(self.objects, bytes.fromhex(record.begin), (*result.restored, *saved))
        self.objects.save_growth()
        noted = (*record.in_editor, *map(make_editor_change, in_editor))
        ended = replace(record, end=tree.hex(), ended=format_stamp(self._clock()), in_editor=noted)
        CheckpointRecords(self.objects, session_id).add(ended)
        return ended
