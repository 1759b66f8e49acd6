"""The ends of stretches whose process did not live to take one: what they are known to have done, and nothing else.

What came later was somebody else: a person who went on by hand must not lose it to a rewind.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from ollm.domain.clock import format_stamp
from ollm.services.file_checkpoints.heartbeat import read_last_beat
from ollm.services.file_checkpoints.plan import list_parents
from ollm.services.file_checkpoints.records import CheckpointRecord
from ollm.services.file_checkpoints.restore import RestoreJournal, is_done, list_changes
from ollm.services.file_checkpoints.tree import PathChange, compare_trees
from ollm.services.file_checkpoints.tree_edit import apply_changes
from ollm.store.file_objects import FileObjects

_COARSE_STEP_NANOSECONDS = 2_000_000_000  # of file systems that keep whole seconds


class EndFinder:
    """Fills in missing ends. `now` is the tree as it is; `journal` the restore that is under way or was killed."""

    def __init__(self, root: Path, objects: FileObjects, now: bytes, journal: RestoreJournal | None) -> None:
        self._root = root
        self._objects = objects
        self._now = now
        self._journal = journal

    def complete(self, session_id: str, records: list[CheckpointRecord]) -> list[CheckpointRecord]:
        """The records with their ends; one whose process still runs has none."""
        return [
            record if record.end or not record.has_trees else self._complete(session_id, record, following)
            for record, following in zip(records, [*records[1:], None], strict=False)
        ]

    def _complete(
        self, session_id: str, record: CheckpointRecord, following: CheckpointRecord | None
    ) -> CheckpointRecord:
        begin = bytes.fromhex(record.begin)
        if record.kind in ("rewind", "redo"):
            return self._end(record, apply_changes(self._objects, begin, self._find_restored(session_id, record)))
        if following is not None and following.begin:  # its end was not looked for when the next one began
            return replace(record, end=following.begin)
        alive_until = read_last_beat(self._objects.find_beat(session_id))
        if alive_until is None:
            return record
        found = compare_trees(self._objects, begin, self._now)
        changes = [change for change in found if not record.named or change.path in record.named]
        tree = apply_changes(self._objects, begin, self._filter_older(changes, alive_until))
        return self._end(record, tree, format_stamp(datetime.fromtimestamp(alive_until / 1e9, UTC)))

    def _end(self, record: CheckpointRecord, tree: bytes, stamp: str = "") -> CheckpointRecord:
        return replace(record, end=tree.hex(), ended=max(stamp, record.started), cut_off=True)

    def _find_restored(self, session_id: str, record: CheckpointRecord) -> list[PathChange]:
        """The steps of a restore that are done; one without a journal had not begun."""
        journal = self._journal
        if journal is None or (journal.session_id, journal.number) != (session_id, record.number):
            return []
        return [step for step in list_changes(journal) if is_done(self._root, step)]

    def _filter_older(self, changes: Iterable[PathChange], moment: int) -> list[PathChange]:
        """What was there before a moment, as the system's own times say, which nobody can set."""
        found = list(changes)
        new = {change.path for change in found if change.before is None}
        return [change for change in found if self._is_older(change, new, moment)]

    def _is_older(self, change: PathChange, new: set[str], moment: int) -> bool:
        above = list_parents(change.path)
        if change.after is None:  # what is gone shows in the times of the directory it was in
            return _is_unchanged_since(self._root, above, moment)
        if not _is_before(_stat_or_none(self._root / change.path), moment):
            return False
        return all(self._is_in_place(folder, folder in new, moment) for folder in above)

    def _is_in_place(self, folder: str, new: bool, moment: int) -> bool:
        """Whether a directory was not moved here later: the times of what is in it would not tell."""
        status = _stat_or_none(self._root / folder)
        if status is None or _is_before(status, moment):
            return status is not None
        return not new and status.st_ctime_ns == status.st_mtime_ns  # only a name came or went


def _is_unchanged_since(root: Path, folders: list[str], moment: int) -> bool:
    """Of the nearest directory that is there."""
    for folder in reversed(folders):
        if (status := _stat_or_none(root / folder)) is not None:
            return _is_before(status, moment)
    return _is_before(_stat_or_none(root), moment)


def _stat_or_none(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _is_before(status: os.stat_result | None, moment: int) -> bool:
    if status is None:
        return False
    changed = status.st_ctime_ns
    coarse = not changed % 1_000_000_000 and not status.st_mtime_ns % 1_000_000_000
    return changed + (_COARSE_STEP_NANOSECONDS if coarse else 0) <= moment
