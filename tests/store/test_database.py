"""The shared SQLite file: migrations once, newer schemas refused, faults told by the file's name."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from ollm.domain.errors import BusyError, StorageError
from ollm.store.database import WORKSPACE_MIGRATIONS, Database, is_disk_full, read_schema_version

MIGRATE = """
import sys
from pathlib import Path
from ollm.store.database import Database
from ollm.store.database import WORKSPACE_MIGRATIONS
Database(Path(sys.argv[1]), WORKSPACE_MIGRATIONS).connect()
"""


def test_many_processes_migrate_one_new_file_once(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "memory.db"

    racers = [subprocess.Popen([sys.executable, "-c", MIGRATE, str(path)]) for _ in range(4)]

    assert [racer.wait() for racer in racers] == [0] * 4
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_newer_schema_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")

    with pytest.raises(StorageError, match=r"memory\.db was written by a newer ollm .*Upgrade"):
        Database(path, WORKSPACE_MIGRATIONS).connect()


def test_a_truncated_file_is_told_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    Database(path, WORKSPACE_MIGRATIONS).connect()
    path.write_bytes(path.read_bytes()[:5000])

    with pytest.raises(StorageError, match=r"memory\.db: .*move it away"):
        Database(path, WORKSPACE_MIGRATIONS).connect().execute("SELECT 1")


def test_an_older_schema_is_brought_forward_with_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    old = Database(path, WORKSPACE_MIGRATIONS[:1])
    with old.begin_write() as connection:
        connection.execute("INSERT INTO memory VALUES ('key', '1', 0)")
    old.close()

    rows = Database(path, WORKSPACE_MIGRATIONS).connect().execute("SELECT key FROM memory").fetchall()

    assert [row["key"] for row in rows] == ["key"]


def test_one_file_is_all_there_is_and_deleted_words_are_gone_from_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    before = Database(path, WORKSPACE_MIGRATIONS).connect()
    before.execute("PRAGMA journal_mode = WAL")
    before.execute("CREATE TABLE said (words TEXT)")
    before.close()

    connection = Database(path, WORKSPACE_MIGRATIONS).connect()
    connection.execute("INSERT INTO said VALUES ('the heron flies at dawn')")
    assert sorted(found.name for found in tmp_path.iterdir() if found.stat().st_size) == ["memory.db"]
    assert b"heron" in path.read_bytes()
    connection.execute("DELETE FROM said")
    connection.close()

    assert b"heron" not in path.read_bytes()


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path / "memory.db", WORKSPACE_MIGRATIONS)

    with pytest.raises(StorageError), database.begin_write() as connection:
        connection.execute("INSERT INTO memory VALUES ('key', '1', 0)")
        connection.execute("INSERT INTO nowhere VALUES (1)")

    assert not database.connect().execute("SELECT * FROM memory").fetchall()


def test_a_locked_file_is_waited_for_once(tmp_path: Path) -> None:
    """A turn asks several times: it must not wait as often."""
    path = tmp_path / "memory.db"
    Database(path, WORKSPACE_MIGRATIONS).connect().close()
    holder = sqlite3.connect(path)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BusyError, match="locked by another process"):
        Database(path, WORKSPACE_MIGRATIONS, busy_seconds=0.1).connect()
    begin = time.monotonic()
    with pytest.raises(BusyError):
        Database(path, WORKSPACE_MIGRATIONS, busy_seconds=60).connect()
    assert time.monotonic() - begin < 30
    holder.close()
    Database(path, WORKSPACE_MIGRATIONS).connect().close()


def test_the_fault_is_told_where_sqlite_has_rolled_back_by_itself(tmp_path: Path) -> None:
    """As it does on a full disk; to roll back a second time is an error of its own."""
    database = Database(tmp_path / "memory.db", WORKSPACE_MIGRATIONS)
    with pytest.raises(StorageError, match="disk is full"), database.begin_write() as connection:
        connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("database or disk is full")
    with database.begin_write() as connection:
        connection.execute("CREATE TABLE filler (text TEXT)")
    database.close()


def test_the_version_of_a_file_is_told_without_opening_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 16909060")  # 1, 2, 3, 4 byte by byte
    assert read_schema_version(path) == 16909060
    path.write_bytes(b"SQLite format 4\0" + path.read_bytes()[16:])
    assert read_schema_version(path) == 0
    os.mkfifo(tmp_path / "pipe")
    assert [read_schema_version(tmp_path / name) for name in ("nothing", "pipe", "")] == [0, 0, 0]


@pytest.mark.parametrize(
    ("blocks", "room", "full"), [(9, 65_535, True), (9, 65_536, False), (0, 0, False), (1, 0, True)]
)
def test_a_disk_is_full_when_hardly_anything_can_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, blocks: int, room: int, full: bool
) -> None:
    told = SimpleNamespace(f_blocks=blocks, f_bavail=room, f_frsize=1)
    monkeypatch.setattr(os, "statvfs", lambda path: told)
    assert is_disk_full(tmp_path) is full
    fault = Database(tmp_path / "memory.db", WORKSPACE_MIGRATIONS).find_fault()
    assert fault == ("is on a full disk" if full else "")
    monkeypatch.undo()
    assert is_disk_full(tmp_path / "nowhere") is False


def test_why_a_file_cannot_be_written_is_said_and_it_is_waited_for_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ollm.store.database.LOCK_PATIENCE_SECONDS", 0.05)
    path = tmp_path / "memory.db"
    database = Database(path, WORKSPACE_MIGRATIONS, busy_seconds=3.5)
    assert database.find_fault() == ""
    assert database.connect().execute("PRAGMA busy_timeout").fetchone()[0] == 3500
    database.close()
    holder = sqlite3.connect(path)
    holder.execute("BEGIN EXCLUSIVE")
    assert database.find_fault() == "is locked by another program"
    holder.close()
    assert database.find_fault() == ""
    assert database.connect().execute("PRAGMA busy_timeout").fetchone()[0] == 3500
    database.connect().execute("PRAGMA user_version = 99")
    database.close()
    assert database.find_fault() == "was written by a newer ollm"


def make_damaged(path: Path, rows: int) -> int:
    """With a page in the middle of it that no reader can use; gives its size."""
    with closing(Database(path, WORKSPACE_MIGRATIONS).connect()) as connection:
        connection.execute("CREATE TABLE filler (text TEXT)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO filler VALUES (?)", [("x" * 900,)] * rows)
        connection.execute("COMMIT")
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 8192 * 4096)
        file.write(b"\xff" * 64)
    return size


def test_a_small_file_is_looked_through_and_a_large_one_put_aside_when_damage_is_met(tmp_path: Path) -> None:
    reports: list[str] = []
    small, large = tmp_path / "small.db", tmp_path / "large.db"
    assert make_damaged(small, 900) <= 1 << 20 < make_damaged(large, 1500) < 2 << 20

    Database(small, WORKSPACE_MIGRATIONS, report=reports.append).connect().close()
    assert [report.startswith(f"{small} is damaged: it was kept as small.db.damaged-") for report in reports] == [True]
    with pytest.raises(StorageError, match="The file is damaged"):
        make_damaged(tmp_path / "kept.db", 900)
        Database(tmp_path / "kept.db", WORKSPACE_MIGRATIONS).connect()
    assert (tmp_path / "kept.db").exists()

    database = Database(large, WORKSPACE_MIGRATIONS, report=reports.append)
    with pytest.raises(StorageError):
        database.fetch("SELECT sum(length(text)) FROM filler")
    assert len(list(tmp_path.glob("large.db.damaged-*"))) == 1
    assert len(reports) == 2
    with database.begin_write() as connection:
        connection.execute("INSERT INTO memory VALUES ('key', '1', 0)")
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'filler'").fetchone()[0] == 0
    assert large.is_file()
    database.close()


@pytest.mark.parametrize("kind", ["trigger", "view", "table", "directory", "pipe"])
def test_what_we_never_make_is_refused_or_put_aside(tmp_path: Path, kind: str) -> None:
    path, reports = tmp_path / "memory.db", list[str]()
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        with closing(Database(path, WORKSPACE_MIGRATIONS).connect()) as connection:
            made = {"trigger": "TRIGGER t AFTER INSERT ON memory BEGIN SELECT 1; END", "view": "VIEW t AS SELECT 1"}
            connection.execute(f"CREATE {made[kind]}" if kind in made else "DROP TABLE memory")
    database = Database(path, WORKSPACE_MIGRATIONS, report=reports.append)
    if kind in ("trigger", "view"):
        with pytest.raises(StorageError, match=r"has a trigger or view \('t'\), which ollm never makes"):
            database.connect()
        assert reports == []
    else:
        database.connect().execute("SELECT * FROM memory")
        assert len(reports) == len(list(tmp_path.glob("memory.db.damaged-*"))) == 1


def test_a_fault_of_the_file_and_one_of_its_use_are_told_apart(tmp_path: Path) -> None:
    database = Database(tmp_path / "memory.db", WORKSPACE_MIGRATIONS, report=pytest.fail)
    with pytest.raises(StorageError, match="Check the disk space"), database.begin_write() as connection:
        connection.execute("SELECT * FROM nowhere")
    with database.begin_write() as connection, database.begin_write() as inner:
        assert inner is connection
        connection.execute("INSERT INTO memory VALUES ('key', '1', 0)")
    with pytest.raises(StorageError, match="UNIQUE"), database.begin_write() as connection:
        connection.execute("INSERT INTO memory VALUES ('key', '1', 0)")
    assert database.connect().execute("SELECT count(*) FROM memory").fetchone()[0] == 1
    (tmp_path / "link.db").symlink_to(tmp_path / "memory.db")
    with pytest.raises(StorageError, match=r"Cannot use .*link\.db"):
        Database(tmp_path / "link.db", WORKSPACE_MIGRATIONS).connect()
    database.close()
