"""The known words that begin like one that was typed."""

import sqlite3

import pytest

from ollm.store.session_index import vocabulary
from ollm.store.session_index.database import connect_in_memory
from ollm.store.session_index.texts import EntryIndexer, IndexEntry
from ollm.store.session_index.vocabulary import MAX_TERMS, find_longer_words
from ollm.store.session_index.words import SearchWord


def index_of(*texts: str) -> sqlite3.Connection:
    connection = connect_in_memory()
    put = EntryIndexer(connection, {"id": 1, "text_number": 0})
    for number, text in enumerate(texts, start=1):
        put(IndexEntry(number, "user", "t", None, text))
    return connection


@pytest.fixture(autouse=True)
def any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "MAX_SECONDS", 1000)


def test_longer_words_are_named_with_what_stands_before_them() -> None:
    connection = index_of("store stores storing", "star stored")

    assert find_longer_words(connection, SearchWord("src/stor", "src/", "stor")) == [
        '"src/store"',
        '"src/stored"',
        '"src/stores"',
        '"src/storing"',
    ]
    assert find_longer_words(connection, SearchWord("store", "", "store")) == ['"stored"', '"stores"']
    assert find_longer_words(connection, SearchWord("zzz", "", "zzz")) == []


def test_a_word_without_an_ending_has_no_longer_ones() -> None:
    assert find_longer_words(index_of("abc"), SearchWord("a", "a", "")) == []


@pytest.mark.parametrize(("count", "named"), [(MAX_TERMS, True), (MAX_TERMS + 1, False)])
def test_too_many_words_are_not_named(count: int, named: bool) -> None:
    connection = index_of(" ".join(f"word{number}" for number in range(count)))

    found = find_longer_words(connection, SearchWord("word", "", "word"))

    assert (found is not None and len(found) == count) if named else found is None
    assert MAX_TERMS == 200


def test_words_of_too_many_texts_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = index_of("words", "words", "wordy")
    monkeypatch.setattr(vocabulary, "MAX_TEXTS", 3)
    assert find_longer_words(connection, SearchWord("word", "", "word")) == ['"words"', '"wordy"']
    monkeypatch.setattr(vocabulary, "MAX_TEXTS", 2)
    assert find_longer_words(connection, SearchWord("word", "", "word")) is None


@pytest.mark.parametrize(("count", "named"), [(20, True), (21, False)])
def test_some_words_are_read_however_long_it_takes(monkeypatch: pytest.MonkeyPatch, count: int, named: bool) -> None:
    connection = index_of(" ".join(f"word{number}" for number in range(count)))
    monkeypatch.setattr(vocabulary, "MAX_SECONDS", -1)

    assert (find_longer_words(connection, SearchWord("word", "", "word")) is not None) is named
