"""A session's list of checkpoints, the file it holds meanwhile, and the removal of old checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from ollm.domain.clock import format_stamp
from ollm.domain.errors import BusyError, StorageError
from ollm.domain.struct import Data
from ollm.services.file_checkpoints.tree import collect_digests
from ollm.store.file_objects import FileObjects, ObjectsState
from ollm.system.locks import OwnerLock

RecordKind = Literal["turn", "undo", "rewind", "redo", "pruned", "missed"]


class EditorChange(Data, frozen=True):
    """A file changed in an editor: hexadecimal digests of its contents before and after. The change reaches the disk
    when the editor saves it."""

    path: str
    before: str
    after: str


class CheckpointRecord(Data, frozen=True):
    """One span in which this session changed files. `message_id` is the session's newest message at its start. `begin`
    and `end` are tree digests in hexadecimal; `end` is missing while the span runs, or if it was interrupted.

    A `pruned` record replaces all deleted records before it; `missed` marks a turn whose state could not be saved."""

    number: int
    kind: RecordKind
    message_id: int
    started: str
    begin: str = ""
    end: str = ""
    ended: str = ""
    restored: int | None = None
    files: int = 0
    ignored: int = 0
    uncovered: int = 0
    in_editor: tuple[EditorChange, ...] = ()
    named: tuple[str, ...] = ()  # It changes no other files.
    cut_off: bool = False  # The process was killed, so nobody knows what it changed.

    @property
    def has_trees(self) -> bool:
        return self.kind not in ("pruned", "missed")


class CheckpointRecords:
    """Reads and writes the records of one session. The line of an ended record replaces that of its start."""

    def __init__(self, objects: FileObjects, session_id: str) -> None:
        self._objects = objects
        self.session_id = session_id

    def load(self) -> list[CheckpointRecord]:
        found: dict[int, CheckpointRecord] = {}
        for line in self._objects.read_lines(self.session_id):
            try:
                record = msgspec.json.decode(line, type=CheckpointRecord)
            except msgspec.MsgspecError:
                continue
            found[record.number] = record
        return [found[number] for number in sorted(found)]

    def add(self, record: CheckpointRecord) -> None:
        self._objects.append_line(self.session_id, msgspec.json.encode(record))

    def drop_before(self, number: int) -> None:
        """Drop the records before a number, and leave a `pruned` mark."""
        records = self.load()
        gone = [record for record in records if record.number < number]
        if not gone:
            return
        last = gone[-1]
        mark = CheckpointRecord(
            number=last.number, kind="pruned", message_id=last.message_id, started=last.started, ended=last.ended
        )
        kept = [mark, *(record for record in records if record.number >= number)]
        self._objects.replace_lines(self.session_id, [msgspec.json.encode(record) for record in kept])


def group_turns(records: Iterable[CheckpointRecord]) -> list[list[CheckpointRecord]]:
    """Group the spans of each turn. Every other record is a group by itself."""
    groups: list[list[CheckpointRecord]] = []
    for record in records:
        last = groups[-1][-1] if groups else None
        if last and record.kind == last.kind == "turn" and record.message_id == last.message_id:
            groups[-1].append(record)
        else:
            groups.append([record])
    return groups


SHARE_DROPPED = 4


def collect_garbage(objects: FileObjects, used: Iterable[bytes] = ()) -> ObjectsState:
    """Delete objects that no checkpoint of any session nor the trees `used` need. The caller holds the lock."""
    trees, contents = set(used), set[bytes]()
    for session_id in objects.list_sessions():
        for record in CheckpointRecords(objects, session_id).load():
            trees.update(bytes.fromhex(tree) for tree in (record.begin, record.end) if tree)
            contents.update(bytes.fromhex(one) for change in record.in_editor for one in (change.before, change.after))
    return objects.remove_others(collect_digests(objects, trees) | contents)


def drop_old_records(objects: FileObjects, now: datetime, keep_days: int) -> None:
    limit = format_stamp(now - timedelta(days=keep_days))
    if _drop_records(objects, limit):
        collect_garbage(objects)


def drop_old_places(folder: Path, now: datetime, keep_days: int) -> None:
    """Delete the checkpoints of other workspaces that have not been used for this many days."""
    limit = (now - timedelta(days=keep_days)).timestamp()
    for place in folder.parent.glob("*"):
        objects = FileObjects(place)
        times = [path.stat().st_mtime for path in objects.sessions.glob("*")]
        if place == folder or not times or max(times) >= limit or objects.journal.exists():
            continue
        with suppress(OSError, BusyError), objects.hold_lock():
            import shutil

            shutil.rmtree(place)


def drop_to_size(objects: FileObjects, max_bytes: int, used: Sequence[bytes] = ()) -> ObjectsState:
    """Drop the oldest records of all sessions until the rest fits. Records that begin with one of the trees `used`
    stay."""
    state, kept = objects.load_state(), {tree.hex() for tree in used}
    while state.bytes > max_bytes:
        known = sorted(
            record.started
            for session_id in objects.list_sessions()
            for record in CheckpointRecords(objects, session_id).load()
            if record.has_trees and record.begin not in kept
        )
        if not known:
            break
        limit = known[len(known) // SHARE_DROPPED]
        if not _drop_records(objects, limit, kept):
            break
        state = collect_garbage(objects, used)
    return state


def _drop_records(objects: FileObjects, limit: str, kept: Collection[str] = ()) -> bool:
    """Drop the records that started by the limit, except those that begin with a tree in `kept`."""
    dropped = False
    for session_id in objects.list_sessions():
        records = CheckpointRecords(objects, session_id)
        found = [record for record in records.load() if record.has_trees and record.begin not in kept]
        old = [record.number for record in found if record.started <= limit]
        if old:
            records.drop_before(max(old) + 1)
            dropped = True
    return dropped


class CheckpointEraser:
    """Erases a session's checkpoints in all workspaces, and objects that no other session shares."""

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


def hold_file(path: Path) -> OwnerLock:
    """Lock a file until the lock is released, if that is possible."""
    lock = OwnerLock(path)
    with suppress(OSError, BusyError):
        lock.acquire(path.stem)
    return lock


def is_held(path: Path) -> bool:
    """Return True if a process that is alive has locked the file."""
    if path.exists():
        hold_file(path).release()
    return path.exists()
