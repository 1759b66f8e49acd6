"""`FileCheckpoints`: takes the state of the files around a turn, and puts an earlier one back.

Everything here takes as long as looking at every file of the workspace does: callers run it in a thread.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from ollm.config.settings import CheckpointSettings
from ollm.domain.clock import Clock, format_stamp
from ollm.domain.errors import StorageError, UsageError
from ollm.domain.files import DirectoryContent, TreeTooLarge
from ollm.services.file_checkpoints.apply import read_below
from ollm.services.file_checkpoints.capture import CapturedTree, TooManyBytes, WorkspaceCapture
from ollm.services.file_checkpoints.cleanup import collect_garbage, drop_old_places, drop_old_records, drop_to_size
from ollm.services.file_checkpoints.editor_changes import WriteInEditor, join_results, list_unsaved, make_editor_change
from ollm.services.file_checkpoints.endings import EndFinder
from ollm.services.file_checkpoints.hard_links import find_joined_names
from ollm.services.file_checkpoints.heartbeat import Heartbeat
from ollm.services.file_checkpoints.place import CheckpointPlace, find_reason_off
from ollm.services.file_checkpoints.plan import RestorePlan
from ollm.services.file_checkpoints.records import CheckpointRecord, CheckpointRecords, EditorChange, RecordKind
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
from ollm.services.file_checkpoints.tree import PathChange, TreeEntry, compare_trees
from ollm.services.file_checkpoints.tree_edit import apply_changes
from ollm.services.file_checkpoints.view import CheckpointView
from ollm.store.file_objects import FileObjects
from ollm.store.scratch_objects import ScratchObjects
from ollm.system.beneath import LinkFound

INDEX_SHARE = 100  # the index is written anew when one of so many files is not in it
ScanTree = Callable[[str, int], Sequence[DirectoryContent]]


class CheckpointsOffError(UsageError):
    """No checkpoints are taken here; the message says why."""


class FileCheckpoints:
    """The checkpoints of one workspace, as one conversation uses them."""

    def __init__(self, place: CheckpointPlace, settings: CheckpointSettings, scan: ScanTree, clock: Clock) -> None:
        self.root = place.root
        self.objects = FileObjects(place.folder)
        self._settings = settings
        self._clock = clock
        self._off = find_reason_off(place, settings)
        self._place = place
        self._scan = scan
        self._capture = self._make_capture(self.objects)
        self._open: tuple[str, CheckpointRecord] | None = None
        self._heartbeat: Heartbeat | None = None
        self._cleaned = False
        self._unsaved_reads = 0

    @property
    def reason_off(self) -> str:
        """Why none are taken here; nothing where they are."""
        return self._off

    @property
    def wanted(self) -> bool:
        """Whether the settings ask for them."""
        return self._settings.enabled

    def require_on(self) -> None:
        """Raises CheckpointsOffError where none are taken."""
        if self._off:
            raise CheckpointsOffError(self._off)

    @property
    def begun(self) -> bool:
        """Whether a record is open: something may be changing files now."""
        return self._open is not None

    def begin(self, session_id: str, message_id: int, kind: RecordKind = "turn") -> CheckpointRecord:
        """Take the state before the first change of a turn; until `end` is called, later calls change nothing."""
        if self._open:
            return self._open[1]
        self.require_on()
        with self.objects.hold_lock():
            self._clean_up()
            record = self._begin(session_id, message_id, kind)
        self._open = session_id, record
        self._heartbeat = Heartbeat(self.objects.find_beat(session_id))
        return record

    def end(self) -> CheckpointRecord | None:
        """Take the state after the changes; None where nothing was begun."""
        if self._open is None:
            return None
        if self._heartbeat:
            self._heartbeat.stop()
        with self.objects.hold_lock():
            return self._end()

    def miss(self, session_id: str, message_id: int) -> None:
        """Remember that a turn changed files and their state before it is not known."""
        records = CheckpointRecords(self.objects, session_id)
        stamp = format_stamp(self._clock())
        records.add(CheckpointRecord(number=records.next_number(), kind="missed", message_id=message_id, started=stamp))

    def list_records(self, session_id: str) -> list[CheckpointRecord]:
        """As they are written down: one that was cut off has no end."""
        return CheckpointRecords(self.objects, session_id).load()

    def note_editor_change(self, place: Path, before: bytes, after: bytes) -> None:
        """Remember what an editor made of a file; nothing where no stretch is open, or it is not below the root."""
        root, put = self.root.resolve(), self.objects.put
        if self._open is None or not place.is_relative_to(root):
            return
        path = str(place.relative_to(root))
        with self.objects.hold_lock():
            change = EditorChange(path=path, before=put(before).hex(), after=put(after).hex())
            session_id, record = self._open
            self._open = session_id, replace(record, in_editor=(*record.in_editor, change))
            CheckpointRecords(self.objects, session_id).add(self._open[1])

    def list_changes(self, record: CheckpointRecord) -> list[PathChange]:
        """What happened between the beginning and the end of a record that has ended; what an editor has not saved is
        among it."""
        if not record.has_trees or not record.end:
            return []
        found = list(compare_trees(self.objects, bytes.fromhex(record.begin), bytes.fromhex(record.end)))
        return [*found, *list_unsaved(record, self.root, {change.path for change in found})]

    def look(self) -> CheckpointView:
        """The files as they are now, beside what is saved. Nothing is written."""
        objects = ScratchObjects(self.objects.folder)
        with objects.hold_lock():
            return CheckpointView(self.root, objects, self._capture_tree(self._make_capture(objects)))

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
        return self.look().plan(session_id, start, message_id, force=force)

    def plan_redo(self, session_id: str, number: int, *, force: bool = False) -> RestorePlan:
        """What taking back the rewind with this record would do. Nothing is written."""
        self.require_on()
        start = next((one for one in self.list_records(session_id) if one.number == number), None)
        if start is None or not start.has_trees:
            raise UsageError("The files of before this rewind are no longer saved.", action="See /diff.")
        return self.look().plan(session_id, start, start.message_id, force=force)

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
            record = self._begin(session_id, message_id, kind, plan)
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
        remove_journal(self.objects)

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

    def _begin(
        self, session_id: str, message_id: int, kind: RecordKind, plan: RestorePlan | None = None
    ) -> CheckpointRecord:
        tree = self._take(plan.target if plan else None)
        records = CheckpointRecords(self.objects, session_id)
        self._end_cut_off(records, tree.digest)
        record = CheckpointRecord(
            number=records.next_number(),
            kind=kind,
            message_id=message_id,
            started=format_stamp(self._clock()),
            begin=tree.digest.hex(),
            restored=plan.message_id if plan else None,
            files=tree.files,
            ignored=tree.ignored,
            uncovered=tree.uncovered,
        )
        records.add(record)
        return record

    def _end_cut_off(self, records: CheckpointRecords, now: bytes) -> None:
        """What is known of a turn that was cut off is known best before the next one."""
        known = records.load()
        ends = EndFinder(self.root, self.objects, now, peek_journal(self.objects))
        for before, after in zip(known, ends.complete(records.session_id, known), strict=True):
            if before is not after:
                records.add(after)

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

    def _end(self) -> CheckpointRecord | None:
        assert self._open is not None
        (session_id, record), self._open = self._open, None
        tree = self._take(bytes.fromhex(record.begin))
        ended = replace(record, end=tree.digest.hex(), ended=format_stamp(self._clock()))
        records = CheckpointRecords(self.objects, session_id)
        if all(one.number != record.number or one.has_trees for one in records.load()):  # else it was thrown away
            records.add(ended)
        if self._unsaved_reads > tree.files // INDEX_SHARE or not self.objects.index.exists():
            self._capture.save_index()
            self._unsaved_reads = 0
        return ended

    def _make_capture(self, objects: FileObjects) -> WorkspaceCapture:
        settings, root = self._settings, self.root
        return WorkspaceCapture(
            root,
            objects,
            lambda: self._scan(str(root), settings.max_files),
            max_file_bytes=settings.max_file_bytes,
            max_total_bytes=settings.max_total,
            excluded=self._place.excluded,
        )

    def _take(self, needed: bytes | None = None) -> CapturedTree:
        """The tree as it is, saved. What is `needed` besides is not thrown away to make room for it."""
        tree = self._capture_tree(self._capture)
        self._unsaved_reads += tree.read
        limit = self._settings.max_total
        if self.objects.save_growth().bytes > limit:
            used = [tree.digest, *([needed] if needed else [])]
            if drop_to_size(self.objects, limit, used).bytes > limit and needed is None:
                raise self._turn_off_for_size()
        return tree

    def _capture_tree(self, capture: WorkspaceCapture) -> CapturedTree:
        try:
            return capture.take()
        except TreeTooLarge as error:
            self._off = f"Checkpoints are off: this workspace has {error} (checkpoints.maxFiles)."
            raise CheckpointsOffError(self._off) from error
        except TooManyBytes as error:
            raise self._turn_off_for_size() from error

    def _turn_off_for_size(self) -> CheckpointsOffError:
        collect_garbage(self.objects)
        self._off = "Checkpoints are off: the files here take more than checkpoints.maxTotal."
        return CheckpointsOffError(self._off)

    def _clean_up(self) -> None:
        """Once a process: what is too old goes."""
        if not self._cleaned:
            self._cleaned = True
            drop_old_records(self.objects, self._clock(), self._settings.keep_days)
            drop_old_places(self.objects.folder, self._clock(), self._settings.keep_days)
