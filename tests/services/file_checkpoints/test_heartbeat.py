"""Signs of life of a process, as another one reads them."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from ollm.services.file_checkpoints.heartbeat import Heartbeat, read_last_beat
from tests.open_files import count_open_files


def test_a_process_that_runs_is_told_from_one_that_ended(tmp_path: Path) -> None:
    path = tmp_path / "alive"
    assert read_last_beat(path) == 0
    beating = Heartbeat(path)
    began = path.stat().st_mtime_ns
    assert read_last_beat(path) is None
    deadline = time.monotonic() + 60
    while path.stat().st_mtime_ns == began:
        assert time.monotonic() < deadline
        time.sleep(0.02)

    beating.stop()

    last = read_last_beat(path)
    assert last is not None
    assert began < last <= time.time_ns()


def test_one_that_was_killed_gives_no_more(tmp_path: Path) -> None:
    path = tmp_path / "alive"
    process = os.fork()
    if process == 0:
        Heartbeat(path)
        os._exit(0)
    os.waitpid(process, 0)

    assert read_last_beat(path) == path.stat().st_mtime_ns


def test_where_nothing_can_be_written_nothing_is_proved(tmp_path: Path) -> None:
    Heartbeat(tmp_path / "missing" / "alive").stop()

    assert read_last_beat(tmp_path / "missing" / "alive") == 0


def test_stopping_gives_one_more_sign_and_leaves_nothing_open(tmp_path: Path) -> None:
    path, others = tmp_path / "alive", set(threading.enumerate())

    def count_open() -> int:
        beating = Heartbeat(path)
        os.utime(path, ns=(1, 1))
        beating.stop()
        beating.stop()
        assert path.stat().st_mtime_ns > 1
        return count_open_files()

    before = count_open()
    assert count_open() <= before
    deadline = time.monotonic() + 60
    while any(thread.name == "heartbeat" for thread in set(threading.enumerate()) - others):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_that_never_stops_it_ends_all_the_same(tmp_path: Path) -> None:
    code = "import sys, pathlib, ollm.services.file_checkpoints.heartbeat as h; h.Heartbeat(pathlib.Path(sys.argv[1]))"

    subprocess.run([sys.executable, "-c", code, str(tmp_path / "alive")], check=True, timeout=20)

    assert read_last_beat(tmp_path / "alive")
