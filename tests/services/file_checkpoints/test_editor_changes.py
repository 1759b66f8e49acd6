"""Changes made in an editor: joined over records, kept in the store, named where no tree has them."""

from pathlib import Path

from ollm.services.file_checkpoints.records import CheckpointRecord, EditorChange, collect_garbage
from ollm.services.file_checkpoints.restore import (
    RestoreResult,
    drop_paths,
    find_changes,
    join_results,
    make_editor_change,
    make_step,
)
from ollm.services.file_checkpoints.tree import PathChange, RestorePlan, SkippedPath, TreeEntry
from tests.services.file_checkpoints.trees import SESSION, make_checkpoints


def make_record(number: int, message: int, *changes: tuple[str, str, str]) -> CheckpointRecord:
    found = tuple(EditorChange(path=path, before=before, after=after) for path, before, after in changes)
    return CheckpointRecord(number=number, kind="turn", message_id=message, started="", in_editor=found)


def test_the_first_state_and_the_last_count_from_a_message_or_a_record_on() -> None:
    records = [
        make_record(1, 1, ("a", "0", "1")),
        make_record(2, 3, ("a", "1", "2"), ("b", "x", "y"), ("a", "2", "3")),
        make_record(3, 5, ("a", "3", "1")),
    ]

    assert find_changes(records, 1, None)["a"] == EditorChange(path="a", before="0", after="1")
    assert find_changes(records, 2, None)["a"] == EditorChange(path="a", before="1", after="1")
    assert set(find_changes(records, 5, None)) == {"a"}
    assert find_changes(records, 1, 3) == {"a": EditorChange(path="a", before="3", after="1")}


def test_what_an_editor_did_not_save_is_kept_and_told(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    checkpoints = make_checkpoints(tmp_path)
    place = checkpoints.root.resolve() / "a"
    place.write_bytes(b"disk")
    checkpoints.note_editor_change(place, b"no", b"stretch is open")
    checkpoints.begin(SESSION, 1)
    checkpoints.note_editor_change(place, b"before", b"after")
    checkpoints.note_editor_change(tmp_path / "elsewhere", b"x", b"y")
    record = checkpoints.end()

    assert record is not None
    with checkpoints.objects.hold_lock():
        collect_garbage(checkpoints.objects)
    (change,) = checkpoints.view_files().list_changes(checkpoints.list_records(SESSION)[0])
    assert change.before is not None
    assert change.after is not None
    assert checkpoints.read_entry(change.path, change.before) == b"before"
    assert checkpoints.read_entry(change.path, change.after) == b"after"


def test_one_content_takes_the_place_of_another_and_the_mode_stays(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0o640)

    there = make_step("a", tmp_path / "a", "01", "02")
    gone = make_step("b", tmp_path / "b", "03", "04")

    assert there == PathChange("a", TreeEntry("f", 0o640, b"\1"), TreeEntry("f", 0o640, b"\2"))
    assert gone == PathChange("b", TreeEntry("f", 0o644, b"\3"), TreeEntry("f", 0o644, b"\4"))
    assert make_editor_change(there) == EditorChange(path="a", before="01", after="02")


def test_paths_go_from_a_plan_and_results_are_told_together() -> None:
    steps = tuple(PathChange(path, None, TreeEntry("f", 0o644, b"")) for path in "abc")
    skipped = tuple(SkippedPath(path=path, why="why") for path in "bde")
    plan = RestorePlan(message_id=1, current=b"", target=b"", steps=steps, skipped=skipped)

    left = drop_paths(plan, iter("bd"))

    assert [step.path for step in left.steps] == ["a", "c"]
    assert [one.path for one in left.skipped] == ["e"]
    both = join_results(
        RestoreResult(restored=steps[:1], skipped=skipped[:1]), RestoreResult(restored=steps[1:], skipped=skipped[1:])
    )
    assert (both.restored, both.skipped) == (steps, skipped)
