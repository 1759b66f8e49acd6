"""`index.db` itself: a broken or older one is replaced, a newer or locked one is left alone."""

import sqlite3
from pathlib import Path

import pytest

from ollm.store.session_index.database import (
    VERSION,
    connect,
    connect_in_memory,
    is_broken,
    remove_index,
    run_transaction,
)


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def add_session(connection: sqlite3.Connection, name: str = "one") -> None:
    connection.execute("INSERT INTO sessions(session_id, stamp) VALUES (?, '')", (name,))


def count_sessions(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sessions").fetchone()[0])


def test_a_new_index_is_private_has_its_tables_and_deletes_for_good(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "index.db"
    connection, in_file = connect(path)

    assert in_file
    assert {"sessions", "entries", "words"} <= tables(connection)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == VERSION
    assert connection.execute("PRAGMA secure_delete").fetchone()[0] == 1
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] in ("truncate", "delete")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_what_was_written_is_there_at_the_next_connection(tmp_path: Path) -> None:
    connection, _ = connect(tmp_path / "index.db")
    add_session(connection)
    connection.close()

    again, in_file = connect(tmp_path / "index.db")
    assert (in_file, count_sessions(again)) == (True, 1)


def test_an_older_index_is_built_anew(tmp_path: Path) -> None:
    connection, _ = connect(tmp_path / "index.db")
    add_session(connection)
    connection.execute(f"PRAGMA user_version = {VERSION - 1}")
    connection.close()

    again, in_file = connect(tmp_path / "index.db")
    assert (in_file, count_sessions(again)) == (True, 0)


def test_a_newer_index_is_left_alone(tmp_path: Path) -> None:
    connection, _ = connect(tmp_path / "index.db")
    add_session(connection)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    before = (tmp_path / "index.db").read_bytes()

    apart, in_file = connect(tmp_path / "index.db")
    assert (in_file, count_sessions(apart)) == (False, 0)
    assert (tmp_path / "index.db").read_bytes() == before


def test_a_broken_index_is_replaced_with_all_its_files(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    path.write_bytes(b"nonsense" * 1000)

    connection, in_file = connect(path)
    assert in_file
    add_session(connection)
    assert count_sessions(connection) == 1


@pytest.mark.parametrize("what", ["link", "directory", "unreachable"])
def test_where_no_file_can_be_the_index_is_in_memory(tmp_path: Path, what: str) -> None:
    path = tmp_path / "index.db"
    if what == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif what == "directory":
        path.mkdir()
    else:
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "index.db"

    connection, in_file = connect(path)

    assert not in_file
    assert "sessions" in tables(connection)
    assert not (tmp_path / "elsewhere").exists()


def test_an_index_in_memory_is_empty_and_its_own() -> None:
    one, other = connect_in_memory(), connect_in_memory()
    add_session(one)

    assert (count_sessions(one), count_sessions(other)) == (1, 0)


def test_a_transaction_is_done_whole_or_not_at_all() -> None:
    connection = connect_in_memory()

    def fail() -> None:
        add_session(connection)
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_transaction(connection, fail)
    assert (count_sessions(connection), connection.in_transaction) == (0, False)

    def work() -> str:
        add_session(connection)
        assert connection.in_transaction
        return "done"

    assert run_transaction(connection, work) == "done"
    assert (count_sessions(connection), connection.in_transaction) == (1, False)


@pytest.mark.parametrize(
    ("error", "broken"),
    [
        (sqlite3.DatabaseError("file is not a database"), True),
        (sqlite3.IntegrityError("constraint"), True),
        (sqlite3.OperationalError("database is locked"), False),
        (sqlite3.InterfaceError("odd"), False),
    ],
)
def test_a_broken_file_is_told_from_a_busy_one(error: sqlite3.Error, broken: bool) -> None:
    assert is_broken(error) is broken


def test_removing_takes_every_file_of_the_index_and_no_other(tmp_path: Path) -> None:
    for end in ("", "-journal", "-wal", "-shm", ".bak"):
        (tmp_path / f"index.db{end}").write_text("x")

    remove_index(tmp_path / "index.db")
    remove_index(tmp_path / "index.db")

    assert [path.name for path in tmp_path.iterdir()] == ["index.db.bak"]
