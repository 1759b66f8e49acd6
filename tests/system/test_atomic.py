"""Files replaced whole or not at all, and appended to durably."""

import os
import stat

import pytest

from ollm.system.atomic import AppendFile, make_private_directory, replace_file
from tests.covers import covers


@covers("H231")
def test_a_file_is_replaced_whole_private_and_leaves_no_temporary_one(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    assert replace_file(path, (b"n", b"ew")) == 3
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_when_the_content_fails_half_way_the_old_file_stands(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def pieces():
        yield b"half"
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        replace_file(path, pieces())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_symlink_is_replaced_and_never_written_through(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("precious")
    link.symlink_to(target)
    replace_file(link, b"new")
    assert target.read_text() == "precious"
    assert not link.is_symlink()


def test_every_append_is_synced_before_it_returns(tmp_path, monkeypatch):
    synced = []
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: (synced.append(descriptor), real(descriptor)))
    file = AppendFile(tmp_path / "journal")
    for number in range(3):
        file.append(b"line\n")
        assert len(synced) == number + 1
    assert (tmp_path / "journal").read_bytes() == b"line\n" * 3
    file.close()


def test_a_private_directory_and_those_above_it_admit_their_owner_only(tmp_path):
    make_private_directory(tmp_path / "a" / "b")
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
