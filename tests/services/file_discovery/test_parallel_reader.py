"""Another process that reads directories."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ollm.services.file_discovery import parallel_reader
from ollm.services.file_discovery.parallel_reader import MAX_REQUEST_PATHS, ReaderProcess, has_spare_core
from ollm.services.file_discovery.reading import GONE, read_directory
from ollm.system.sandbox.landlock import get_landlock_version
from tests.open_files import count_open_files
from tests.services.file_discovery.looking import plant


@pytest.fixture(params=["a fork", "a program"])
def reader(root: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ReaderProcess]:
    monkeypatch.setattr(threading, "active_count", lambda: 1 if request.param == "a fork" else 2)
    made = ReaderProcess(str(root))
    yield made
    made.close()


def test_readings_come_in_the_order_they_were_asked_for(reader: ReaderProcess, root: Path) -> None:
    plant(root, "a", "sub/b", "sub/\udcff")
    paths = [str(root), str(root / "sub"), str(root / "nowhere")]

    assert reader.send_request(paths[:1]) == 1
    assert reader.send_request(paths[1:]) == 2

    assert reader.receive_readings(wait=True) == [read_directory(paths[0])]
    assert reader.receive_readings(wait=True) == [read_directory(paths[1]), (None, GONE, [], [], [])]
    assert reader.receive_readings(wait=False) is None


def test_a_fork_reads_what_it_may_and_ends_with_what_asked(tmp_path: Path) -> None:
    """In a process of one thread, as the command is; what is secret in this home is out of its reach."""
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "id").touch()
    plant(tmp_path / "root", "a")
    code = (
        "import os, sys\n"
        "from ollm.services.file_discovery.parallel_reader import ReaderProcess\n"
        "reader = ReaderProcess(sys.argv[1])\n"
        "reader.send_request(sys.argv[1:])\n"
        "found = reader.receive_readings(wait=True)\n"
        "assert 'subprocess' not in sys.modules\n"
        "reader.close()\n"
        "print([reading[1:3] for reading in found], os.listdir(sys.argv[2]))\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "root"), str(tmp_path / "home" / ".ssh")]
    environment = {**os.environ, "HOME": str(tmp_path / "home")}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    confined = "[('', ['a']), ('unreadable', [])] ['id']\n"
    assert done.stdout == (
        confined if get_landlock_version() else confined.replace("('unreadable', [])", "('', ['id'])")
    )
    assert done.stderr == ""


def test_an_order_is_bounded_in_paths_and_in_bytes(reader: ReaderProcess) -> None:
    assert reader.send_request([f"/nowhere/{number}" for number in range(200)]) == MAX_REQUEST_PATHS
    assert len(reader.receive_readings(wait=True) or ()) == MAX_REQUEST_PATHS
    long = "/" + "x" * 4000
    assert reader.send_request([long] * 10) == 4
    assert len(reader.receive_readings(wait=True) or ()) == 4
    assert reader.send_request(["/" + "x" * 20_000, long]) == 1


def test_one_that_ended_is_an_error_and_nothing_is_left(root: Path) -> None:
    reader = ReaderProcess(str(root))
    reader.close()

    with pytest.raises((OSError, ValueError)):
        reader.send_request([str(root)])


def test_one_that_says_nothing_is_given_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_reader, "SILENCE_TIMEOUT_SECONDS", 0.05)
    reader = ReaderProcess(str(root))

    with pytest.raises(TimeoutError):
        reader.receive_readings(wait=True)
    reader.close()


def test_a_second_process_needs_a_second_core() -> None:
    code = (
        "import os; from ollm.services.file_discovery.parallel_reader import has_spare_core as has;"
        "first = has(); os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(first, has())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.split() == [str(len(os.sched_getaffinity(0)) > 1), "False"]
    assert has_spare_core() is (len(os.sched_getaffinity(0)) > 1)


@pytest.mark.skipif(sys.platform != "linux", reason="counts what is open in /proc")
def test_a_fork_leaves_nothing_open_and_no_process(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    before = count_open_files()
    made = ReaderProcess(str(root))
    process = made._process
    assert isinstance(process, parallel_reader._ForkedReader)
    started = process._pid
    assert count_open_files() == before + 2
    made.send_request([str(root)])
    assert made.receive_readings(wait=True) == [read_directory(str(root))]

    made.close()

    assert count_open_files() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(started, 0)
