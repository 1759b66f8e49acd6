"""Locks of workspaces, open files, and traces of sessions."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from ollm.domain.errors import BusyError, NotFoundError, OllmError, StorageError
from ollm.store.database import WORKSPACE_MIGRATIONS, Database
from ollm.store.file_objects import FileObjects
from ollm.store.lease import Lease
from ollm.store.session_files.files import DamageReport, open_file
from ollm.store.session_files.reader import SessionReader
from ollm.store.session_files.store import MessagePage
from ollm.store.session_traces import InputHistoryFile, SessionDirectories
from tests.covers import covers
from tests.sizes import size
from tests.store.sessions.support import AT, Home, call, said

HOLDER = """
import sys, signal, threading
from pathlib import Path
from ollm.domain.clock import now
from ollm.store.lease import Lease
lease = Lease(Path(sys.argv[1]))
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
        Lease(tmp_path).acquire()


def test_the_lock_of_a_killed_owner_is_free(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()

        Lease(tmp_path).acquire("mine")

    owner = Lease(tmp_path).read_owner()
    assert owner is not None
    assert (owner.pid, owner.session_id) == (os.getpid(), "mine")


def test_an_owner_that_is_asked_gives_way(tmp_path: Path) -> None:
    with holder(tmp_path) as other:
        lease = Lease(tmp_path)
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
    lease = Lease(Path(line.strip()))
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
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        lease = Lease(tmp_path, "daemon")
        lease.acquire()
        asking = Lease(tmp_path)
        owner = asking.find_other_owner()
        assert owner is not None
        assert owner.is_daemon
        assert owner.describe() == f"the ollm daemon (process {os.getpid()}, started just now)"
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
    lease, other = Lease(tmp_path / "deep/er"), Lease(tmp_path / "deep/er")
    lease.acquire("a session with a long name " * 9)
    other.request.write_text("close")
    lease.acquire("short")
    owner = other.read_owner()

    assert owner is not None
    assert (owner.session_id, owner.holder, bool(owner.start)) == ("short", "", True)
    assert not other.request.exists(), "what was asked before is over"
    assert lease.path.stat().st_mode & 0o777 == 0o600
    assert lease.path.parent.stat().st_mode & 0o777 == 0o700
    lease.release()
    assert (lease.held, lease.path.exists(), other.read_owner()) == (False, False, None)
    assert not lease.ask_owner_to_close()
    assert not lease.is_asked_to_close(idle=True)


def test_an_owner_that_cannot_be_reached_is_not_asked(tmp_path: Path) -> None:
    lease, asking = Lease(tmp_path), Lease(tmp_path)
    lease.acquire("abc")
    owner = asking.read_owner()
    assert owner is not None
    for changed in ({"host": "elsewhere"}, {"start": "1"}, {"pid": 2**22 + 1}):
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
    assert (found.pid, found.since, found.session_id) == (0, "", "")
    lease.release()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lease.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"Cannot open .*lease\.lock"):
        Lease(tmp_path).acquire()


def count_open_files(folder: Path) -> int:
    """Files below the folder alone: others in this process may open and close theirs meanwhile."""
    targets = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            targets.append(str(entry.readlink()))
    return sum(target.startswith(f"{folder}/") for target in targets)


def hold_busy_lease(folder: Path) -> None:
    first, second = Lease(folder), Lease(folder)
    first.acquire("s")
    with contextlib.suppress(OllmError):
        second.acquire()
    second.find_other_owner()
    first.release()
    first.find_other_owner()


def read_odd_files(folder: Path) -> None:
    if not (folder / "pipe").exists():
        os.mkfifo(folder / "pipe")
    assert open_file(folder / "pipe", DamageReport()) is None
    (folder / "plain").write_bytes(b"\xff\xfe{\0")
    with contextlib.closing(SessionReader(folder / "plain", None)) as reader:
        assert reader.foreign


def keep_contents(folder: Path) -> None:
    objects = FileObjects(folder / "objects")
    with objects.hold_lock():
        digest = objects.put(b"content")
        objects.sync_object(digest)
        objects.append_line("s", b"line")
    objects.read(digest)
    objects.remove_others(set())


def use_databases(folder: Path) -> None:
    database = Database(folder / "memory.db", WORKSPACE_MIGRATIONS)
    database.connect()
    database.close()
    with sqlite3.connect(folder / "newer.db") as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    with contextlib.suppress(OllmError):
        Database(folder / "newer.db", WORKSPACE_MIGRATIONS).connect()


def write_sessions(folder: Path) -> None:
    home = Home(folder)
    session_id = f"aaaa0000-0000-4000-8000-{len(list(folder.glob('sessions/*.json'))):012}"
    writer = home.files.create({"sessionId": session_id, "startTime": AT, "lastActivity": AT, "metadata": {}})
    for number in range(1, 5):
        writer.record_message(AT, msgspec.structs.replace(said("x"), id=number), 1)
        writer.record_call(AT, msgspec.to_builtins(call(f"c{number}", result="y", message_id=number)), 1)
        writer.fold()
    home.document(session_id).unlink()
    writer.check_files()
    home.files.read_open(writer, MessagePage(before=None, limit=2))
    with contextlib.suppress(OllmError):
        home.files.open(session_id)
    writer.close()
    other, _ = home.files.open(session_id)
    other.abandon()
    home.files.read(session_id)
    index = home.index()
    index.list_sessions()
    index.refresh_text()
    index.close()


@pytest.mark.parametrize("work", [hold_busy_lease, read_odd_files, keep_contents, use_databases, write_sessions])
def test_no_file_of_theirs_stays_open(tmp_path: Path, work: Callable[[Path], None]) -> None:
    for _ in range(3):
        work(tmp_path)
    assert count_open_files(tmp_path) == 0


ONE = "aaaa0000-0000-4000-8000-000000000001"

TWO = "aaaa0000-0000-4000-8000-000000000002"


def test_a_sessions_directories_go_and_others_stay(tmp_path: Path) -> None:
    parents = [tmp_path / "snapshots", tmp_path / "undo", tmp_path / "missing"]
    for parent in parents[:2]:
        for session_id in (ONE, TWO):
            (parent / session_id / "deep").mkdir(parents=True)
            (parent / session_id / "deep" / "file").write_text("x")

    SessionDirectories(parents).erase(ONE)

    assert sorted(path.name for parent in parents[:2] for path in parent.iterdir()) == [TWO, TWO]


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "file").write_text("x")
    (tmp_path / "undo").mkdir()
    (tmp_path / "undo" / ONE).symlink_to(target)

    SessionDirectories([tmp_path / "undo"]).erase(ONE)

    assert list((tmp_path / "undo").iterdir()) == []
    assert (target / "file").exists()


@pytest.mark.parametrize("name", ["..", "", "../undo"])
def test_what_is_no_id_removes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "undo").mkdir()
    with pytest.raises(NotFoundError):
        SessionDirectories([tmp_path / "undo"]).erase(name)
    assert (tmp_path / "undo").is_dir()


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / ONE).write_text("x")

    from ollm.domain.errors import StorageError

    with pytest.raises(StorageError) as caught:
        SessionDirectories([tmp_path]).erase(ONE)
    assert caught.value.message == f"Cannot remove {tmp_path / ONE}: Not a directory."


def test_typed_lines_of_the_session_go_and_all_others_stay_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_bytes(b'{"s":"%s","t":"a"}\r\n{"s":"%s"}\nnonsense\xff' % (TWO.encode(), ONE.encode()))

    InputHistoryFile(path).erase(ONE)

    assert path.read_bytes() == b'{"s":"%s","t":"a"}\r\nnonsense\xff' % TWO.encode()
    before = path.stat().st_ino
    InputHistoryFile(path).erase(ONE)
    assert path.stat().st_ino == before
    InputHistoryFile(tmp_path / "missing").erase(ONE)
    assert not (tmp_path / "missing").exists()
