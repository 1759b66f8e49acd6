"""The index: derived, quick, never in the way, and every word found literally."""

import contextlib
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ollm.domain.errors import StorageError
from ollm.domain.messages import TextPart
from ollm.store.database import INDEX_MIGRATIONS
from ollm.store.session_files.journal import encode_json
from ollm.store.session_index import entries, stamps
from ollm.store.session_index import index as indexing
from ollm.store.session_index.entries import UNREAD_TITLE
from ollm.store.session_index.index import SessionIndex
from ollm.store.session_index.search import SearchFilters, search_sessions
from ollm.store.session_index.session_texts import SessionTexts
from tests.store.sessions.support import Home, call, many, run, said


def found(home: Home, text: str, **filters: str) -> list[str]:
    return [hit["snippet"] for hit in search_sessions(home.index(), text, SearchFilters(**filters)).hits]


def test_only_what_changed_is_read_again(tmp_path):
    home = Home(tmp_path)
    session_id = home.recorded("one", "two")
    index = home.index()
    assert index.list_sessions()[0]["messageCount"] == 2
    home.sessions.chmod(0o700)
    rows = entries.load_rows(index.connection)
    assert index.list_sessions()[0]["messageCount"] == 2
    assert entries.load_rows(index.connection) == rows

    async def more() -> None:
        service = home.service()
        await service.open_session(session_id)
        for number in range(3):
            await service.record_message(session_id, said(f"new {number}"))
        assert home.index().list_sessions()[0]["messageCount"] == 5
        assert len(search_sessions(home.index(), "new").hits) == 3
        await service.record_tool_call(session_id, call("c9"))
        assert search_sessions(home.index(), "needle").hits == []
        await service.record_tool_call(session_id, call("c9", result="needle in a result"))
        assert len(search_sessions(home.index(), "needle").hits) == 1
        await service.record_text(session_id, TextPart, "half an ans")
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
    connection.execute(f"PRAGMA user_version = {len(INDEX_MIGRATIONS) + 1}")
    connection.close()
    before = (tmp_path / "index.db").read_bytes()
    assert len(home.index().list_sessions()) == 1
    assert len(found(home, "needle")) == 1
    assert (tmp_path / "index.db").read_bytes() == before


@pytest.mark.parametrize("mode", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_locked_index_stops_nobody(tmp_path, mode, monkeypatch):
    monkeypatch.setattr(indexing, "BUSY_SECONDS", 0.1)
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
            index, deadline = SessionIndex(tmp_path / "index.db", home.sessions), time.monotonic() + 60
            while (
                found := len(search_sessions(index, "needle", limit=50).hits)
            ) != 20:  # one that is busy is left alone
                assert time.monotonic() < deadline, found
            index.close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@pytest.mark.parametrize("listed", [True, False])
def test_a_large_session_is_read_on_by_the_next_search_from_where_the_last_one_stopped(tmp_path, monkeypatch, listed):
    monkeypatch.setattr(stamps, "LARGE_BYTES", 100)
    monkeypatch.setattr(entries, "LARGE_SECONDS", 0)
    monkeypatch.setattr(entries, "MIN_WORK_SECONDS", 0)
    monkeypatch.setattr(entries, "MIN_KNOWN_BYTES", 0)
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
    monkeypatch.setattr(entries, "LARGE_SECONDS", 5)
    assert [hit["number"] for hit in search_sessions(index, "needle").hits] == [2]
    assert [hit["role"] for hit in search_sessions(index, "haystack").hits] == ["tool"]
    assert index.behind == set()
    assert [hit["number"] for hit in search_sessions(home.index(), "hay").hits] == [1, 1]


def test_a_time_nobody_understands_is_kept_as_it_stands(tmp_path):
    home = Home(tmp_path)
    path = home.document(many(home, ["needle"]))
    path.write_bytes(path.read_bytes().replace(b'"timestamp":"2026-01-27T10:00:00.000Z"', b'"timestamp":"yesterday"'))
    assert [hit["timestamp"] for hit in search_sessions(home.index(), "needle").hits] == ["yesterday"]


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


def bytes_under(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())


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


def test_a_list_shows_the_last_active_first_with_all_there_is_to_say(tmp_path):
    home = Home(tmp_path)
    first, second = home.recorded("one", workspace="/w"), home.recorded("two", "three")

    newest, oldest = home.index().list_sessions()

    assert (newest["sessionId"], oldest["sessionId"]) == (second, first)
    assert {key: oldest[key] for key in ("model", "messageCount", "title", "workspace", "status", "damaged")} == {
        "model": "m",
        "messageCount": 1,
        "title": "one",
        "workspace": "/w",
        "status": "closed",
        "damaged": None,
    }
    writer, _ = home.files.open(first)
    assert {row["sessionId"]: row["status"] for row in home.index().list_sessions()} == {
        first: "active",
        second: "closed",
    }
    writer.abandon()


def test_with_no_time_sessions_are_listed_unread_and_read_the_next_time(tmp_path):
    home = Home(tmp_path)
    session_id = home.recorded("one")
    index = home.index()

    [row] = index.list_sessions(seconds=1e-9)

    assert (row["title"], row["messageCount"]) == (UNREAD_TITLE, 0)
    assert index.unread == {session_id: home.document(session_id).stat().st_size}
    [row] = index.list_sessions()
    assert (row["title"], index.unread) == ("one", {})


def test_the_state_of_a_long_session_is_known_until_its_document_changes(tmp_path):
    home = Home(tmp_path)
    session_id = many(home, ["x" * 400] * 1000)
    index = home.index()
    assert index.find_known(session_id) is None, "nothing is known yet"
    index.list_sessions()

    known = index.find_known(session_id)
    assert (known.last, len(known.waypoints)) == (1000, 4)
    assert index.find_known("aaaa0000-0000-4000-8000-000000000001") is None
    assert home.files.open(session_id, since=900)[1].skipped > 0
    home.crash()
    with home.document(session_id).open("ab") as file:
        file.write(b"extra")
    assert home.files.open(session_id, since=900)[1].skipped == 0
    home.crash()
    index.list_sessions()
    assert index.find_known(session_id).document != known.document


def test_a_forgotten_session_is_found_no_more_until_its_files_are_read_again(tmp_path):
    home = Home(tmp_path)
    session_id = home.recorded("needle")
    index = home.index()
    assert len(search_sessions(index, "needle").hits) == 1
    index.forget(session_id)
    assert entries.load_rows(index.connection) == {}
    assert index.connection.execute("SELECT count(*) FROM entries").fetchone()[0] == 0


def test_sessions_whose_files_are_gone_are_taken_out(tmp_path):
    home = Home(tmp_path)
    session_id, other = home.recorded("needle one"), home.recorded("needle two")
    index = home.index()
    assert len(search_sessions(index, "needle").hits) == 2
    home.document(session_id).unlink()

    assert [row["sessionId"] for row in index.list_sessions()] == [other]
    assert index.connection.execute("SELECT count(*) FROM entries").fetchone()[0] == 1


def test_damage_that_nobody_has_thought_of_costs_the_other_sessions_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    odd, sound = home.recorded("odd one"), home.recorded("sound one")
    real = entries.read_changes

    def read(stamp: stamps.Stamp, session_id: str, *rest: Any) -> entries.Row:
        if session_id == odd:
            raise TypeError("unhashable type: 'list'")
        return real(stamp, session_id, *rest)

    monkeypatch.setattr(entries, "read_changes", read)

    rows = {row["sessionId"]: row for row in home.index().list_sessions()}

    assert "unhashable" in rows[odd]["damaged"]
    assert rows[sound]["damaged"] is None


def test_an_index_of_which_most_goes_is_made_anew(tmp_path):
    home = Home(tmp_path)
    small, large = home.recorded("one"), home.recorded("two", "three")
    index = home.index()
    assert len(index.list_sessions()) == 2
    index.erase_all([large])
    assert not index.path.exists()
    assert [row["sessionId"] for row in index.list_sessions()][1:] == [small]
    assert index.path.exists()
    assert index.in_file
    index.erase_all([small])
    assert index.path.exists(), "the other holds more"
    assert index.connection.execute("PRAGMA busy_timeout").fetchone()[0] == 10_000
    index.close()
    assert home.index().connection.execute("PRAGMA busy_timeout").fetchone()[0] == 1500
    assert home.index().connection.execute("PRAGMA user_version").fetchone()[0] == len(INDEX_MIGRATIONS)
    with contextlib.closing(sqlite3.connect(index.path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(INDEX_MIGRATIONS) + 1}")
    newer = home.index()
    newer.erase_all([small])
    assert not newer.path.exists(), "one that cannot be changed can be done without"


@pytest.mark.parametrize("harm", [lambda path: None, lambda path: path.write_text("nonsense")])
def test_several_threads_index_a_new_session_at_once(tmp_path: Path, harm: Any) -> None:
    for attempt in range(8):
        home = Home(tmp_path / str(attempt))
        session_id = home.recorded(*(f"needle {number}" for number in range(40)))
        home.index().database.remove()
        harm(tmp_path / str(attempt) / "index.db")
        begin = threading.Barrier(5)
        seen: list[tuple[bool, int]] = []

        def search(home: Home = home, session_id: str = session_id, begin: Any = begin, seen: Any = seen) -> None:
            with contextlib.closing(home.index()) as index:
                begin.wait()
                index.refresh_session_text(session_id, 5)
                seen.append((index.in_file, SessionTexts(index, session_id).count_matches('"needle"', 100)))

        threads = [threading.Thread(target=search) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [(True, 40)] * 5


def test_an_index_that_others_replaced_is_opened_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.recorded("a needle here")
    with contextlib.closing(home.index()) as index:
        assert len(search_sessions(index, "needle").hits) == 1
        home.index().database.remove()
        assert len(found(home, "needle")) == 1
        home.recorded("another needle")
        assert len(search_sessions(index, "needle").hits) == 2
        assert index.in_file


def test_a_null_character_in_a_query_separates_words(tmp_path: Path) -> None:
    home = Home(tmp_path)
    session_id = home.recorded("a needle here")
    with contextlib.closing(home.index()) as index:
        texts = SessionTexts(index, session_id)
        texts.refresh()
        assert texts.holds("needle\0here")
