"""A lock that tells who holds it, and is free when its owner is dead."""

import os
import signal

import pytest

from ollm.domain.errors import BusyError
from ollm.system.locks import OwnerLock, read_owner


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
