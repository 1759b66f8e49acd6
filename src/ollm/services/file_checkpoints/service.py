"""`FileCheckpoints`: takes the state of the files around a turn, and puts an earlier one back.

Everything here takes as long as looking at every file of the workspace does: callers run it in a thread.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ollm.domain.clock import format_stamp
from ollm.domain.errors import BusyError, StorageError, UsageError
from ollm.services.file_checkpoints.capture import CapturedTree
from ollm.services.file_checkpoints.change_spans import ChangeSpans, EndFinder, find_neighbours_paths
from ollm.services.file_checkpoints.records import CheckpointRecord, CheckpointRecords
from ollm.services.file_checkpoints.restore import (
    InterruptedRestore,
    RestoreJournal,
    RestoreKind,
    RestoreResult,
    RestoreScope,
    WriteInEditor,
    find_joined_names,
    is_done,
    join_results,
    list_changes,
    list_unsaved,
    make_editor_change,
    make_interrupted,
    make_journal_steps,
    observe_path,
    open_below,
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
    drop_done_steps,
    drop_hidden,
    is_same_state,
    plan_steps,
)
from ollm.store.file_objects import FileObjects, ScratchObjects
from ollm.system.beneath import LinkFound


def list_record_changes(objects: FileObjects, root: Path, record: CheckpointRecord, end: str) -> list[PathChange]:
    """List the changes from the beginning of a record to a tree, with those an editor has not saved."""
    if not record.has_trees:
        return []
    found = list(compare_trees(objects, bytes.fromhex(record.begin), bytes.fromhex(end)))
    if record.named and not record.end:
        found = [change for change in found if change.path in record.named]
    return [*found, *list_unsaved(record, root, {change.path for change in found})]


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
        """List the changes between the beginning and the end of a record, up to now while it is open, with those an
        editor has not saved."""
        return list_record_changes(self._objects, self._root, record, record.end or self._now.digest.hex())

    def plan(self, session_id: str, start: CheckpointRecord, message_id: int, *, force: bool) -> RestorePlan:
        """Plan the return to the beginning of a record."""
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
        """Return True if a path that a rule now hides is unchanged: only the rule changed."""
        if change.before is None or change.before.kind != "i":
            return False
        try:
            return is_same_state(observe_path(self._root, change.path), change.after)
        except (OSError, LinkFound):
            return False

    def _find_foreign_paths(self, session_id: str, start: CheckpointRecord, wanted: set[str]) -> dict[str, str]:
        """Find the changes between and after the turns of this session and in turns of another, with the reason they
        stay. Of other workspaces' changes only the paths `wanted`."""
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


class FileCheckpoints(ChangeSpans):
    """The checkpoints of one workspace: the spans in which its sessions changed files, and the way back."""

    _restore_id = ""

    @property
    def reason_off(self) -> str:
        """Why none are taken here; nothing if they are."""
        return self._trees.off

    @property
    def wanted(self) -> bool:
        """Return True if the settings enable them."""
        return self._settings.enabled

    def list_records(self, session_id: str) -> list[CheckpointRecord]:
        """As they are written down: one that was cut off has no end."""
        return CheckpointRecords(self.objects, session_id).load()

    def list_changes(self, record: CheckpointRecord) -> list[PathChange]:
        """List the changes between the beginning and the end of a closed record, with those an editor has not saved."""
        return list_record_changes(self.objects, self.root, record, record.end) if record.end else []

    def view_files(self) -> CheckpointView:
        """The files as they are now, beside what is saved. Nothing is written."""
        objects = ScratchObjects(self.objects.folder)
        with objects.hold_lock():
            return CheckpointView(self.root, objects, self._trees.view_tree(objects))

    def read_entry(self, path: str, entry: TreeEntry) -> bytes:
        """The content of a file that a tree names: as it was saved, or as it is while nothing has changed it."""
        try:
            return self.objects.read(entry.value)
        except StorageError:
            with suppress(OSError, LinkFound):
                with open_below(self.root, path) as file:
                    content = file.read()
                if hashlib.sha256(content).digest() == entry.value:
                    return content
            raise

    def plan_rewind(self, session_id: str, message_id: int, *, force: bool = False) -> RestorePlan | None:
        """Plan the return of files to before a message; None if nothing changed since. Raises UsageError if their
        earlier state is unknown. Writes nothing."""
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
        """Do a plan: the record that can take it back, what was done, and its id. Where the talk goes back too, the
        restore counts as under way until `finish_restore`."""
        with self.objects.hold_lock():
            self._require_no_other_restore(session_id)
            record = self._add_record(session_id, message_id, kind, plan)
            begin = bytes.fromhex(record.begin)
            still = compare_trees(self.objects, begin, plan.target, hidden=True)
            plan = drop_done_steps(plan, {change.path for change in still})
            journal = RestoreJournal(
                id=os.urandom(8).hex(),
                root=str(self.root),
                session_id=session_id,
                number=record.number,
                message_id=plan.message_id,
                scope=scope,
                kind=kind,
                joined=find_joined_names(self.root, plan.disk_steps),
                left=len(plan.skipped),
                steps=make_journal_steps(plan),
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
        """The talk went back too: nothing is left to do."""
        journal = peek_journal(self.objects)
        if journal is None or journal.id == self._restore_id:  # else it is another session's
            remove_journal(self.objects)

    def _require_no_other_restore(self, session_id: str) -> None:
        journal = peek_journal(self.objects)
        if journal is not None and journal.session_id != session_id:
            raise BusyError(
                "Another session is putting files of this folder back right now.",
                action="Wait for it, look what changed, and try again.",
            )

    def find_interrupted(self) -> InterruptedRestore | None:
        """The restore that was killed, with what is left of it. Nothing is written."""
        journal = peek_journal(self.objects)
        if journal is None:
            return None
        left = tuple(step for step in list_changes(journal) if not is_done(self.root, step))
        return make_interrupted(journal, RestoreResult(restored=left))

    def recover(self) -> InterruptedRestore | None:
        """Finish a restore that was killed. Call `finish_restore` when its talk went back too."""
        if not self.objects.journal.exists():
            return None
        with self.objects.hold_lock():
            journal = peek_journal(self.objects)
            if journal is None:  # one that cannot be read never began
                remove_journal(self.objects)
                return None
            self._restore_id = journal.id
            records = self.list_records(journal.session_id)
            begun = next((record for record in records if record.number == journal.number), None)
            if begun is not None and begun.end:  # only the talk is left to do
                result = RestoreResult(restored=tuple(self.list_changes(begun)))
            else:
                result = run_journal(self.objects, journal, self.root)
                if begun is not None:
                    self._end_restore(journal.session_id, begun, result)
            if journal.scope != "both":
                remove_journal(self.objects)
        return make_interrupted(journal, result)

    def _end_restore(
        self, session_id: str, record: CheckpointRecord, result: RestoreResult, shown: RestoreResult | None = None
    ) -> CheckpointRecord:
        """Record what a restore changed, without others' changes in the meantime. `shown` is what an editor did: it
        reaches the disk when saved."""
        in_editor = shown.restored if shown else ()
        saved = [step for step in in_editor if is_done(self.root, step)]
        tree = apply_changes(self.objects, bytes.fromhex(record.begin), (*result.restored, *saved))
        self.objects.save_growth()
        noted = (*record.in_editor, *map(make_editor_change, in_editor))
        ended = replace(record, end=tree.hex(), ended=format_stamp(self._clock()), in_editor=noted)
        CheckpointRecords(self.objects, session_id).add(ended)
        return ended
