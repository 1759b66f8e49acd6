"""Files replaced whole or not at all, and appended to durably."""

import os
import signal
import stat
from pathlib import Path

import pytest

from ollm.domain.errors import BusyError
from ollm.system.atomic import AppendFile, make_private_directory, read_small_file, replace_file
from ollm.system.locks import OwnerLock, read_owner
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


def test_a_held_lock_names_its_owner_and_is_free_after_release(tmp_path):
    path = tmp_path / "x.lock"
    lock = OwnerLock(path)
    lock.acquire("The thing")
    assert read_owner(path)["pid"] == os.getpid()
    with pytest.raises(BusyError, match=f"The thing is in use by process {os.getpid()} on .* started"):
        OwnerLock(path).acquire("The thing")
    lock.release()
    assert not path.exists()
    OwnerLock(path).acquire("The thing")


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    path = tmp_path / "x.lock"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        OwnerLock(path).acquire("it")
        os.write(writing, b"held")
        signal.pause()
        os._exit(0)
    assert os.read(reading, 4) == b"held"
    assert read_owner(path)["pid"] == child
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert read_owner(path) is None
    OwnerLock(path).acquire("it")


def test_a_pipe_in_place_of_a_lock_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "x.lock")
    assert read_owner(tmp_path / "x.lock") is None


def test_a_lock_that_names_no_possible_process_is_nobodys(tmp_path):
    path = tmp_path / "x.lock"
    OwnerLock(path).acquire("it")
    path.write_bytes(path.read_bytes().replace(f'"pid":{os.getpid()}'.encode(), b'"pid":1000000000000000000000000'))
    assert read_owner(path) is None
