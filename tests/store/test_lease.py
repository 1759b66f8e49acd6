"""The lease: one active session per workspace, free when its owner dies."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from ollm.domain.clock import now
from ollm.domain.errors import BusyError, StorageError
from ollm.store.lease import Lease, get_process_start
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
        assert other.wait(timeout=30) == 0

        lease.acquire()

    assert lease.held


RACER = """
import sys
from pathlib import Path
from ollm.domain.clock import now
from ollm.domain.errors import BusyError, StorageError
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
        assert lease.is_asked_to_close(idle=True)
        assert asking.is_requested
        assert not lease.is_asked_to_close()
        assert not asking.is_requested, "one that is in use says no at once"
        assert asking.ask_owner_to_close()
        assert lease.is_asked_to_close()
    finally:
        signal.signal(signal.SIGUSR1, before)
    asking.withdraw_request()
    assert not lease.is_asked_to_close(idle=True)
    lease.release()
    assert asking.find_other_owner() is None


def test_the_file_says_who_holds_it_and_nothing_when_nobody_does(tmp_path: Path) -> None:
    lease, other = Lease(tmp_path / "deep/er", now), Lease(tmp_path / "deep/er", now)
    lease.acquire("a session with a long name " * 9)
    other.request.write_text("close")
    lease.acquire("short")
    owner = other.read_owner()

    assert owner is not None
    assert (owner.session_id, owner.holder, owner.started > 1e9) == ("short", "", True)
    assert not other.request.exists(), "what was asked before is over"
    assert lease.path.stat().st_mode & 0o777 == 0o600
    assert lease.path.parent.stat().st_mode & 0o777 == 0o700
    lease.release()
    assert (lease.held, lease.path.read_bytes(), other.read_owner()) == (False, b"", None)
    assert not lease.ask_owner_to_close()
    assert not lease.is_asked_to_close(idle=True)


def test_an_owner_that_cannot_be_reached_is_not_asked(tmp_path: Path) -> None:
    lease, asking = Lease(tmp_path, now), Lease(tmp_path, now)
    lease.acquire("abc")
    owner = asking.read_owner()
    assert owner is not None
    for changed in ({"host": "elsewhere"}, {"started": owner.started - 1}, {"pid": 2**22 + 1}):
        lease.path.write_bytes(msgspec.json.encode(msgspec.structs.replace(owner, **changed)))
        assert not asking.ask_owner_to_close()
        assert not asking.request.exists()
    lease.path.write_bytes(msgspec.json.encode(msgspec.structs.replace(owner, host="elsewhere", pid=7)))
    with pytest.raises(BusyError, match=r"in use by another ollm \(process 7 on elsewhere, started just now\)"):
        asking.acquire()
    lease.path.write_bytes(b"no words")
    with pytest.raises(BusyError, match="in use by another process"):
        asking.acquire()
    found = asking.find_other_owner()
    assert found is not None
    assert (found.pid, found.started, found.since, found.session_id) == (0, 0.0, "", "")
    lease.release()


def test_what_is_no_file_is_not_locked(tmp_path: Path) -> None:
    for name in ("pipe", "link"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe/lease.lock")
    (tmp_path / "link/lease.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"lease\.lock is not a regular file"):
        Lease(tmp_path / "pipe", now).acquire()
    with pytest.raises(StorageError, match=r"Cannot open .*lease\.lock"):
        Lease(tmp_path / "link", now).acquire()


def test_a_process_that_has_ended_has_no_beginning() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert get_process_start(child) is None
    os.waitpid(child, 0)
    assert get_process_start(child) is None
    assert (get_process_start(os.getpid()) or 0) > 1e9
