"""A restore that survives being killed: what it is about to do is on disk first, and is done again from there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from ollm.domain.struct import Data
from ollm.services.file_checkpoints.apply import RestoreSteps, observe_path
from ollm.services.file_checkpoints.plan import RestorePlan, SkippedPath, is_same_state
from ollm.services.file_checkpoints.tree import PathChange, TreeEntry
from ollm.store.file_objects import FileObjects
from ollm.system.atomic import replace_file, sync_directory
from ollm.system.beneath import LinkFound

RestoreScope = Literal["talk", "files", "both"]
RestoreKind = Literal["rewind", "redo"]
MAX_SYNCED_OBJECTS = 500


class RestoreJournal(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore is about to do: enough to finish it. `number` is its record in the session's list."""

    id: str
    root: str
    session_id: str
    number: int
    message_id: int
    scope: RestoreScope
    kind: RestoreKind = "rewind"
    joined: list[list[bytes]] = []
    left: int = 0  # paths that it leaves alone
    steps: list[tuple[bytes, TreeEntry | None, TreeEntry | None]]


class RestoreResult(Data, frozen=True):
    """What became of each path."""

    restored: tuple[PathChange, ...] = ()
    skipped: tuple[SkippedPath, ...] = ()


class InterruptedRestore(Data, frozen=True):
    """A restore that was killed and is finished now."""

    id: str
    session_id: str
    number: int
    message_id: int
    scope: RestoreScope
    kind: RestoreKind
    result: RestoreResult
    left: int = 0


def write_journal(objects: FileObjects, journal: RestoreJournal) -> None:
    """From here on the restore happens, whatever happens to us."""
    contents = [entry.value for _, *both in journal.steps for entry in both if entry and entry.kind == "f"]
    if len(contents) > MAX_SYNCED_OBJECTS:
        os.sync()
    else:
        for digest in contents:
            objects.sync_object(digest)
    replace_file(objects.journal, msgspec.msgpack.encode(journal))


def peek_journal(objects: FileObjects) -> RestoreJournal | None:
    """The restore that was begun and not finished; one that cannot be read never began."""
    try:
        return msgspec.msgpack.decode(objects.journal.read_bytes(), type=RestoreJournal)
    except (OSError, msgspec.MsgspecError):
        return None


def read_journal(objects: FileObjects) -> RestoreJournal | None:
    """The same to be finished; one that cannot be read is taken away."""
    journal = peek_journal(objects)
    if journal is None:
        remove_journal(objects)
    return journal


def remove_journal(objects: FileObjects) -> None:
    objects.journal.unlink(missing_ok=True)
    sync_directory(objects.folder)


def make_journal_steps(plan: RestorePlan) -> list[tuple[bytes, TreeEntry | None, TreeEntry | None]]:
    return [(os.fsencode(step.path), step.before, step.after) for step in plan.disk_steps]


def list_changes(journal: RestoreJournal) -> list[PathChange]:
    return [PathChange(os.fsdecode(path), before, after) for path, before, after in journal.steps]


def is_done(root: Path, step: PathChange) -> bool:
    try:
        return is_same_state(observe_path(root, step.path), step.after)
    except (OSError, LinkFound):
        return False


def run_journal(objects: FileObjects, journal: RestoreJournal, root: Path) -> RestoreResult:
    """Do what a journal says, for the first time or again."""
    changes = list_changes(journal)
    joined = [[os.fsdecode(path) for path in names] for names in journal.joined]
    steps = RestoreSteps(root, objects, changes, journal.id, joined)
    steps.run()
    return RestoreResult(restored=tuple(steps.done), skipped=tuple(steps.skipped))


def make_interrupted(journal: RestoreJournal, result: RestoreResult) -> InterruptedRestore:
    return InterruptedRestore(
        id=journal.id,
        session_id=journal.session_id,
        number=journal.number,
        message_id=journal.message_id,
        scope=journal.scope,
        kind=journal.kind,
        result=result,
        left=journal.left + len(result.skipped),
    )
