"""Changes made in an editor: they are on disk only when it saves them, so no tree of the files need have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from ollm.services.file_checkpoints.plan import RestorePlan
from ollm.services.file_checkpoints.records import CheckpointRecord, EditorChange
from ollm.services.file_checkpoints.restore import RestoreResult
from ollm.services.file_checkpoints.tree import PathChange, TreeEntry

CHANGED_IN_EDITOR = "changed in the editor since"
UNSAVED = "has changes in the editor that are not saved"
NOT_SHOWN = "was changed in the editor, which does not give it now"
NOT_WRITABLE = "the editor does not let it be changed"
FILE_MODE = 0o644

WriteInEditor = Callable[[Sequence[PathChange]], RestoreResult]


def join_changes(records: Iterable[CheckpointRecord]) -> dict[str, EditorChange]:
    """What each file held in the editor before the first change of these records, and after the last."""
    found: dict[str, EditorChange] = {}
    for change in (change for record in records for change in record.in_editor):
        first = found.get(change.path, change)
        found[change.path] = EditorChange(path=change.path, before=first.before, after=change.after)
    return found


def find_changes(records: Iterable[CheckpointRecord], message_id: int, since: int | None) -> dict[str, EditorChange]:
    """What was changed in the editor since a message, or since the record of number `since`, by path."""
    if since is not None:
        return join_changes(record for record in records if record.number >= since)
    return join_changes(record for record in records if record.message_id >= message_id)


def list_unsaved(record: CheckpointRecord, root: Path, saved: set[str]) -> list[PathChange]:
    """What was changed in the editor and not among the `saved` paths."""
    shown = [change for change in join_changes([record]).values() if change.path not in saved]
    return [make_step(one.path, root / one.path, one.before, one.after) for one in shown]


def make_step(path: str, place: Path, before: str, after: str) -> PathChange:
    """One content in place of another; the mode of the file stays."""
    mode = place.stat().st_mode & 0o7777 if place.is_file() else FILE_MODE
    return PathChange(path, TreeEntry("f", mode, bytes.fromhex(before)), TreeEntry("f", mode, bytes.fromhex(after)))


def make_editor_change(step: PathChange) -> EditorChange:
    assert step.before is not None
    assert step.after is not None
    return EditorChange(path=step.path, before=step.before.value.hex(), after=step.after.value.hex())


def drop_paths(plan: RestorePlan, paths: Iterable[str]) -> RestorePlan:
    """A plan without some paths."""
    gone = set(paths)
    return replace(
        plan,
        steps=tuple(step for step in plan.steps if step.path not in gone),
        skipped=tuple(one for one in plan.skipped if one.path not in gone),
    )


def join_results(*results: RestoreResult) -> RestoreResult:
    return RestoreResult(
        restored=tuple(step for one in results for step in one.restored),
        skipped=tuple(path for one in results for path in one.skipped),
    )
