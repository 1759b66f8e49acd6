"""The index: derived, quick, never in the way, and every word found literally."""

import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ollm.domain.errors import StorageError
from ollm.domain.messages import TextPart
from ollm.store.session_files.journal import encode_json
from ollm.store.session_index import database, erasing, stamps
from ollm.store.session_index import index as indexing
from ollm.store.session_index import search as searching
from ollm.store.session_index.index import SessionIndex
from ollm.store.session_index.search import MAX_RANKED_HITS, SearchFilters, search_sessions
from ollm.store.session_index.vocabulary import MAX_TERMS
from tests.covers import covers
from tests.store.sessions.support import Home, call, run, said


def found(home: Home, text: str, **filters: str) -> list[str]:
    return [hit["snippet"] for hit in search_sessions(home.index(), text, SearchFilters(**filters)).hits]


def test_only_what_changed_is_read_again(tmp_path):
    home = Home(tmp_path)
    session_id = home.recorded("one", "two")
    index = home.index()
    assert index.list_sessions()[0]["messageCount"] == 2
    home.sessions.chmod(0o700)
    rows = index._load_rows()
    assert index.list_sessions()[0]["messageCount"] == 2
    assert index._load_rows() == rows

    async def more() -> None:
        service = home.service()
        await service.open_session(session_id)
        for number in range(3):
            await service.record_message(session_id, said(f"new {number}"))
        assert home.index().list_sessions()[0]["messageCount"] == 5
        assert len(search_sessions(home.index(), "new").hits) == 3
        read = home.index()._load_rows()[session_id]["text_read"]
        assert read == home.journal(session_id).stat().st_size
        await service.record_tool_call(session_id, call("c9"))
        assert search_sessions(home.index(), "needle").hits == []
        await service.record_tool_call(session_id, call("c9", result="needle in a result"))
        assert len(search_sessions(home.index(), "needle").hits) == 1
        await service.record_partial(session_id, [TextPart(text="half an ans")])
        assert len(search_sessions(home.index(), "ans").hits) == 1
        await service.record_message(session_id, said("half an answer", "assistant"))
        assert len(search_sessions(home.index(), "half").hits) == 1
        await service.close_session(session_id)
        assert len(search_sessions(home.index(), "half").hits) == 1
        assert home.index().list_sessions()[0]["messageCount"] == 6

    run(more)


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.unlink(),
        lambda path: os.truncate(path, 5000),
        lambda path: path.write_bytes(b"SQLite format 3\0" + b"\xff" * 9000),
        lambda path: path.write_text("nonsense"),
        lambda path: path.write_bytes(b""),
    ],
)
def test_a_missing_or_broken_index_is_built_anew(tmp_path, harm):
    home = Home(tmp_path)
    home.recorded("a needle here")
    assert len(found(home, "needle")) == 1
    harm(tmp_path / "index.db")
    assert len(home.index().list_sessions()) == 1
    assert len(found(home, "needle")) == 1
    index = home.index()
    index.list_sessions()
    assert index.in_file


def test_an_index_of_a_newer_version_is_left_alone(tmp_path):
    home = Home(tmp_path)
    home.recorded("a needle here")
    home.index().list_sessions()
    connection = sqlite3.connect(tmp_path / "index.db")
    connection.execute(f"PRAGMA user_version = {database.VERSION + 1}")
    connection.close()
    before = (tmp_path / "index.db").read_bytes()
    assert len(home.index().list_sessions()) == 1
    assert len(found(home, "needle")) == 1
    assert (tmp_path / "index.db").read_bytes() == before


@pytest.mark.parametrize("mode", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_locked_index_stops_nobody(tmp_path, mode, monkeypatch):
    monkeypatch.setattr(database, "BUSY_MILLISECONDS", 100)
    home = Home(tmp_path)
    home.recorded("a needle here")
    home.index().list_sessions()
    other = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
    other.execute(f"BEGIN {mode}")
    home.recorded("another needle")
    assert len(home.index().list_sessions()) == 2
    assert len(found(home, "needle")) == 2
    other.close()
    assert len(home.index().list_sessions()) == 2


def test_an_index_that_cannot_be_written_is_worked_out_in_memory(tmp_path):
    home = Home(tmp_path)
    home.recorded("a needle here")
    (tmp_path / "index.db").unlink(missing_ok=True)
    (tmp_path / "index.db").mkdir()
    assert len(home.index().list_sessions()) == 1
    assert len(found(home, "needle")) == 1


def test_several_processes_index_at_once(tmp_path):
    home = Home(tmp_path)
    for number in range(20):
        home.recorded(f"needle {number}")
    (tmp_path / "index.db").unlink(missing_ok=True)
    failed: list[BaseException] = []

    def look() -> None:
        try:
            index = SessionIndex(tmp_path / "index.db", (home.sessions,))
            assert len(search_sessions(index, "needle", limit=50).hits) == 20
            index.close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@covers("H473", "H622")
@pytest.mark.parametrize(
    ("text", "typed", "hit"),
    [
        ("see src/ollm/store/index.py", "ollm/store", "«ollm/store»"),
        ("call getUserName() now", "getUser", "«getUser»Name"),
        ("snake_case_name", "case", "snake_«case»_name"),
        ("日本語のテキスト", "本語", "日«本語»の"),
        ("日本語のテキスト", "語の", "日本«語の»テ"),
        ("ひらがなとカタカナ", "がな", "ひら«がな»と"),
        ("configuration", "config", "«config»uration"),
        ("Élan vital", "elan", "«Élan»"),
        ("a AND b", "AND", "«AND»"),
        ("say NEAR( it", "NEAR(", "«NEAR(»"),
        ('a "quoted" word', '"quoted"', '«"quoted"»'),
        ("x && y", "&&", "«&&»"),
        ("5 * 3", "*", "«*»"),
        ("one two three", "three one", "«one» two «three»"),
        ("C++ code", "C++", "«C++»"),
        ("naïve col:umn", "col:umn", "«col:umn»"),
        ("see src/store/indexing.py", "src/store/ind", "«src/store/ind»exing"),
        ("left \u2192 right", "\u2192", "«\u2192»"),
        ("branch \ue0b0 main", "\ue0b0", "«\ue0b0»"),
        ("if (a <=> b)", "<=>", "«<=>»"),
    ],
)
def test_what_is_typed_is_found_as_it_stands(tmp_path, text, typed, hit):
    home = Home(tmp_path)
    home.recorded("something else", text, "nothing of the kind")
    (snippet,) = found(home, typed)
    assert hit in snippet


@pytest.mark.parametrize(
    "typed",
    ["", " ", '"', "*", "AND", "NOT", "NEAR(", "x" * 10_000, "a " * 5_000, "^", "-", "{", "\0", "col:", "(", "\ud800"],
)
def test_nothing_that_is_typed_breaks_a_search(tmp_path, typed):
    home = Home(tmp_path)
    home.recorded("plain text")
    assert found(home, typed) == []


def test_filters_narrow_a_search(tmp_path):
    home = Home(tmp_path)
    here, there = home.recorded("needle", workspace="/here"), home.recorded("needle", workspace="/there")
    hits = search_sessions(home.index(), "needle", SearchFilters(workspace="/here")).hits
    assert [hit["sessionId"] for hit in hits] == [here]
    assert found(home, "needle", role="assistant") == []
    assert found(home, "needle", model="other") == []
    assert len(found(home, "needle", model="m", role="user", since="2026-01-01T00:00:00.000Z")) == 2
    assert found(home, "needle", since="2027-01-01T00:00:00.000Z") == []
    assert there


def many(home: Home, texts: list[str]) -> str:
    """A closed session that says these, put on disk in one go."""
    session_id = home.recorded("start")
    path = home.document(session_id)
    head, rest = path.read_bytes().split(b"\n", 1)
    line = '{"role":"user","parts":[{"type":"text","text":"%s"}],"timestamp":"2026-01-27T10:00:00.000Z","id":%d}'
    lines = ",\n".join(line % (text, number) for number, text in enumerate(texts, start=1))
    path.write_bytes(head + b"\n" + lines.encode() + b"\n" + rest[rest.index(b'],"toolCalls"') :])
    return session_id


def test_the_beginning_of_very_many_words_finds_the_newest(tmp_path):
    home = Home(tmp_path)
    many(home, [f"say begin{number:04}" for number in range(MAX_TERMS + 50)])
    result = search_sessions(home.index(), "begin", limit=2)
    assert [hit["snippet"] for hit in result.hits] == ["say «begin»0249", "say «begin»0248"]
    assert len(search_sessions(home.index(), "say begin", limit=300).hits) == MAX_TERMS + 50
    assert [hit["snippet"] for hit in search_sessions(home.index(), "begin0007 say").hits] == ["«say» «begin0007»"]


def test_a_look_that_takes_too_long_is_broken_off_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "LOOK_SECONDS", 0)
    home = Home(tmp_path)
    many(home, ["(;" if number == 5 else "();" for number in range(searching.MIN_LOOKED_TEXTS + 100)])
    assert search_sessions(home.index(), "();").complete
    result = search_sessions(home.index(), "(;")
    assert (result.hits, result.complete) == ([], False)


def test_a_word_beside_a_common_one_is_ranked_by_the_rare_one(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "MAX_RANKED_HITS", 50)
    home = Home(tmp_path)
    many(home, ["hay"] * 60 + ["hay needle", "hay needle needle needle", "needle"])
    result = search_sessions(home.index(), "hay needle")
    assert result.ranked
    assert [hit["number"] for hit in result.hits] == [62, 61]
    assert search_sessions(home.index(), "hay needle", SearchFilters(role="tool")).hits == []
    assert [hit["number"] for hit in search_sessions(home.index(), "needle", SearchFilters(role="user")).hits] == [
        62,
        63,
        61,
    ]


def test_with_very_many_sessions_filters_still_narrow(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "MAX_SESSIONS", 1)
    home = Home(tmp_path)
    for place in ("/here", "/here", "/there"):
        home.recorded("needle", workspace=place)
    assert len(found(home, "needle", workspace="/here")) == 2
    assert len(found(home, "needle", workspace="/there")) == 1
    assert found(home, "needle", workspace="/nowhere") == []


@pytest.mark.parametrize("listed", [True, False])
def test_a_large_session_is_read_on_by_the_next_search_from_where_the_last_one_stopped(tmp_path, monkeypatch, listed):
    monkeypatch.setattr(stamps, "LARGE_BYTES", 100)
    monkeypatch.setattr(indexing, "LARGE_SECONDS", 0)
    monkeypatch.setattr(indexing, "MIN_WORK_SECONDS", 0)
    home = Home(tmp_path)
    session_id = many(home, ["hay", "needle"])
    data = home.document(session_id).read_bytes()
    calls = b'],"toolCalls":[\n' + encode_json(call("c1", result="haystack")) + b"\n]}\n"
    home.document(session_id).write_bytes(data.replace(b'],"toolCalls":[\n]}\n', calls))
    index = home.index()
    if listed:
        assert index.list_sessions()[0]["messageCount"] == 2
    assert search_sessions(index, "needle").hits == []
    assert index.behind == {session_id}
    monkeypatch.setattr(indexing, "LARGE_SECONDS", 5)
    monkeypatch.setattr("ollm.store.session_index.entries.read_session", None)  # nothing is read from the start again
    assert [hit["number"] for hit in search_sessions(index, "needle").hits] == [2]
    assert [hit["role"] for hit in search_sessions(index, "haystack").hits] == ["tool"]
    assert index.behind == set()
    assert [hit["number"] for hit in search_sessions(home.index(), "hay").hits] == [1, 1]


def test_a_time_nobody_understands_is_kept_as_it_stands(tmp_path):
    home = Home(tmp_path)
    path = home.document(many(home, ["needle"]))
    path.write_bytes(path.read_bytes().replace(b'"timestamp":"2026-01-27T10:00:00.000Z"', b'"timestamp":"yesterday"'))
    assert [hit["timestamp"] for hit in search_sessions(home.index(), "needle").hits] == ["yesterday"]


def test_too_many_hits_come_newest_first_and_that_is_said(tmp_path):
    home = Home(tmp_path)
    many(home, ["hay"] * (MAX_RANKED_HITS + 9))
    result = search_sessions(home.index(), "hay", limit=3)
    assert not result.ranked
    assert [hit["number"] for hit in result.hits] == [MAX_RANKED_HITS + 9, MAX_RANKED_HITS + 8, MAX_RANKED_HITS + 7]


@pytest.mark.parametrize(
    "text",
    [
        "the quick brown fox jumps over the lazy dog again and again. ",
        "日本語の文章は単語の間に空白がない。",
        "def f(x): return x.y[z] + 1\n",
    ],
)
def test_the_index_is_at_most_twice_the_text(tmp_path, text):
    home = Home(tmp_path)
    words = [f"{text * 40} {number} {number * 7919:x}" for number in range(150)]
    home.recorded(*words)
    index = home.index()
    search_sessions(index, "fox")
    index.close()
    said_bytes = sum(len(word.encode()) for word in words)
    assert (tmp_path / "index.db").stat().st_size <= 2 * said_bytes


def test_the_index_of_short_messages_is_at_most_twice_the_text(tmp_path):
    home = Home(tmp_path)
    chance = random.Random(1)
    texts = [" ".join(f"word{chance.randrange(3000)}" for _ in range(chance.randrange(4, 16))) for _ in range(8000)]
    many(home, texts)
    index = home.index()
    search_sessions(index, "fox")
    index.close()
    assert (tmp_path / "index.db").stat().st_size <= 2 * sum(map(len, texts))


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


def test_a_deletion_that_cannot_reach_the_index_says_so(tmp_path):
    home = Home(tmp_path)
    gone = home.recorded("text")
    (tmp_path / "index.db").mkdir()
    with pytest.raises(StorageError, match=r"some data remains.*index\.db"):
        home.library().delete(gone)
    assert not list(home.sessions.iterdir())


def test_a_locked_index_is_done_without_when_something_is_deleted(tmp_path, monkeypatch):
    home = Home(tmp_path)
    gone = home.recorded("text zqxmarkerzqx")
    search_sessions(home.index(), "text")
    monkeypatch.setattr(indexing, "ERASE_MILLISECONDS", 10)
    holder = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    home.library().delete(gone)
    holder.close()
    assert home.index().list_sessions() == []
    assert b"zqxmarkerzqx" not in bytes_under(tmp_path)
