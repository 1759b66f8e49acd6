"""The shared SQLite file: migrations once, newer schemas refused, faults told by the file's name."""

import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ollm.domain.errors import BusyError, StorageError
from ollm.store.database import Database
from ollm.store.migrations import WORKSPACE_MIGRATIONS

MIGRATE = """
import sys
from pathlib import Path
from ollm.store.database import Database
from ollm.store.migrations import WORKSPACE_MIGRATIONS
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
