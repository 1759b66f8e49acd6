"""Whatever the stores do, with success or without, no file stays open behind it."""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ollm.domain.clock import now
from ollm.domain.errors import OllmError
from ollm.store.database import WORKSPACE_MIGRATIONS, Database
from ollm.store.file_objects import FileObjects
from ollm.store.lease import Lease
from ollm.store.session_files import MessagePage
from ollm.store.session_files.files import DamageReport, open_file
from ollm.store.session_files.reader import SessionReader
from tests.store.sessions.support import AT, Home, call, said


def count_open_files(folder: Path) -> int:
    """Files below the folder alone: others in this process may open and close theirs meanwhile."""
    targets = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            targets.append(str(entry.readlink()))
    return sum(target.startswith(f"{folder}/") for target in targets)


def hold_busy_lease(folder: Path) -> None:
    first, second = Lease(folder, now), Lease(folder, now)
    first.acquire("s")
    with contextlib.suppress(OllmError):
        second.acquire()
    second.find_other_owner()
    first.release()
    first.find_other_owner()


def refuse_what_is_no_lease(folder: Path) -> None:
    (folder / "odd").mkdir(exist_ok=True)
    if not (folder / "odd" / "lease.lock").exists():
        os.mkfifo(folder / "odd" / "lease.lock")
    with contextlib.suppress(OllmError):
        Lease(folder / "odd", now).acquire()


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


@pytest.mark.parametrize(
    "work", [hold_busy_lease, refuse_what_is_no_lease, read_odd_files, keep_contents, use_databases, write_sessions]
)
def test_no_file_of_theirs_stays_open(tmp_path: Path, work: Callable[[Path], None]) -> None:
    for _ in range(3):
        work(tmp_path)
    assert count_open_files(tmp_path) == 0
