"""A look at saved files that leaves nothing behind."""

from pathlib import Path

import pytest

from ollm.domain.errors import StorageError
from ollm.store.file_objects import FileObjects
from ollm.store.scratch_objects import ScratchObjects


def test_what_is_put_is_known_here_and_written_nowhere(tmp_path: Path) -> None:
    saved = FileObjects(tmp_path / "saved").put(b"saved")
    before = sorted(tmp_path.rglob("*"))
    objects = ScratchObjects(tmp_path / "saved")

    with objects.hold_lock(), objects.put_together():
        tree, content = objects.put_tree(b"tree"), objects.put(b"content")

    assert (objects.read(tree), objects.read(saved)) == (b"tree", b"saved")
    assert (objects.has(tree), objects.has(saved), objects.has(content)) == (True, True, False)
    with pytest.raises(StorageError, match="gone"):
        objects.read(content)
    assert sorted(tmp_path.rglob("*")) == before


def test_the_lock_is_held_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = FileObjects(tmp_path)
    with objects.hold_lock():
        pass
    monkeypatch.setattr("ollm.store.file_objects.LOCK_TIMEOUT_SECONDS", 0.1)

    with ScratchObjects(tmp_path).hold_lock(), pytest.raises(Exception, match="busy"), objects.hold_lock():
        pass
