"""The texts to search: how they are stored, marked, put in once and taken out again."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.store.session_index.database import connect_in_memory
from ollm.store.session_index.texts import (
    UNDER_WAY,
    EntryIndexer,
    IndexEntry,
    forget_rows,
    forget_session,
    format_time,
    make_index_text,
    make_role_mark,
    make_session_mark,
    make_sign_marks,
    pack_text,
    pack_time,
    unpack_text,
)

AT = "2026-01-27T10:00:00.123Z"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=600))
def test_a_packed_text_comes_back(text: str) -> None:
    assert unpack_text(pack_text(text)) == text


def test_long_texts_are_packed_and_short_ones_not() -> None:
    assert pack_text("x" * 199) == "x" * 199
    packed = pack_text("x" * 200)
    assert isinstance(packed, bytes)
    assert len(packed) < 30
    assert unpack_text(pack_text("\ud800" + "x" * 300)) == "?" + "x" * 300


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        (AT, 1_769_508_000_123),
        ("1970-01-01T00:00:00.000Z", 0),
        ("2026-01-27T10:00:00Z", "2026-01-27T10:00:00Z"),
        ("2026-01-27T11:00:00.123+01:00", "2026-01-27T11:00:00.123+01:00"),
        ("yesterday", "yesterday"),
        ("", ""),
    ],
)
def test_a_time_is_stored_as_a_number_where_that_says_all_of_it(written: str, stored: int | str) -> None:
    assert pack_time(written) == stored
    assert format_time(stored) == written


def test_marks_are_words_nobody_can_type() -> None:
    assert make_role_mark("user") == "\ue000user"
    assert make_session_mark(7) == "\ue0017"
    assert make_index_text("hi!", "user", 7) == f"hi! \ue000user \ue0017 {chr(0xE100 + ord('!'))}"


@pytest.mark.parametrize(
    ("text", "signs"), [("", ""), ("abc 12\t\n", ""), (".,'-_", ""), ("a=b", "="), ("{x}{y}", "{}"), ("(é)€", "()€")]
)
def test_each_sign_has_a_mark(text: str, signs: str) -> None:
    assert make_sign_marks(text) == sorted({chr(0xE100 + ord(sign) % 0x700) for sign in signs})


@pytest.fixture
def connection() -> sqlite3.Connection:
    return connect_in_memory()


def indexer(
    connection: sqlite3.Connection, session: int = 1, number: int = 0, seconds: float | None = None
) -> EntryIndexer:
    return EntryIndexer(connection, {"id": session, "text_number": number}, seconds)


def entry(number: int, text: str = "hello", call: str | None = None) -> IndexEntry:
    return IndexEntry(number, "tool" if call else "user", AT, call, text)


def stored(connection: sqlite3.Connection) -> list[tuple[int, int, str | None, str]]:
    return connection.execute("SELECT session, number, call, text FROM entries ORDER BY id").fetchall()


def matches(connection: sqlite3.Connection, words: str) -> int:
    return len(connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (words,)).fetchall())


def test_each_message_and_call_is_put_in_once(connection: sqlite3.Connection) -> None:
    put = indexer(connection)
    for taken in (entry(1), entry(2), entry(2, "result", "c1"), entry(2, "result", "c1"), entry(3, "")):
        put(taken)

    assert stored(connection) == [(1, 1, None, "hello"), (1, 2, None, "hello"), (1, 2, "c1", "result")]
    assert put.taken == 2
    assert put.last_numbers == (0, 2)
    assert connection.execute("SELECT role, at FROM entries WHERE call IS NULL").fetchone() == (0, 1_769_508_000_123)
    again = indexer(connection, number=2)
    for taken in (entry(1), entry(2), entry(3), entry(2, "result", "c1"), entry(3, "other", "c2")):
        again(taken)
    assert [row[1:3] for row in stored(connection)[3:]] == [(3, None), (3, "c2")]
    assert again.last_numbers == (2, 3)
    assert matches(connection, "hello") == 3


def test_an_answer_under_way_is_read_again_and_stands_once(connection: sqlite3.Connection) -> None:
    put = indexer(connection)
    put(entry(1))
    put(entry(2, "half an", UNDER_WAY))
    assert matches(connection, "half") == 1
    assert put.taken == 1

    put = indexer(connection, number=1)
    assert matches(connection, "half") == 0
    put(entry(2, "half an answer"))
    assert [row[3] for row in stored(connection)] == ["hello", "half an answer"]
    assert put.last_numbers == (1, 0)


def test_one_that_is_late_takes_nothing_more(connection: sqlite3.Connection) -> None:
    put = indexer(connection, seconds=-1)
    put(entry(1))

    assert put.late
    assert stored(connection) == []
    assert put.taken == 0
    assert not indexer(connection).late
    assert indexer(connection).seconds == float("inf")
    assert indexer(connection, seconds=2.5).seconds == 2.5


def test_progress_is_told_to_whom_it_concerns(connection: sqlite3.Connection) -> None:
    told: list[int] = []
    EntryIndexer(connection, {"id": 1, "text_number": 0}, None, told.append).report_progress(5)
    indexer(connection).report_progress(6)

    assert told == [5]


def test_forgetting_a_session_leaves_the_others(connection: sqlite3.Connection) -> None:
    for session in (1, 12):
        indexer(connection, session)(entry(1, "hello " * 100))

    forget_session(connection, 1)

    assert [row[0] for row in stored(connection)] == [12]
    assert matches(connection, "hello") == 1
    forget_rows(connection, [(999,)])
    assert len(stored(connection)) == 1
