"""Folders that are looked at once for all who ask, and read again only when they have changed."""

import os
import time
from pathlib import Path

import pytest

from ollm.system import folders
from ollm.system.folders import FolderMemory, read_names


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "a.py").touch()
    (tmp_path / "src" / "link").symlink_to("a.py")
    time.sleep(0.03)  # older than a step of the clock
    return tmp_path / "src"


def test_names_stay_as_they_were_at_the_last_look(tree: Path) -> None:
    memory = FolderMemory()
    before = memory.read(str(tree))
    (tree / "b.py").touch()

    assert before == (["a.py"], ["deep"], ["link"], None)
    assert memory.read(str(tree)) is before
    memory.look()
    assert memory.read(str(tree)) == read_names(str(tree)) == (["a.py", "b.py"], ["deep"], ["link"], None)


def test_a_folder_without_a_change_is_not_read_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = FolderMemory()
    before, state = memory.read(str(tree)), memory.state
    monkeypatch.setattr(folders, "read_names", pytest.fail)
    memory.look()

    assert memory.read(str(tree)) is before
    assert memory.state is state


def test_a_forged_time_hides_no_change(tree: Path) -> None:
    memory = FolderMemory()
    memory.read(str(tree))
    old = tree.stat()
    (tree / ".mcp.json").touch()
    os.utime(tree, ns=(old.st_atime_ns, old.st_mtime_ns))
    memory.look()

    assert ".mcp.json" in memory.read(str(tree)).files


def test_what_is_gone_has_no_names_and_may_come_back(tree: Path) -> None:
    memory = FolderMemory()
    memory.read(str(tree / "deep"))
    (tree / "deep").rmdir()
    memory.look()

    assert isinstance(memory.read(str(tree / "deep")).failure, FileNotFoundError)
    (tree / "deep").mkdir()
    assert memory.read(str(tree / "deep")).failure is None


def test_a_look_is_offered_once_and_for_its_moment(tree: Path) -> None:
    memory = FolderMemory()
    memory.offered = "before"

    assert [memory.take_offer("before"), memory.take_offer("before")] == [True, False]
    memory.offered = "after"
    assert [memory.take_offer("before"), memory.take_offer("after")] == [False, False]
