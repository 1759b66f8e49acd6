"""Small files are read whole, and nothing else is waited for."""

import os
from pathlib import Path

import pytest

from ollm.system.small_files import read_small_file


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1000)
    assert read_small_file(tmp_path / "a", 1000) == b"x" * 1000


def test_a_larger_one_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(8 << 30)
    with pytest.raises(OSError, match="larger than 16,384 KiB"):
        read_small_file(tmp_path / "a")


def test_a_pipe_a_device_and_a_directory_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="not a regular file"):
            read_small_file(tmp_path / name)
    with pytest.raises(IsADirectoryError):
        read_small_file(tmp_path)
