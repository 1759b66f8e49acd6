"""`FileCheckpoints`: takes the state of the files around a turn, and puts an earlier one back.

Everything here takes as long as looking at every file of the workspace does: callers run it in a thread.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ollm.config.settings import CheckpointSettings
from ollm.domain.clock import Clock, format_stamp
from ollm.domain.errors import BusyError, StorageError, UsageError
from ollm.services.file_checkpoints.apply import read_below
from ollm.services.file_checkpoints.editor_changes import WriteInEditor, join_results, list_unsaved, make_editor_change
from ollm.services.file_checkpoints.hard_links import find_joined_names
from ollm.services.file_checkpoints.place import CheckpointPlace
from ollm.services.file_checkpoints.plan import RestorePlan, drop_done_steps
from ollm.services.file_checkpoints.records import CheckpointRecord, CheckpointRecords, RecordKind
from ollm.services.file_checkpoints.restore import (
    InterruptedRestore,
    RestoreJournal,
    RestoreKind,
    RestoreResult,
    RestoreScope,
    is_done,
    list_changes,
    make_interrupted,
    make_journal_steps,
    peek_journal,
    read_journal,
    remove_journal,
    run_journal,
    write_journal,
)
from ollm.services.file_checkpoints.stretches import Stretches
from ollm.services.file_checkpoints.taking import CheckpointsOffError, ScanTree, TreeTaker
from ollm.services.file_checkpoints.tree import PathChange, TreeEntry, compare_trees
from ollm.services.file_checkpoints.tree_edit import apply_changes
from ollm.services.file_checkpoints.view import CheckpointView
from ollm.store.file_objects import FileObjects
from ollm.store.scratch_objects import ScratchObjects
from ollm.system.beneath import LinkFound


class FileCheckpoints:
    """The checkpoints of one workspace, as one conversation uses them."""

    def __init__(self, place: CheckpointPlace, settings: CheckpointSettings, scan: ScanTree, clock: Clock) -> None:
        self.root = place.root
        self.objects = FileObjects(place.folder)
        self._settings = settings
        self._clock = clock
        self._trees = TreeTaker(place, settings, scan, self.objects)
        self._restore_id = ""
        self._stretches = Stretches(self.root, self.objects, self._trees, settings, clock)

    @property
    def reason_off(self) -> str:
        """Why none are taken here; nothing where they are."""
        return self._trees.off

    @property
    def wanted(self) -> bool:
        """Whether the settings ask for them."""
        return self._settings.enabled

    def require_on(self) -> None:
        """Raises CheckpointsOffError where none are taken."""
        if self._trees.off:
            raise CheckpointsOffError(self._trees.off)

    @property
    def begun(self) -> bool:
        """Whether a record is open: something may be changing files now."""
        return self._stretches.begun

    def begin(
        self, session_id: str, message_id: int, kind: RecordKind = "turn", names: Sequence[str] | None = None
    ) -> CheckpointRecord:
        """Take the state before a change; until `end` is called, later calls belong to the same stretch. `names` are
        the files that are written and no others, where that is known."""
        self.require_on()
        return self._stretches.begin(session_id, message_id, kind, names)

    def end(self) -> CheckpointRecord | None:
        """Take the state after the changes; None where nothing was begun."""
        return self._stretches.end()

    def note_missed(self, session_id: str, message_id: int) -> None:
        """Remember that a turn changed files and their state before it is not known."""
        self._stretches.note_missed(session_id, message_id)

    def note_editor_change(self, place: Path, before: bytes, after: bytes) -> None:
        """Remember what an editor made of a file; nothing where no stretch is open, or it is not below the root."""
        self._stretches.note_editor_change(place, before, after)

    def list_records(self, session_id: str) -> list[CheckpointRecord]:
        """As they are written down: one that was cut off has no end."""
        return CheckpointRecords(self.objects, session_id).load()

    def list_changes(self, record: CheckpointRecord) -> list[PathChange]:
        """What happened between the beginning and the end of a record that has ended; what an editor has not saved is
        among it."""
        if not record.has_trees or not record.end:
            return []
        found = list(compare_trees(self.objects, bytes.fromhex(record.begin), bytes.fromhex(record.end)))
        return [*found, *list_unsaved(record, self.root, {change.path for change in found})]

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
                content = read_below(self.root, path)
                if hashlib.sha256(content).digest() == entry.value:
                    return content
            raise

    def plan_rewind(self, session_id: str, message_id: int, *, force: bool = False) -> RestorePlan | None:
        """What putting the files back to before a message would do; None when nothing was changed since. Raises
        UsageError when their state then is not known. Nothing is written."""
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
        """What taking back the rewind with this record would do. Nothing is written."""
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
            record = self._stretches.add_record(session_id, message_id, kind, plan)
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
            journal = read_journal(self.objects)
            if journal is None:
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
        """What a restore has done is its own; what came meanwhile from somebody else is not. `shown` is what an editor
        did: on disk it is done when it was saved."""
        in_editor = shown.restored if shown else ()
        saved = [step for step in in_editor if is_done(self.root, step)]
        tree = apply_changes(self.objects, bytes.fromhex(record.begin), (*result.restored, *saved))
        self.objects.save_growth()
        noted = (*record.in_editor, *map(make_editor_change, in_editor))
        ended = replace(record, end=tree.hex(), ended=format_stamp(self._clock()), in_editor=noted)
        CheckpointRecords(self.objects, session_id).add(ended)
        return ended
