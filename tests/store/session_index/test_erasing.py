"""What was deleted leaves no byte in the index."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from ollm.store.session_index import erasing
from ollm.store.session_index.search import SearchFilters, search_sessions
from tests.covers import covers
from tests.store.sessions.support import Home


def found(home: Home, text: str, **filters: str) -> list[str]:
    return [hit["snippet"] for hit in search_sessions(home.index(), text, SearchFilters(**filters)).hits]


def many(home: Home, texts: list[str]) -> str:
    """A closed session that says these, put on disk in one go."""
    session_id = home.recorded("start")
    path = home.document(session_id)
    head, rest = path.read_bytes().split(b"\n", 1)
    line = '{"role":"user","parts":[{"type":"text","text":"%s"}],"timestamp":"2026-01-27T10:00:00.000Z","id":%d}'
    lines = ",\n".join(line % (text, number) for number, text in enumerate(texts, start=1))
    path.write_bytes(head + b"\n" + lines.encode() + b"\n" + rest[rest.index(b'],"toolCalls"') :])
    return session_id


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
    code = "from ollm.app import ProcessScope; import sys; ProcessScope().library.delete(sys.argv[1])"
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


def test_scrubbing_may_stop_at_any_time_and_the_next_deletion_ends_it(tmp_path, monkeypatch):
    home = Home(tmp_path)
    marker = "zqxmarkerzqx"
    gone, other = home.recorded(f"a {marker} inside"), home.recorded("short")
    chance = random.Random(2)
    for _ in range(6):
        many(home, [" ".join(f"w{chance.randrange(9000)}" for _ in range(20)) for _ in range(300)])
        search_sessions(home.index(), "short")
    monkeypatch.setattr(erasing, "STEP_PAGES", 1)
    assert home.library().delete_many([gone], seconds=0) == []
    assert home.library().delete_many([other]) == []
    assert marker.encode() not in bytes_under(tmp_path)
    assert len(home.index().list_sessions()) == 6


def test_deleting_all_sessions_needs_no_look_at_each_text(tmp_path):
    home = Home(tmp_path)
    ids = [home.recorded(f"text {number} zqxmarkerzqx") for number in range(5)]
    search_sessions(home.index(), "text")
    told = []
    assert home.library().delete_many(ids, lambda done, total: told.append((done, total))) == []
    assert told[-1] == (5, 5)
    assert b"zqxmarkerzqx" not in bytes_under(tmp_path)
    assert home.index().list_sessions() == []
