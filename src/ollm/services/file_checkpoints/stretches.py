"""Stretches in which a session changes files: each has a record with the state before it and the state after it.

What happens between two of them is somebody else's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from ollm.config.settings import CheckpointSettings
from ollm.domain.clock import Clock, format_stamp
from ollm.services.file_checkpoints.cleanup import drop_old_places, drop_old_records
from ollm.services.file_checkpoints.endings import EndFinder
from ollm.services.file_checkpoints.heartbeat import Heartbeat
from ollm.services.file_checkpoints.named_files import LookFurther, find_named_files, renew_files
from ollm.services.file_checkpoints.plan import RestorePlan
from ollm.services.file_checkpoints.records import CheckpointRecord, CheckpointRecords, EditorChange, RecordKind
from ollm.services.file_checkpoints.restore import peek_journal
from ollm.services.file_checkpoints.taking import TreeTaker
from ollm.store.file_objects import FileObjects


class Stretches:
    """One at a time is open."""

    def __init__(
        self, root: Path, objects: FileObjects, trees: TreeTaker, settings: CheckpointSettings, clock: Clock
    ) -> None:
        self._root = root
        self._objects = objects
        self._trees = trees
        self._settings = settings
        self._clock = clock
        self._open: tuple[str, CheckpointRecord] | None = None
        self._newest: tuple[str, CheckpointRecord] | None = None  # the last that ended, with its session
        self._heartbeat: Heartbeat | None = None
        self._cleaned = False

    @property
    def begun(self) -> bool:
        return self._open is not None

    def begin(
        self, session_id: str, message_id: int, kind: RecordKind, names: Sequence[str] | None
    ) -> CheckpointRecord:
        """`names` are the files that are written and no others: only these are looked at where that tells enough, and
        what happens to others meanwhile is somebody else's."""
        if self._open and not self._open[1].named:
            return self._open[1]
        self.end()
        with self._objects.hold_lock():
            self._clean_up()
            record = self._begin_named(session_id, message_id, names) if names else None
            record = record or self.add_record(session_id, message_id, kind, names=names)
        self._open = session_id, record
        self._heartbeat = Heartbeat(self._objects.find_beat(session_id))
        return record

    def end(self) -> CheckpointRecord | None:
        if self._open is None:
            return None
        if self._heartbeat:
            self._heartbeat.stop()
        with self._objects.hold_lock():
            return self._end()

    def note_missed(self, session_id: str, message_id: int) -> None:
        records = CheckpointRecords(self._objects, session_id)
        stamp = format_stamp(self._clock())
        records.add(CheckpointRecord(number=records.next_number(), kind="missed", message_id=message_id, started=stamp))

    def note_editor_change(self, place: Path, before: bytes, after: bytes) -> None:
        root, put = self._root.resolve(), self._objects.put
        if self._open is None or not place.is_relative_to(root):
            return
        path = str(place.relative_to(root))
        with self._objects.hold_lock():
            change = EditorChange(path=path, before=put(before).hex(), after=put(after).hex())
            session_id, record = self._open
            self._open = session_id, replace(record, in_editor=(*record.in_editor, change))
            CheckpointRecords(self._objects, session_id).add(self._open[1])

    def add_record(
        self,
        session_id: str,
        message_id: int,
        kind: RecordKind,
        plan: RestorePlan | None = None,
        names: Sequence[str] | None = None,
    ) -> CheckpointRecord:
        """A new record that begins with the files as they are. The caller holds the lock."""
        tree = self._trees.take(plan.target if plan else None)
        records = CheckpointRecords(self._objects, session_id)
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
            named=self._find_named(tree.digest, names),
        )
        records.add(record)
        return record

    def _find_named(self, tree: bytes, names: Sequence[str] | None) -> tuple[str, ...]:
        try:
            return find_named_files(self._objects, self._root, tree, names or ())
        except LookFurther:
            return ()

    def _begin_named(self, session_id: str, message_id: int, names: Sequence[str]) -> CheckpointRecord | None:
        """Another stretch of a turn, from what is known of the last one; None where a whole look is needed."""
        last = self._newest[1] if self._newest and self._newest[0] == session_id else None
        if last is None or last.message_id != message_id:
            return None
        begin = bytes.fromhex(last.end)
        if not (named := self._find_named(begin, names)):
            return None
        try:
            begin = self._renew(begin, named)
        except LookFurther:
            return None
        records = CheckpointRecords(self._objects, session_id)
        record = CheckpointRecord(
            number=records.next_number(),
            kind="turn",
            message_id=message_id,
            started=format_stamp(self._clock()),
            begin=begin.hex(),
            files=last.files,
            ignored=last.ignored,
            uncovered=last.uncovered,
            named=named,
        )
        records.add(record)
        return record

    def _renew(self, tree: bytes, named: Sequence[str]) -> bytes:
        renewed = renew_files(self._objects, self._root, tree, named, self._settings.max_file_bytes)
        self._objects.save_growth()
        return renewed

    def _end_cut_off(self, records: CheckpointRecords, now: bytes) -> None:
        """What is known of a turn that was cut off is known best before the next one."""
        known = records.load()
        ends = EndFinder(self._root, self._objects, now, peek_journal(self._objects))
        for before, after in zip(known, ends.complete(records.session_id, known), strict=True):
            if before is not after:
                records.add(after)

    def _end(self) -> CheckpointRecord | None:
        assert self._open is not None
        (session_id, record), self._open, self._newest = self._open, None, None
        ended = replace(record, end=self._take_end(record).hex(), ended=format_stamp(self._clock()))
        records = CheckpointRecords(self._objects, session_id)
        if all(one.number != record.number or one.has_trees for one in records.load()):  # else it was thrown away
            records.add(ended)
            self._newest = session_id, ended
        return ended

    def _take_end(self, record: CheckpointRecord) -> bytes:
        if record.named:
            try:
                return self._renew(bytes.fromhex(record.begin), record.named)
            except LookFurther:
                pass
        tree = self._trees.take(bytes.fromhex(record.begin))
        self._trees.save_index(tree.files)
        return tree.digest

    def _clean_up(self) -> None:
        """Once a process: what is too old goes."""
        if not self._cleaned:
            self._cleaned = True
            drop_old_records(self._objects, self._clock(), self._settings.keep_days)
            drop_old_places(self._objects.folder, self._clock(), self._settings.keep_days)
