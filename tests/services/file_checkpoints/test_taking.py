"""Where the limits are passed no trees are taken."""

import os
from pathlib import Path

import pytest

from ollm.services.file_checkpoints import CheckpointsOffError
from tests.services.file_checkpoints.trees import SESSION, make_checkpoints


def test_too_many_files_and_the_home_directory_have_none(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for number in range(4):
        (tmp_path / "tree" / str(number)).touch()
    few = make_checkpoints(tmp_path, max_files=3)
    with pytest.raises(CheckpointsOffError, match="more than 3 files"):
        few.begin(SESSION, 1)
    with pytest.raises(CheckpointsOffError, match="more than 3 files"):
        few.require_on()

    (tmp_path / "home").symlink_to(tmp_path / "tree")
    with pytest.raises(CheckpointsOffError, match="home directory"):
        make_checkpoints(tmp_path).require_on()


def test_files_that_take_too_much_turn_them_off_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_bytes(os.urandom(5000))
    small = make_checkpoints(tmp_path, max_total=1000)

    with pytest.raises(CheckpointsOffError, match="maxTotal"):
        small.begin(SESSION, 1)

    assert small.objects.measure_bytes() == 0


def test_the_index_is_saved_when_many_files_are_not_in_it(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    checkpoints = make_checkpoints(tmp_path)
    taker, saved = checkpoints._trees, list[int]()
    taker._capture.save_index = lambda: saved.append(taker._unsaved_reads)  # type: ignore[method-assign]
    index = checkpoints.objects.index
    index.parent.mkdir(parents=True, exist_ok=True)

    taker.save_index(1000)
    assert saved == [0], "there is none yet"
    index.touch()
    for reads, count in ((10, 1), (11, 2), (0, 2)):
        taker._unsaved_reads = reads
        taker.save_index(1000)
        assert len(saved) == count
    assert taker._unsaved_reads == 0


def test_room_is_made_and_what_is_needed_stays(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_bytes(os.urandom(600))
    checkpoints = make_checkpoints(tmp_path, max_total=1500)
    first = checkpoints._trees.take()
    (tree / "a").write_bytes(os.urandom(700))
    second = checkpoints._trees.take(first.digest)
    (tree / "a").write_bytes(os.urandom(800))

    third = checkpoints._trees.take(second.digest)

    assert checkpoints._trees.off == ""
    assert checkpoints.objects.read(second.digest)
    assert checkpoints.objects.read(third.digest)
