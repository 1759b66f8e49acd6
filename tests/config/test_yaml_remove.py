"""Taking one key out of a YAML text: all else stays, comments too, or nothing is changed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ollm.config.yaml_edit import remove_key, set_key
from ollm.config.yaml_tree import SourcePosition, parse_yaml, to_plain_value
from ollm.domain.errors import UsageError

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.characters(codec="utf-8", exclude_categories=["C"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)


def read(text: str) -> object:
    entry = parse_yaml(text, SourcePosition(file="f"))
    return {} if entry is None else to_plain_value(entry)


@settings(max_examples=200, deadline=None)
@given(
    before=st.sampled_from(
        [
            "",
            "# only a comment\n",
            "a: 1 # one\n",
            "servers: # s\n  # inner\n  other: {x: 1} # keep\nz: 1\n",
            "servers: {other: 1}\n",
            "servers:\n    other:\n        x: 1\n    # last\n",
        ]
    ),
    name=names.filter(lambda name: name != "other"),
    value=values,
)
def test_what_was_put_in_can_be_taken_out_and_all_else_stays(before: str, name: str, value: object) -> None:
    put = set_key(before, ["servers", name], value)
    taken = remove_key(put, ["servers", name])

    after, original = read(taken), read(before)
    assert isinstance(original, dict)
    assert after == {**original, "servers": original.get("servers") or {}}
    comments = [line.partition("#")[2] for line in before.splitlines() if "#" in line]
    assert [comment for comment in comments if comment not in taken] == []


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("s: {a: 1, b: {c: 2}}\n", "s: {b: {c: 2}}\n"),
        ("s: {b: {c: 2}, a: 1 }\n", "s: {b: {c: 2} }\n"),
        ("s:\n  b: 1\n  a:\n    x: 1\n    y: 2\n", "s:\n  b: 1\n"),
        ("s:\r\n  a: 1\r\n  b: 2\r\n", "s:\r\n  b: 2\r\n"),
        ("s:\n  a: 1", "s: {}\n"),
        ("s: {a: 1} # why\n", "s: {} # why\n"),
    ],
)
def test_only_the_key_itself_goes(text: str, after: str) -> None:
    assert remove_key(text, ["s", "a"]) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("# head\na: 1\nb: 2\n", "# head\nb: 2\n"),
        ("a:\n  x: 1\nb: 2\n", "b: 2\n"),
        ("# head\na: 1\n", "# head\n"),
        ("{a: 1, b: 2}\n", "{b: 2}\n"),
        ("{a: 1}\n", "{}\n"),
    ],
)
def test_a_key_at_the_top_goes_too(text: str, after: str) -> None:
    assert remove_key(text, ["a"]) == after


@pytest.mark.parametrize("text", ["", "s: 1\n", "s: {b: 1}\n", "t: {a: 1}\n", "s: [a]\n"])
def test_a_key_that_is_not_there_is_told(text: str) -> None:
    with pytest.raises(UsageError, match=r"s\.a is not set in the file"):
        remove_key(text, ["s", "a"])
