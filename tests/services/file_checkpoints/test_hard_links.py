"""Names of one file go back together; what came apart in the turn comes back as two files with the right content."""

import os
from pathlib import Path

from ollm.services.file_checkpoints.restore import link_beside
from tests.services.file_checkpoints.trees import SESSION, make_checkpoints, take_turn


def is_one_file(*paths: Path) -> bool:
    return len({(path.stat().st_ino, path.read_text()) for path in paths}) == 1


def test_names_of_one_file_stay_joined_when_they_go_back_and_forth(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "d").mkdir(parents=True)
    names = [tree / "a", tree / "b", tree / "d" / "c"]
    names[0].write_text("old")
    for name in names[1:]:
        name.hardlink_to(names[0])
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        names[0].write_text("new")

    plan = checkpoints.plan_rewind(SESSION, 1)
    assert plan is not None
    record, result, _ = checkpoints.restore(SESSION, 9, plan, "files")

    assert (result.skipped, names[0].read_text()) == ((), "old")
    assert is_one_file(*names)
    checkpoints.restore(SESSION, 9, checkpoints.plan_redo(SESSION, record.number), "files", "redo")
    assert names[0].read_text() == "new"
    assert is_one_file(*names)
    assert sorted(path.name for path in tree.iterdir()) == ["a", "b", "d"]


def test_names_that_came_apart_in_the_turn_have_their_content_again(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_text("old")
    (tree / "b").hardlink_to(tree / "a")
    checkpoints = make_checkpoints(tmp_path)
    with take_turn(checkpoints, 1):
        (tree / "b").unlink()
        (tree / "b").write_text("new")

    plan = checkpoints.plan_rewind(SESSION, 1)
    assert plan is not None
    checkpoints.restore(SESSION, 9, plan, "files")

    assert ((tree / "a").read_text(), (tree / "b").read_text()) == ("old", "old")


def test_a_file_gets_another_name_where_that_can_be(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_text("x")
    (tmp_path / "away").symlink_to(tmp_path / "d")
    parent = os.open(tmp_path, os.O_RDONLY)
    try:
        assert link_beside(tmp_path, "d/a", parent, "b")
        assert is_one_file(tmp_path / "d" / "a", tmp_path / "b")
        assert not link_beside(tmp_path, "d/a", parent, "b"), "the name is taken"
        assert not link_beside(tmp_path, "missing", parent, "c")
        assert not link_beside(tmp_path, "away/a", parent, "c")
    finally:
        os.close(parent)
