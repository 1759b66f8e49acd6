"""Steps on a real tree, each looking at what is there first."""

from pathlib import Path

import pytest

from ollm.services.file_checkpoints.apply import RestoreSteps
from ollm.services.file_checkpoints.tree import PathChange, TreeEntry
from ollm.store.file_objects import FileObjects


@pytest.fixture
def objects(tmp_path: Path) -> FileObjects:
    return FileObjects(tmp_path / "saved")


def make_file(objects: FileObjects, text: str, mode: int = 0o644) -> TreeEntry:
    return TreeEntry("f", mode, objects.put(text.encode()))


def test_a_step_is_done_once_and_again_without_harm(tmp_path: Path, objects: FileObjects) -> None:
    old, new = make_file(objects, "old", 0o600), make_file(objects, "new")
    (tmp_path / "a").write_text("new")
    (tmp_path / "a").chmod(0o644)
    for _ in range(2):
        steps = RestoreSteps(tmp_path, objects, [PathChange("a", new, old)], "x")
        steps.run()
        assert (steps.skipped, [step.path for step in steps.done]) == ([], ["a"])

    assert (tmp_path / "a").read_text() == "old"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_what_is_neither_old_nor_new_is_left_alone(tmp_path: Path, objects: FileObjects) -> None:
    (tmp_path / "a").write_text("third")
    steps = RestoreSteps(
        tmp_path, objects, [PathChange("a", make_file(objects, "new"), make_file(objects, "old"))], "x"
    )

    steps.run()

    assert [skipped.why for skipped in steps.skipped] == ["changed while it was restored"]
    assert (tmp_path / "a").read_text() == "third"


def test_a_damaged_object_is_named_and_nothing_is_written(tmp_path: Path, objects: FileObjects) -> None:
    old = make_file(objects, "old")
    next(objects._iter_files()).write_text("rotten")
    steps = RestoreSteps(tmp_path, objects, [PathChange("a", None, old)], "x")

    steps.run()

    assert "damaged" in steps.skipped[0].why
    assert not (tmp_path / "a").exists()


def test_a_directory_that_is_not_empty_stays(tmp_path: Path, objects: FileObjects) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine").write_text("x")
    folder = TreeEntry("d", 0o755, b"")

    steps = RestoreSteps(tmp_path, objects, [PathChange("d", folder, None)], "x")
    steps.run()

    assert (tmp_path / "d" / "mine").exists()
    assert steps.skipped == []
