"""The spans in which a session changes files: their start and their end, also after a kill."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ollm.config.settings import CheckpointSettings
from ollm.domain.clock import Clock, format_stamp
from ollm.domain.errors import OllmError, StorageError
from ollm.services.file_checkpoints.capture import CheckpointsOffError, ScanTree, TreeTaker
from ollm.services.file_checkpoints.records import (
    CheckpointRecord,
    CheckpointRecords,
    EditorChange,
    RecordKind,
    drop_old_places,
    drop_old_records,
    hold_file,
    is_held,
)
from ollm.services.file_checkpoints.restore import is_done, list_changes, peek_journal
from ollm.services.file_checkpoints.tree import (
    RULE_FILES,
    CheckpointPlace,
    PathChange,
    RestorePlan,
    TreeEntry,
    apply_changes,
    decode_tree,
    keep_mode,
)
from ollm.store.file_objects import FileObjects
from ollm.system.beneath import LinkFound, open_regular
from ollm.system.locks import OwnerLock


class LookFurther(Exception):  # noqa: N818 - not a fault: the caller looks at the whole tree instead
    """Raised when only a scan of the whole tree can show what changed."""


def find_named_files(objects: FileObjects, root: Path, tree: bytes, names: Iterable[str]) -> tuple[str, ...]:
    """Resolve the files that a call names to paths from the root. Returns () unless the tree holds each as a file: a
    new one needs the ignore rules, and a rule file changes which files are covered."""
    real = os.path.realpath(root)
    found = [os.path.relpath(os.path.realpath(os.path.join(real, name)), real) for name in names]  # noqa: PTH118
    is_known = all(path.rpartition("/")[2] not in RULE_FILES and _is_file(objects, tree, path) for path in found)
    return tuple(dict.fromkeys(found)) if is_known else ()


def renew_files(objects: FileObjects, root: Path, tree: bytes, paths: Iterable[str], max_file_bytes: int) -> bytes:
    """Update these files in the tree and save their contents. Raises LookFurther if one is no longer a file."""
    try:
        with objects.put_together():
            now = [PathChange(path, None, _read_file(objects, root, path, max_file_bytes)) for path in paths]
            return apply_changes(objects, tree, now)
    except (OSError, LinkFound, OllmError) as error:
        raise LookFurther from error


def _is_file(objects: FileObjects, tree: bytes, path: str) -> bool:
    *folders, name = path.split("/")
    try:
        for folder in folders:
            entry = decode_tree(objects.read(tree)).get(folder)
            if entry is None or entry.kind != "d":
                return False
            tree = entry.value
        entry = decode_tree(objects.read(tree)).get(name)
    except StorageError:
        return False
    return entry is not None and entry.kind == "f"


def _read_file(objects: FileObjects, root: Path, path: str, max_file_bytes: int) -> TreeEntry:
    with os.fdopen(open_regular(root, root / path), "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_nlink > 1 or status.st_size > max_file_bytes:
            raise LookFurther
        return TreeEntry("f", keep_mode(status.st_mode), objects.put(file.read()))


def complete_records(
    root: Path, objects: FileObjects, session_id: str, records: Sequence[CheckpointRecord]
) -> list[CheckpointRecord]:
    """Fill in the ends of interrupted records. A record whose process still runs has no end."""
    return [
        record if record.end or not record.has_trees else _find_end(root, objects, session_id, record, following)
        for record, following in zip(records, [*records[1:], None], strict=False)
    ]


def _find_end(
    root: Path, objects: FileObjects, session_id: str, record: CheckpointRecord, following: CheckpointRecord | None
) -> CheckpointRecord:
    end = record.begin  # Nobody knows what a killed process changed.
    if record.kind in ("rewind", "redo"):
        journal = peek_journal(objects)
        if journal and (journal.session_id, journal.number) == (session_id, record.number):
            done = [step for step in list_changes(journal) if is_done(root, step)]
            end = apply_changes(objects, bytes.fromhex(end), done).hex()
    elif following is not None and following.begin:  # Nobody looked for its end when the next one began.
        return replace(record, end=following.begin)
    elif is_held(objects.find_held_file(session_id)):
        return record
    return replace(record, end=end, ended=record.started, cut_off=True)


class ChangeSpans:
    """The change spans of one workspace in one conversation. One at a time is open."""

    def __init__(
        self,
        place: CheckpointPlace,
        settings: CheckpointSettings,
        scan: ScanTree,
        clock: Clock,
    ) -> None:
        self.root = place.root
        self.objects = FileObjects(place.folder)
        self._trees = TreeTaker(place, settings, scan, self.objects)
        self._settings = settings
        self._clock = clock
        self._open: tuple[str, CheckpointRecord] | None = None
        self._newest: tuple[str, CheckpointRecord] | None = None
        self._held: OwnerLock | None = None
        self._cleaned = False

    @property
    def begun(self) -> bool:
        """True if a record is open, so files may be changing now."""
        return self._open is not None

    def require_on(self) -> None:
        """Raise CheckpointsOffError if checkpoints are off here."""
        if self._trees.off:
            raise CheckpointsOffError(self._trees.off)

    def begin(
        self, session_id: str, message_id: int, kind: RecordKind = "turn", names: Sequence[str] | None = None
    ) -> CheckpointRecord:
        """Save the state before a change. Until `end` is called, later calls belong to the same span. `names` are
        the only files written: only these are read if that is enough, and changes to other files are attributed to
        others."""
        self.require_on()
        if self._open and not self._open[1].named:
            return self._open[1]
        self.end()
        with self.objects.hold_lock():
            self._clean_up()
            record = self._begin_named(session_id, message_id, names) if names else None
            if record is None:
                record = self._add_record(session_id, message_id, kind, names=names)
        self._open = session_id, record
        self._held = hold_file(self.objects.find_held_file(session_id))
        return record

    def end(self) -> CheckpointRecord | None:
        """Save the state after the changes. Returns None if no record is open."""
        if self._open is None:
            return None
        if self._held:
            self._held.release()
        with self.objects.hold_lock():
            return self._end()

    def note_missed(self, session_id: str, message_id: int) -> None:
        """Record that a turn changed files whose state before it is unknown."""
        self._write_record(session_id, kind="missed", message_id=message_id)

    def note_editor_change(self, place: Path, before: bytes, after: bytes) -> None:
        """Record an editor's change of a file. Does nothing if no span is open or the file is not below the root."""
        root, put = self.root.resolve(), self.objects.put
        if self._open is None or not place.is_relative_to(root):
            return
        path = str(place.relative_to(root))
        with self.objects.hold_lock():
            change = EditorChange(path=path, before=put(before).hex(), after=put(after).hex())
            session_id, record = self._open
            self._open = session_id, replace(record, in_editor=(*record.in_editor, change))
            CheckpointRecords(self.objects, session_id).add(self._open[1])

    def _add_record(
        self,
        session_id: str,
        message_id: int,
        kind: RecordKind,
        plan: RestorePlan | None = None,
        names: Sequence[str] | None = None,
    ) -> CheckpointRecord:
        """Add a record that begins with the current files. The caller holds the lock."""
        tree = self._trees.take(plan.target if plan else None)
        self._end_cut_off(CheckpointRecords(self.objects, session_id))
        return self._write_record(
            session_id,
            kind=kind,
            message_id=message_id,
            begin=tree.digest.hex(),
            restored=plan.message_id if plan else None,
            files=tree.files,
            ignored=tree.ignored,
            uncovered=tree.uncovered,
            named=find_named_files(self.objects, self.root, tree.digest, names or ()),
        )

    def _write_record(self, session_id: str, **fields: Any) -> CheckpointRecord:
        records = CheckpointRecords(self.objects, session_id)
        number = max((record.number for record in records.load()), default=0) + 1
        record = CheckpointRecord(number=number, started=format_stamp(self._clock()), **fields)
        records.add(record)
        return record

    def _begin_named(self, session_id: str, message_id: int, names: Sequence[str]) -> CheckpointRecord | None:
        """Begin another span of a turn from the end of the last one. Returns None if a full scan is needed."""
        last = self._newest[1] if self._newest and self._newest[0] == session_id else None
        if last is None or last.message_id != message_id:
            return None
        begin = bytes.fromhex(last.end)
        if not (named := find_named_files(self.objects, self.root, begin, names)):
            return None
        try:
            begin = self._renew(begin, named)
        except LookFurther:
            return None
        counts = {"files": last.files, "ignored": last.ignored, "uncovered": last.uncovered}
        return self._write_record(
            session_id, kind="turn", message_id=message_id, begin=begin.hex(), named=named, **counts
        )

    def _renew(self, tree: bytes, named: Sequence[str]) -> bytes:
        renewed = renew_files(self.objects, self.root, tree, named, self._settings.max_file_bytes)
        self.objects.save_growth()
        return renewed

    def _end_cut_off(self, records: CheckpointRecords) -> None:
        """Complete the records of interrupted turns before the next one starts."""
        known = records.load()
        ends = complete_records(self.root, self.objects, records.session_id, known)
        for before, after in zip(known, ends, strict=True):
            if before is not after:
                records.add(after)

    def _end(self) -> CheckpointRecord | None:
        assert self._open is not None
        (session_id, record), self._open, self._newest = self._open, None, None
        ended = replace(record, end=self._take_end(record).hex(), ended=format_stamp(self._clock()))
        records = CheckpointRecords(self.objects, session_id)
        if all(one.number != record.number or one.has_trees for one in records.load()):  # It may have been dropped.
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
        """Remove expired checkpoints, once per process."""
        if not self._cleaned:
            self._cleaned = True
            drop_old_records(self.objects, self._clock(), self._settings.keep_days)
            drop_old_places(self.objects.folder, self._clock(), self._settings.keep_days)
