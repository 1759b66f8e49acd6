"""Calls that name what they write: only that is theirs, and most need no look at all the other files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ollm.services.file_checkpoints.change_spans import LookFurther, renew_files
from ollm.services.file_checkpoints.service import FileCheckpoints
from ollm.services.file_checkpoints.tree import compare_trees
from tests.services.file_checkpoints.trees import SESSION, make_checkpoints


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a", "b", "folder/c", "by hand"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old")
    (tmp_path / "tree" / "link").symlink_to("folder")
    return tmp_path / "tree"


def edit(checkpoints: FileCheckpoints, name: str, text: str) -> None:
    checkpoints.begin(SESSION, 1, names=[name])
    (checkpoints.root / name).parent.mkdir(exist_ok=True)
    (checkpoints.root / name).write_text(text)
    checkpoints.end()


def rewind(checkpoints: FileCheckpoints) -> dict[str, str]:
    plan = checkpoints.plan_rewind(SESSION, 1)
    assert plan is not None
    _, result, _ = checkpoints.restore(SESSION, 9, plan, "files")
    return {skipped.path: skipped.why for skipped in result.skipped}


def count_looks(checkpoints: FileCheckpoints) -> Callable[[], int]:
    take, looks = checkpoints._trees.take, [0]

    def counted(*arguments: Any) -> object:
        looks[0] += 1
        return take(*arguments)

    checkpoints._trees.take = counted  # type: ignore[method-assign, assignment]
    return lambda: looks[0]


def test_files_that_are_edited_by_name_take_one_look_a_turn(tmp_path: Path, tree: Path) -> None:
    checkpoints = make_checkpoints(tmp_path)
    looks = count_looks(checkpoints)
    edit(checkpoints, "a", "new")
    edit(checkpoints, "link/c", "new")
    edit(checkpoints, str(tree / "a"), "newer")
    assert looks() == 1

    assert rewind(checkpoints) == {}
    assert {path.read_text() for path in tree.rglob("*") if path.is_file()} == {"old"}


def test_what_a_person_writes_between_or_during_such_calls_is_theirs(tmp_path: Path, tree: Path) -> None:
    checkpoints = make_checkpoints(tmp_path)
    edit(checkpoints, "a", "new")
    (tree / "b").write_text("mine, then edited: ")
    checkpoints.begin(SESSION, 1, names=["b"])
    (tree / "b").write_text("mine, then edited: yes")
    (tree / "by hand").write_text("mine")
    checkpoints.end()

    assert rewind(checkpoints).keys() == {"b", "by hand"}
    assert (tree / "a").read_text() == "old"
    assert (tree / "by hand").read_text() == "mine"


@pytest.mark.parametrize("name", ["new/file", ".gitignore", "joined", "big"])
def test_what_needs_a_whole_look_gets_one(tmp_path: Path, tree: Path, name: str) -> None:
    if name == "joined":
        os.link(tree / "a", tree / "joined")
    if name == "big":
        (tree / "big").write_text("small")
    checkpoints = make_checkpoints(tmp_path, max_file_bytes=100)
    looks = count_looks(checkpoints)
    edit(checkpoints, "b", "new")
    edit(checkpoints, name, "*.log\n" if name == ".gitignore" else "x" * 200 if name == "big" else "new")

    assert looks() > 1
    assert rewind(checkpoints).keys() == ({"big"} if name == "big" else set())
    assert (tree / "a").read_text() == "old"
    assert not (tree / "new").exists()


def test_files_are_renewed_up_to_their_size_and_only_where_they_are_files(tmp_path: Path, tree: Path) -> None:
    checkpoints = make_checkpoints(tmp_path)
    taken, objects = checkpoints._trees.take().digest, checkpoints.objects

    def renew(name: str, limit: int = 10) -> str | None:
        try:
            found = renew_files(objects, tree, taken, [name], limit)
        except LookFurther:
            return None
        (change,) = compare_trees(objects, taken, found)
        assert change.after is not None
        return objects.read(change.after.value).decode()

    (tree / "a").write_text("x" * 10)
    assert renew("a") == "x" * 10
    assert renew("a", 9) is None
    assert renew("missing") is None
    assert renew("link") is None
    os.mkfifo(tree / "pipe")
    assert renew("pipe") is None
    os.link(tree / "a", tree / "joined")
    assert renew("a") is None
