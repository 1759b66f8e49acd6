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
