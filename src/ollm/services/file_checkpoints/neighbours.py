"""Sessions of workspaces inside or around this one: what they changed during our turns is theirs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from ollm.domain.clock import format_stamp
from ollm.domain.errors import StorageError
from ollm.services.file_checkpoints.heartbeat import read_last_beat
from ollm.services.file_checkpoints.plan import list_parents
from ollm.services.file_checkpoints.records import CheckpointRecord, CheckpointRecords
from ollm.services.file_checkpoints.tree import compare_trees
from ollm.store.file_objects import FileObjects
from ollm.store.workspace_place import name_workspace


def find_neighbours_paths(root: Path, folder: Path, paths: Collection[str], since: str) -> set[str]:
    """Those of `paths` that a session of another workspace changed since a moment. `folder` is where the states of
    this workspace are; those of the others are beside it."""
    found: set[str] = set()
    for place, objects in _find_neighbours(root, folder, paths):
        for session_id in objects.list_sessions():
            for record in CheckpointRecords(objects, session_id).load():
                if record.has_trees and _find_last_sign(objects, session_id, record, since) >= since:
                    found |= _pick_changed(root, place, objects, record, paths)
    return found


def _find_neighbours(root: Path, folder: Path, paths: Collection[str]) -> Iterator[tuple[Path, FileObjects]]:
    try:
        known = set(os.listdir(folder.parent))  # noqa: PTH208
    except OSError:
        return
    inside = {parent for path in paths for parent in list_parents(path)}
    for place in (*(root / parent for parent in sorted(inside)), *root.parents):
        if (name := name_workspace(place)) in known:
            yield place, FileObjects(folder.parent / name)


def _find_last_sign(objects: FileObjects, session_id: str, record: CheckpointRecord, now: str) -> str:
    """When a stretch ended or was last known to go on; `now` while it does."""
    if record.ended:
        return record.ended
    beat = read_last_beat(objects.find_beat(session_id))
    return now if beat is None else format_stamp(datetime.fromtimestamp(beat / 1e9, UTC))


def _pick_changed(
    root: Path, place: Path, objects: FileObjects, record: CheckpointRecord, paths: Collection[str]
) -> set[str]:
    """What is not known to be untouched: where the end is missing, all that is below the other's root."""
    try:
        if record.end:
            changes = compare_trees(objects, bytes.fromhex(record.begin), bytes.fromhex(record.end))
            changed = {f"{place}/{change.path}" for change in changes}
            return {path for path in paths if f"{root}/{path}" in changed}
    except StorageError:
        pass
    return {path for path in paths if f"{root}/{path}".startswith(f"{place}/")}
