"""Where something ends in text that comes bit by bit."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.providers.text_calls.call_ends import JsonEndScanner, MarkEndScanner, ends_inside_quotes

JSON = st.recursive(
    st.none() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def scan_in_parts(scanner: JsonEndScanner | MarkEndScanner, text: str, size: int) -> int | None:
    """Where it ends, fed so many characters at a time."""
    for start in range(0, len(text), size):
        end = scanner.scan(text[start : start + size])
        if end is not None:
            return start + end
    return None


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("{}", 2),
        ("{} tail", 2),
        ('{"a": "}"} x', 10),
        ('{"a": "\\"}"} x', 12),
        ('["\\\\"] x', 6),
        ("[[1], [2]]", 10),
        ("{", None),
        ('{"a": "', None),
        ("", None),
        ("plain", None),
    ],
)
def test_the_end_of_the_first_value(text: str, end: int | None, size: int) -> None:
    scanner = JsonEndScanner()

    assert scan_in_parts(scanner, text, size) == end
    assert scanner.closed is (end is not None)


@given(JSON, st.integers(1, 5))
def test_any_value_in_brackets_ends_where_it_ends(value: object, size: int) -> None:
    text = json.dumps([value], ensure_ascii=False)

    assert scan_in_parts(JsonEndScanner(), text + "]}", size) == len(text)


def test_whether_it_is_inside_quotes_is_known_on_the_way() -> None:
    scanner = JsonEndScanner()
    scanner.scan('{"a')
    assert scanner.quoted
    scanner.scan('"')
    assert not scanner.quoted


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize(("text", "end"), [("abc</x>def", 7), ("</x>", 4), ("<</x>", 5), ("</x", None), ("", None)])
def test_the_end_of_a_mark(text: str, end: int | None, size: int) -> None:
    assert scan_in_parts(MarkEndScanner("</x>"), text, size) == end


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("", False),
        ('{"a": "b"}', False),
        ('{"a": "b', True),
        ('{"a": "b"}{"c": "', True),
        ('{"a": "b\\"', True),
        ("{}{}", False),
    ],
)
def test_whether_a_text_ends_inside_quotes(text: str, inside: bool) -> None:
    assert ends_inside_quotes(text) is inside
