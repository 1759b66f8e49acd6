"""How a document stands on disk: one JSON document, its head on the first line, one message or call a line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.store.session_files.layout import CLOSE, FIELDS, MIDDLE, OPEN, iter_document

JSON_OBJECTS = st.dictionaries(st.text(max_size=3), st.integers(), max_size=3)


def document(head: dict[str, object], messages: list[bytes], calls: list[bytes]) -> bytes:
    return b"".join(iter_document(head, messages, calls))


def test_an_empty_session_is_three_lines() -> None:
    assert document({"sessionId": "x"}, [], []) == b'{"sessionId":"x"' + OPEN + MIDDLE + CLOSE
    assert OPEN + MIDDLE + CLOSE == b',"messages":[\n],"toolCalls":[\n]}\n'


@pytest.mark.parametrize(("entries", "lines"), [([b"{}"], b"{}\n"), ([b"1", b"2", b"3"], b"1,\n2,\n3\n")])
def test_each_entry_has_a_line_and_a_comma_behind_all_but_the_last(entries: list[bytes], lines: bytes) -> None:
    assert document({"v": 1}, entries, []) == b'{"v":1' + OPEN + lines + MIDDLE + CLOSE
    assert document({"v": 1}, [], entries) == b'{"v":1' + OPEN + MIDDLE + lines + CLOSE


def test_known_fields_come_first_in_their_order_and_unknown_ones_survive() -> None:
    head = {"zebra": 1, **{name: name for name in reversed(FIELDS)}, "messages": ["old"], "toolCalls": ["old"]}

    first = document(head, [], []).split(b"\n")[0].removesuffix(OPEN.rstrip()) + b"}"

    assert list(json.loads(first).items()) == [*((name, name) for name in FIELDS), ("zebra", 1)]


@given(JSON_OBJECTS, st.lists(JSON_OBJECTS, max_size=4), st.lists(JSON_OBJECTS, max_size=4))
def test_whatever_it_holds_it_is_one_json_document(head: dict, messages: list[dict], calls: list[dict]) -> None:
    lines = [[json.dumps(entry).encode() for entry in entries] for entries in (messages, calls)]

    head = {**head, "sessionId": "x"}
    assert json.loads(document(head, *lines)) == {**head, "messages": messages, "toolCalls": calls}
