"""Finding and ending everything that descends from a process."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ollm.system.process_tree import (
    find_descendants,
    kill_all,
    list_from_proc,
    list_from_ps,
    make_undumpable,
    map_children,
    send_signal,
)
from tests.ordinary_user import as_ordinary_user


def test_an_undumpable_process_does_not_give_its_environment_to_others_of_its_user() -> None:
    def can_look_into(prepare: Callable[[], None]) -> bool:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            prepare()
            os.write(writing, b"r")
            signal.pause()
        try:
            os.read(reading, 1)
            return bool(Path(f"/proc/{child}/environ").read_bytes())
        except PermissionError:
            return False
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def dumpable() -> None:
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)

    def undumpable() -> None:
        dumpable()
        make_undumpable()

    def body(_: Path) -> None:
        assert can_look_into(dumpable)
        assert not can_look_into(undumpable)

    as_ordinary_user(body)


def test_where_there_is_no_proc_ps_tells_the_same() -> None:
    me = (os.getpid(), os.getppid())

    assert me in list_from_ps()
    assert me in list_from_proc()


TREE = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""


REAPING = """
import os, time
from ollm.system.process_tree import become_subreaper
become_subreaper()
top = os.getpid()
reading, writing = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        middle = os.getppid()
        while middle != top and os.getppid() == middle:
            time.sleep(0.005)
        os.write(writing, str(os.getppid()).encode())
    os._exit(0)
os.close(writing)
print(os.read(reading, 20).decode() == str(top))
"""


def is_running(process: int) -> bool:
    """Whether it is there and no corpse."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(*processes: int) -> bool:
    deadline = time.monotonic() + 60
    while any(map(is_running, processes)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(is_running, processes))


def start_tree() -> tuple[subprocess.Popen[bytes], int]:
    parent = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    return parent, int(parent.stdout.readline())


def test_descendants_are_found_at_any_depth_without_the_roots() -> None:
    parent, grandchild = start_tree()
    try:
        assert find_descendants([parent.pid]) == {grandchild}
        assert {parent.pid, grandchild} <= find_descendants([os.getpid()])
        assert grandchild in map_children()[parent.pid]
        assert (parent.pid, os.getpid()) in list_from_proc()
        assert find_descendants([grandchild]) == set()
    finally:
        kill_all([parent.pid], also=[parent.pid])
        parent.communicate()
    assert wait_until_gone(grandchild)


@pytest.mark.parametrize("also", [True, False])
def test_all_that_comes_from_the_roots_is_killed_and_the_roots_where_it_is_said(also: bool) -> None:
    parent, grandchild = start_tree()
    try:
        kill_all([parent.pid], also=[parent.pid] if also else ())

        assert wait_until_gone(grandchild)
        if also:
            assert parent.wait(60) == -signal.SIGKILL
        else:
            assert is_running(parent.pid)
    finally:
        parent.kill()
        parent.communicate()


def test_a_process_that_is_gone_can_be_signalled_without_harm() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()

    send_signal([child.pid], signal.SIGTERM)


def test_a_subreaper_gets_the_orphans_of_its_children() -> None:
    done = subprocess.run([sys.executable, "-c", REAPING], capture_output=True, text=True, timeout=120, check=False)

    assert done.stdout == "True\n", done.stderr
