"""`FileCheckpoints`: takes the state of the files around a turn, and puts an earlier one back.

Everything here takes as long as looking at every file of the workspace does: callers run it in a thread.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from ollm.config.settings import CheckpointSettings
from ollm.domain.clock import Clock, format_stamp
from ollm.domain.errors import UsageError
from ollm.domain.files import DirectoryContent, TreeTooLarge
from ollm.domain.struct import Data
from ollm.services.file_checkpoints.apply import observe_path
from ollm.services.file_checkpoints.capture import CapturedTree, TooManyBytes, WorkspaceCapture
from ollm.services.file_checkpoints.cleanup import collect_garbage, drop_old_records, drop_to_size
from ollm.services.file_checkpoints.hard_links import find_joined_names
from ollm.services.file_checkpoints.plan import RestorePlan, drop_hidden, is_same_state, plan_steps
from ollm.services.file_checkpoints.records import CheckpointRecord, CheckpointRecords, RecordKind, find_states
from ollm.services.file_checkpoints.restore import (
    InterruptedRestore,
    RestoreJournal,
    RestoreKind,
    RestoreResult,
    RestoreScope,
    make_journal_steps,
    read_journal,
    remove_journal,
    run_journal,
    write_journal,
)
from ollm.services.file_checkpoints.tree import PathChange, compare_trees
from ollm.store.file_objects import FileObjects
from ollm.system.beneath import LinkFound

INDEX_SHARE = 100  # the index is written anew when one of so many files is not in it
ScanTree = Callable[[str, int], Sequence[DirectoryContent]]


class CheckpointsOffError(UsageError):
    """No checkpoints are taken here; the message says why."""


class CheckpointPlace(Data, frozen=True):
    """Which files, and where they are saved. `excluded` are paths of ours below the root."""

    root: Path
    folder: Path
    user_home: Path
    excluded: frozenset[str] = frozenset()


class FileCheckpoints:
    """The checkpoints of one workspace, as one conversation uses them."""

    def __init__(self, place: CheckpointPlace, settings: CheckpointSettings, scan: ScanTree, clock: Clock) -> None:
        self.root = place.root
        self.objects = FileObjects(place.folder)
        self._settings = settings
        self._clock = clock
        self._off = find_reason_off(place, settings)
        self._capture = WorkspaceCapture(
            place.root,
            self.objects,
            lambda: scan(str(place.root), settings.max_files),
            max_file_bytes=settings.max_file_bytes,
            max_total_bytes=settings.max_total,
            excluded=place.excluded,
        )
        self._open: tuple[str, CheckpointRecord] | None = None
        self._cleaned = False
        self._unsaved_reads = 0

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
            return self._begin(session_id, message_id, kind)

    def end(self) -> CheckpointRecord | None:
        """Take the state after the changes; None where nothing was begun."""
        if self._open is None:
            return None
        with self.objects.hold_lock():
            return self._end()

    def miss(self, session_id: str, message_id: int) -> None:
        """Remember that a turn changed files and their state before it is not known."""
        records = CheckpointRecords(self.objects, session_id)
        stamp = format_stamp(self._clock())
        records.add(CheckpointRecord(number=records.next_number(), kind="missed", message_id=message_id, started=stamp))

    def list_records(self, session_id: str) -> list[CheckpointRecord]:
        return CheckpointRecords(self.objects, session_id).load()

    def list_changes(self, record: CheckpointRecord) -> list[PathChange]:
        """What happened between the beginning and the end of a record; up to now while it is open."""
        if not record.has_trees:
            return []
        end = bytes.fromhex(record.end) if record.end else self._take_now().digest
        return list(compare_trees(self.objects, bytes.fromhex(record.begin), end))

    def read_content(self, change: PathChange) -> tuple[bytes | None, bytes | None]:
        """What a path held before and after a change; None for what is no file."""
        both = (change.before, change.after)
        before, after = (self.objects.read(entry.value) if entry and entry.kind == "f" else None for entry in both)
        return before, after

    def plan_rewind(self, session_id: str, message_id: int, *, force: bool = False) -> RestorePlan | None:
        """What putting the files back to before a message would do; None when nothing was changed since. Raises
        UsageError when their state then is not known."""
        self.require_on()
        records = self.list_records(session_id)
        start = next((place for place, record in enumerate(records) if record.message_id >= message_id), None)
        if start is None:
            return None
        if not records[start].has_trees:
            raise UsageError(
                f"The files of before message {message_id} are not saved.", action="Rewind to a later message."
            )
        return self._plan(session_id, records, start, message_id, force=force)

    def plan_redo(self, session_id: str, number: int, *, force: bool = False) -> RestorePlan:
        """What taking back the rewind with this record would do."""
        records = self.list_records(session_id)
        start = next((place for place, record in enumerate(records) if record.number == number), None)
        if start is None or not records[start].has_trees:
            raise UsageError("The files of before this rewind are no longer saved.", action="See /diff.")
        return self._plan(session_id, records, start, records[start].message_id, force=force)

    def restore(
        self, session_id: str, message_id: int, plan: RestorePlan, scope: RestoreScope, kind: RestoreKind = "rewind"
    ) -> tuple[CheckpointRecord, RestoreResult, str]:
        """Do a plan: the record that can take it back, what was done, and its id. Where the talk goes back too, the
        restore counts as under way until `finish_restore`."""
        with self.objects.hold_lock():
            record = self._begin(session_id, message_id, kind, restored=plan.message_id)
            journal = RestoreJournal(
                id=secrets.token_hex(8),
                root=str(self.root),
                session_id=session_id,
                number=record.number,
                message_id=plan.message_id,
                scope=scope,
                kind=kind,
                joined=find_joined_names(self.root, plan.steps),
                steps=make_journal_steps(plan),
            )
            write_journal(self.objects, journal)
            result = run_journal(self.objects, journal, self.root)
            ended = self._end()
            if scope != "both":
                remove_journal(self.objects)
        result = replace(result, skipped=(*plan.skipped, *result.skipped))
        return ended or record, result, journal.id

    def finish_restore(self) -> None:
        """The talk went back too: nothing is left to do."""
        remove_journal(self.objects)

    def recover(self) -> InterruptedRestore | None:
        """Finish a restore that was killed. Call `finish_restore` when its talk went back too."""
        if not self.objects.journal.exists():
            return None
        with self.objects.hold_lock():
            journal = read_journal(self.objects)
            if journal is None:
                return None
            result = run_journal(self.objects, journal, self.root)
            records = self.list_records(journal.session_id)
            begun = next((record for record in records if record.number == journal.number and not record.end), None)
            if begun is not None:
                self._open = journal.session_id, begun
                self._end()
            if journal.scope != "both":
                remove_journal(self.objects)
        return InterruptedRestore(
            id=journal.id,
            session_id=journal.session_id,
            number=journal.number,
            message_id=journal.message_id,
            scope=journal.scope,
            kind=journal.kind,
            result=result,
        )

    def _begin(
        self, session_id: str, message_id: int, kind: RecordKind, restored: int | None = None
    ) -> CheckpointRecord:
        tree = self._take()
        records = CheckpointRecords(self.objects, session_id)
        record = CheckpointRecord(
            number=records.next_number(),
            kind=kind,
            message_id=message_id,
            started=format_stamp(self._clock()),
            begin=tree.digest.hex(),
            restored=restored,
            files=tree.files,
            ignored=tree.ignored,
            uncovered=tree.uncovered,
        )
        records.add(record)
        self._open = session_id, record
        return record

    def _end(self) -> CheckpointRecord | None:
        assert self._open is not None
        (session_id, record), self._open = self._open, None
        tree = self._take()
        ended = replace(record, end=tree.digest.hex(), ended=format_stamp(self._clock()))
        CheckpointRecords(self.objects, session_id).add(ended)
        if self._unsaved_reads > tree.files // INDEX_SHARE or not self.objects.index.exists():
            self._capture.save_index()
            self._unsaved_reads = 0
        return ended

    def _take_now(self) -> CapturedTree:
        with self.objects.hold_lock():
            return self._take()

    def _take(self) -> CapturedTree:
        try:
            tree = self._capture.take()
        except TreeTooLarge as error:
            self._off = f"Checkpoints are off: this workspace has {error} (checkpoints.maxFiles)."
            raise CheckpointsOffError(self._off) from error
        except TooManyBytes as error:
            collect_garbage(self.objects)
            self._off = "Checkpoints are off: the files here take more than checkpoints.maxTotal."
            raise CheckpointsOffError(self._off) from error
        self._unsaved_reads += tree.read
        if self.objects.save_growth().bytes > self._settings.max_total:
            drop_to_size(self.objects, self._settings.max_total, [tree.digest])
        return tree

    def _clean_up(self) -> None:
        """Once a process: what is too old goes."""
        if not self._cleaned:
            self._cleaned = True
            drop_old_records(self.objects, self._clock(), self._settings.keep_days)

    def _plan(
        self, session_id: str, records: list[CheckpointRecord], start: int, message_id: int, *, force: bool
    ) -> RestorePlan:
        self.require_on()
        now, target = self._take_now(), bytes.fromhex(records[start].begin)
        others = set() if force else self._find_foreign_paths(session_id, records, start, now.digest)
        found = drop_hidden(compare_trees(self.objects, now.digest, target, hidden=True))
        changes = [change for change in found if not self._is_as_then(change)]
        steps, skipped = plan_steps(changes, others.__contains__, self.objects.has)
        return RestorePlan(
            message_id=message_id,
            current=now.digest,
            target=target,
            steps=steps,
            skipped=skipped,
            ignored=now.ignored,
            uncovered=now.uncovered,
        )

    def _is_as_then(self, change: PathChange) -> bool:
        """Whether a path that a rule hides now holds what it held then: only the rule changed."""
        if change.before is None or change.before.kind != "i":
            return False
        try:
            return is_same_state(observe_path(self.root, change.path), change.after)
        except (OSError, LinkFound):
            return False

    def _find_foreign_paths(self, session_id: str, records: list[CheckpointRecord], start: int, now: bytes) -> set[str]:
        """What changed between the turns of this session, after them, or in turns of another."""
        states = find_states(records, start)
        ends = [end for _, end in states]
        begins = [begin for begin, _ in states[1:]] + [now.hex()]
        gaps = [(end, begin) for end, begin in zip(ends, begins, strict=False) if end]
        since = records[start].started
        for other in self.objects.list_sessions():
            if other != session_id:
                theirs = [record for record in self.list_records(other) if (record.ended or record.started) >= since]
                gaps += [(begin, end) for begin, end in find_states(theirs, 0) if end]
        return {
            change.path
            for before, after in gaps
            for change in compare_trees(self.objects, bytes.fromhex(before), bytes.fromhex(after))
        }


def find_reason_off(place: CheckpointPlace, settings: CheckpointSettings) -> str:
    """Why no checkpoints are taken here; nothing where they are."""
    if not settings.enabled:
        return "Checkpoints are off (checkpoints.enabled)."
    real = os.path.realpath(place.root)
    if real in (os.path.realpath(place.user_home), os.path.sep):
        return "Checkpoints are off in the home directory: open a project's folder to have them."
    return ""
