"""Whole JSON objects in text that is none as a whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.store.session_files import objects
from ollm.store.session_files.objects import TooDeepError, find_end, find_entries


def test_what_looks_like_an_entry_inside_another_is_a_part_of_it():
    inner = b'{"id":"c1","name":"ls","args":{"list":[{"id":1},{"role":"user"}]},"timestamp":""}'
    odd = b'{"parts":[{"type":"text","text":"x"},{"id":"c1","type":"tool_call"}],"role":"assistant","timestamp":""}'
    data = b"noise" + inner + b", " + odd + b'{"id":"torn","args":{"id":2'
    found = [data[start:end] for start, end in find_entries(memoryview(data))]
    assert found == [inner, odd]


def test_looking_for_entries_in_what_never_ends_stops_when_it_takes_too_long():
    data = b'{"id":[1,' * 50
    asked = []
    assert list(find_entries(memoryview(data), 0, lambda: bool(asked.append(1)) or len(asked) > 7)) == []
    assert len(asked) == 8


@pytest.mark.parametrize(
    ("data", "start", "end"),
    [
        (b"{}", 0, 2),
        (b"[1, 2]", 0, 6),
        (b'x{"a": "}"} tail', 1, 11),
        (b'{"a":1}   ', 0, 7),
        (b'{"a":1}  {"id":2}', 0, 7),
        (b'{"a":1},\n{"id":2}', 0, 7),
        (b'{"a":1', 0, None),
        (b"{", 0, None),
        (b"nonsense", 0, None),
        (b'{"a":"b\nc"} x', 0, 11),
        (b'{"a":"b\nc" x', 0, None),
    ],
)
def test_where_an_object_ends(data: bytes, start: int, end: int | None) -> None:
    assert find_end(memoryview(data), start) == end


def test_an_object_larger_than_the_window_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "WINDOW_BYTES", 8)
    whole = b'{"a":"' + b"x" * 500 + b'"}'

    assert find_end(memoryview(whole + b" rest"), 0) == len(whole)
    assert find_end(memoryview(whole[:-1]), 0) is None
    assert [*find_entries(memoryview(b'{"id":"' + b"x" * 500 + b'"}{"role":1}'))] == [(0, 509), (509, 519)]


def test_an_object_nested_without_end_is_too_deep() -> None:
    with pytest.raises(TooDeepError):
        find_end(memoryview(b"[" * 200_000), 0)
    with pytest.raises(TooDeepError):
        find_end(memoryview(b'{"a":"\n","b":' + b"[" * 60_000), 0)


@pytest.mark.parametrize("key", ["id", "role", "parts", "timestamp"])
def test_an_entry_is_known_by_its_first_key(key: str) -> None:
    entry = f'{{ "{key}" : 1}}'.encode()

    assert list(find_entries(memoryview(b"..." + entry + b'{"other":1}'))) == [(3, 3 + len(entry))]


def test_the_search_starts_where_it_is_told() -> None:
    data = memoryview(b'{"id":1}{"id":2}')

    assert list(find_entries(data, 1)) == [(8, 16)]
    assert list(find_entries(memoryview(b""))) == []


@given(st.lists(st.sampled_from([b'{"id":1}', b'{"role":"a","parts":[{"id":2}]}', b'{"id":"\xc3\xa4"}']), max_size=6))
def test_whole_entries_are_found_between_noise(entries: list[bytes]) -> None:
    data = b"noise,".join([b"", *entries, b""])

    assert [data[start:end] for start, end in find_entries(memoryview(data))] == entries
