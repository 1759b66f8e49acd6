"""The lease: one active session per workspace, free when its owner dies."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ollm.domain.clock import now
from ollm.domain.errors import BusyError
from ollm.store.lease import Lease
from tests.covers import covers
from tests.sizes import size

HOLDER = """
import sys, signal, threading
from pathlib import Path
from ollm.domain.clock import now
from ollm.store.lease import Lease
lease = Lease(Path(sys.argv[1]), now)
asked = threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: asked.set())
lease.acquire("abc")
print("held", flush=True)
while not asked.wait(0.05):
    pass
assert lease.is_asked_to_close()
lease.release()
"""


@contextmanager
def holder(directory: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(directory)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@covers("W159", "W107")
def test_a_held_workspace_is_refused_with_who_and_since(tmp_path: Path) -> None:
    with (
        holder(tmp_path) as other,
        pytest.raises(BusyError, match=f"another ollm .process {other.pid}, started just now"),
    ):
        Lease(tmp_path, now).acquire()


def test_the_lock_of_a_killed_owner_is_free(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()

        Lease(tmp_path, now).acquire("mine")

    owner = Lease(tmp_path, now).read_owner()
    assert owner is not None
    assert (owner.pid, owner.session_id) == (os.getpid(), "mine")


def test_an_owner_that_is_asked_gives_way(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        lease = Lease(tmp_path, now)
        assert lease.ask_owner_to_close()
        other.wait(timeout=5)

        lease.acquire()

    assert lease.held


RACER = """
import sys
from pathlib import Path
from ollm.domain.clock import now
from ollm.domain.errors import BusyError
from ollm.store.lease import Lease
for line in sys.stdin:
    lease = Lease(Path(line.strip()), now)
    try:
        lease.acquire()
        print("won", flush=True)
    except BusyError:
        print("lost", flush=True)
    sys.stdin.readline()
    lease.release()
    print("released", flush=True)
"""


@covers("W159")
def test_of_two_processes_racing_for_it_exactly_one_wins(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]

    def everyone(line: str) -> list[str]:
        for racer in racers:
            assert racer.stdin
            racer.stdin.write(line + "\n")
            racer.stdin.flush()
        return [racer.stdout.readline().strip() for racer in racers if racer.stdout]

    for _ in range(size(100, 2000)):
        assert sorted(everyone(str(tmp_path))) == ["lost", "won"]
        everyone("done")
    for racer in racers:
        racer.kill()
        racer.wait()


def test_one_that_asks_politely_is_heard_by_an_idle_owner_alone(tmp_path: Path) -> None:
    lease = Lease(tmp_path, now, "daemon")
    lease.acquire()
    asking = Lease(tmp_path, now)
    owner = asking.find_other_owner()

    assert owner is not None
    assert owner.is_daemon
    assert owner.describe() == f"the ollm daemon (process {os.getpid()}, started just now)"
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        assert asking.ask_owner_to_close(only_when_idle=True)
        assert (lease.is_asked_to_close(), lease.is_asked_to_close(idle=True)) == (False, True)
        assert asking.ask_owner_to_close()
        assert lease.is_asked_to_close()
    finally:
        signal.signal(signal.SIGUSR1, before)
    asking.withdraw_request()
    assert not lease.is_asked_to_close(idle=True)
    lease.release()
    assert asking.find_other_owner() is None
