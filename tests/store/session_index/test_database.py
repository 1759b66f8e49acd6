"""The index: its database, stamps, and erasing."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ollm.domain.errors import StorageError
from ollm.store.database import INDEX_MIGRATIONS
from ollm.store.session_index.index import SessionIndex
from ollm.store.session_index.search import SearchFilters, search_sessions
from ollm.store.session_index.stamps import read_stamp, read_stamps
from tests.covers import covers
from tests.store.sessions.support import Home, many


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def add_session(connection: sqlite3.Connection, name: str = "one") -> None:
    connection.execute("INSERT INTO sessions(session_id, stamp) VALUES (?, '')", (name,))


def count_sessions(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sessions").fetchone()[0])


def test_an_older_index_is_built_anew(tmp_path: Path) -> None:
    index = SessionIndex(tmp_path / "index.db", tmp_path)
    add_session(index.connection)
    index.connection.execute(f"PRAGMA user_version = {len(INDEX_MIGRATIONS) - 1}")
    index.close()

    again = SessionIndex(tmp_path / "index.db", tmp_path)
    assert (again.in_file, count_sessions(again.connection)) == (True, 0)


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

    index = SessionIndex(path, tmp_path)

    assert not index.in_file
    assert "sessions" in tables(index.connection)
    assert not (tmp_path / "elsewhere").exists()


ONE = "aaaa0000-0000-4000-8000-000000000001"


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / f"{ONE}.json").symlink_to("/etc/passwd")

    assert read_stamps(tmp_path)[0][ONE].size == len("/etc/passwd")
    stamp = read_stamp(tmp_path, ONE)
    assert stamp is not None
    assert stamp.size == os.lstat(tmp_path / f"{ONE}.json").st_size


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StorageError, match="Not a directory"):
        read_stamps(tmp_path / "file")


def found(home: Home, text: str, **filters: str) -> list[str]:
    return [hit["snippet"] for hit in search_sessions(home.index(), text, SearchFilters(**filters)).hits]


@covers("H529", "H532")
def test_a_deleted_session_leaves_no_byte_of_what_was_said(tmp_path):
    home = Home(tmp_path)
    marker = "zqxmarkerzqx"
    keep, gone = home.recorded("stays here"), home.recorded(f"a {marker} inside", f"again {marker}")
    assert len(found(home, marker)) == 2
    for name in ("context-snapshots", "undo"):
        (tmp_path / name / gone).mkdir(parents=True)
        (tmp_path / name / gone / "copy").write_text(marker)
    (home.sessions / f"{gone}.json.damaged-1").write_text(marker)
    (tmp_path / "trash").mkdir()
    (tmp_path / "trash" / f"{gone}.json").write_text(marker)
    (tmp_path / "session-data").mkdir()
    (tmp_path / "session-data" / f"{gone}.json").write_text(marker)
    (tmp_path / "input-history").write_text(json.dumps({"sessionId": gone, "text": marker}) + '\n{"text":"other"}\n')
    (tmp_path / "context-snapshots" / "snapshot-map.json").write_text(json.dumps({f"{marker}": gone, "b": keep}))
    code = "from ollm.app.process import ProcessScope; import sys; ProcessScope().library.delete(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", code, gone], env={**os.environ, "OLLM_HOME": str(tmp_path)}, check=True, timeout=60
    )
    left = [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and (marker.encode() in path.read_bytes() or gone in path.name)
    ]
    assert left == []
    assert (tmp_path / "input-history").read_text() == '{"text":"other"}\n'
    assert len(found(home, "stays")) == 1


def bytes_under(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())


def test_what_went_to_the_trash_leaves_no_byte_when_it_is_deleted_from_there(tmp_path):
    home = Home(tmp_path)
    marker = "zqxmarkerzqx"
    gone = home.recorded(f"a {marker} inside")
    many(home, [f"others say word{number}" for number in range(300)])
    assert len(found(home, marker)) == 1
    home.library().move_to_trash(gone)
    assert found(home, marker) == []
    home.library().delete(gone)
    assert marker.encode() not in bytes_under(tmp_path)
    assert len(found(home, "word7")) > 0


def test_deleting_all_sessions_needs_no_look_at_each_text(tmp_path):
    home = Home(tmp_path)
    ids = [home.recorded(f"text {number} zqxmarkerzqx") for number in range(5)]
    search_sessions(home.index(), "text")
    told = []
    assert home.library().delete_many(ids, lambda done, total: told.append((done, total))) == []
    assert told[-1] == (5, 5)
    assert b"zqxmarkerzqx" not in bytes_under(tmp_path)
    assert home.index().list_sessions() == []
