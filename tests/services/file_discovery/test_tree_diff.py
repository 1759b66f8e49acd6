"""What is new when a tree is read again."""

import os
from pathlib import Path

import pytest

from ollm.services.file_discovery import FileDiscoveryService
from ollm.services.file_discovery.tree_diff import TreeState
from tests.services.file_discovery.looking import plant, rules


@pytest.fixture
def tree(service: FileDiscoveryService, root: Path) -> TreeState:
    plant(root, "a", "sub/b", "sub/deep/c", "other/d")
    state = TreeState(lambda: service._make_watch_walk(str(root)))
    assert sorted(state.reread_tree()) == sorted(
        ("add", str(root / path)) for path in ("a", "sub/b", "sub/deep/c", "other/d")
    )
    return state


def test_the_kept_directories_are_known_and_none_is_stale(tree: TreeState, root: Path) -> None:
    assert tree.directories == {str(root / name) for name in ("", "sub", "sub/deep", "other")}
    assert tree.stale_directories == []
    assert tree.reread_tree() == []


def test_changes_are_told_by_kind(tree: TreeState, root: Path) -> None:
    plant(root, "sub/new")
    (root / "sub/b").write_text("another length")
    (root / "other/d").unlink()

    assert sorted(tree.stale_directories) == ["other", "sub"]
    assert sorted(tree.refresh(["sub", "other", "nowhere"])) == sorted(
        [("add", str(root / "sub/new")), ("change", str(root / "sub/b")), ("unlink", str(root / "other/d"))]
    )
    assert tree.stale_directories == []


def test_a_file_changed_in_place_needs_no_touched_directory(tree: TreeState, root: Path) -> None:
    os.utime(root / "sub/b", ns=(1, 1))

    assert tree.stale_directories == []
    assert tree.refresh(["sub"]) == [("change", str(root / "sub/b"))]
    assert tree.refresh([""]) == []


def test_a_new_directory_is_read_with_all_below_it(tree: TreeState, root: Path) -> None:
    plant(root, "sub/x/y/z")

    assert tree.refresh(["sub"]) == [("add", str(root / "sub/x/y/z"))]
    assert str(root / "sub/x/y") in tree.directories


def test_a_directory_that_went_takes_its_files_and_only_those_with_it(tree: TreeState, root: Path) -> None:
    plant(root, "subway/e")
    tree.refresh([""])
    for path in ("sub/deep/c", "sub/b"):
        (root / path).unlink()
    (root / "sub/deep").rmdir()
    (root / "sub").rmdir()

    assert sorted(tree.refresh([""])) == [("unlink", str(root / "sub/b")), ("unlink", str(root / "sub/deep/c"))]
    assert tree.directories == {str(root / name) for name in ("", "other", "subway")}


def test_what_a_rule_hides_from_now_on_is_no_news_and_what_it_shows_again_is_an_add(
    tree: TreeState, root: Path
) -> None:
    rules(root, ".gitignore", "sub/")

    assert tree.reread_tree() == [("add", str(root / ".gitignore"))]
    assert tree.directories == {str(root), str(root / "other")}
    (root / ".gitignore").unlink()
    assert sorted(tree.reread_tree()) == sorted(
        [("unlink", str(root / ".gitignore")), ("add", str(root / "sub/b")), ("add", str(root / "sub/deep/c"))]
    )


def test_a_root_that_went_takes_everything(tree: TreeState, root: Path) -> None:
    root.rename(root.with_name("elsewhere"))

    assert {kind for kind, _ in tree.refresh([""])} == {"unlink"}
    assert tree.directories == set()
