"""Throwing checkpoints away: with their session, when they are old, and when all together are too large."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from ollm.domain.clock import format_stamp
from ollm.domain.errors import BusyError, StorageError
from ollm.services.file_checkpoints.records import CheckpointRecord, CheckpointRecords
from ollm.services.file_checkpoints.tree import collect_digests
from ollm.store.file_objects import FileObjects, ObjectsState

SHARE_DROPPED = 4  # one of so many records goes at a time when there is too much


def collect_garbage(objects: FileObjects, used: Iterable[bytes] = ()) -> ObjectsState:
    """Throw away what no checkpoint of any session needs, nor the trees `used`. The caller holds the lock."""
    trees, contents = set(used), set[bytes]()
    for session_id in objects.list_sessions():
        for record in CheckpointRecords(objects, session_id).load():
            trees.update(bytes.fromhex(tree) for tree in (record.begin, record.end) if tree)
            contents.update(bytes.fromhex(one) for change in record.in_editor for one in (change.before, change.after))
    return objects.remove_others(collect_digests(objects, trees) | contents)


def drop_old_records(objects: FileObjects, now: datetime, keep_days: int) -> None:
    """Forget what is older than so many days."""
    limit = format_stamp(now - timedelta(days=keep_days))
    if _drop_records(objects, lambda record: record.started < limit):
        collect_garbage(objects)


def drop_old_places(folder: Path, now: datetime, keep_days: int) -> None:
    """Take away what other workspaces have saved that nobody has used for so many days: nobody else would."""
    limit = (now - timedelta(days=keep_days)).timestamp()
    for place in folder.parent.glob("*"):
        objects = FileObjects(place)
        times = [path.stat().st_mtime for path in objects.sessions.glob("*")]
        if place == folder or not times or max(times) >= limit or objects.journal.exists():
            continue
        with suppress(OSError, BusyError), objects.hold_lock():
            shutil.rmtree(place)


def drop_to_size(objects: FileObjects, max_bytes: int, used: Sequence[bytes] = ()) -> ObjectsState:
    """Forget the oldest records of all sessions until the rest fits; those that begin with one of the trees `used`
    stay."""
    state, kept = objects.load_state(), {tree.hex() for tree in used}
    while state.bytes > max_bytes:
        known = sorted(record.started for record in _load_all(objects) if record.begin not in kept)
        if not known:
            break
        limit = known[len(known) // SHARE_DROPPED]
        if not _drop_records(objects, _make_age_test(limit, kept)):
            break
        state = collect_garbage(objects, used)
    return state


def _make_age_test(limit: str, kept: Collection[str]) -> Callable[[CheckpointRecord], bool]:
    return lambda record: record.started <= limit and record.begin not in kept


def _load_all(objects: FileObjects) -> list[CheckpointRecord]:
    sessions = objects.list_sessions()
    return [
        record
        for session_id in sessions
        for record in CheckpointRecords(objects, session_id).load()
        if record.has_trees
    ]


def _drop_records(objects: FileObjects, is_old: Callable[[CheckpointRecord], bool]) -> bool:
    dropped = False
    for session_id in objects.list_sessions():
        records = CheckpointRecords(objects, session_id)
        old = [record.number for record in records.load() if record.has_trees and is_old(record)]
        if old:
            records.drop_before(max(old) + 1)
            dropped = True
    return dropped


class CheckpointEraser:
    """Takes a session's checkpoints away, in any workspace, and what no other session shares."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def erase(self, session_id: str) -> None:
        for place in sorted(self._folder.glob("*")):
            objects = FileObjects(place)
            if not (objects.sessions / f"{session_id}.jsonl").exists():
                continue
            try:
                with objects.hold_lock():
                    objects.remove_session(session_id)
                    collect_garbage(objects)
            except OSError as error:
                raise StorageError(f"Cannot remove the checkpoints in {place}: {error.strerror}.") from error
