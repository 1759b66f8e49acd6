"""Where the target of an edit is in a text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ToolFailure
from ollm.tools.edit_file import EditMatch, FlatText, Replacement, apply_edits, find_closest_text
from tests.covers import covers


def edit(target: str, replacement: str, **more: Any) -> dict[str, Any]:
    return {"target": target, "replacement": replacement, **more}


TEXT = st.text(alphabet="ab \n\t", max_size=60)


@covers("T3.5", "T3.6", "T3.7")
@given(text=TEXT, target=st.text(alphabet="ab \n", min_size=1, max_size=5), new=TEXT)
def test_an_edit_replaces_the_one_occurrence_or_says_why_not(text: str, target: str, new: str) -> None:
    count = text.count(target)
    kind, after, places = outcome(text, Replacement(target=target, replacement=new))

    if kind:
        assert (count == 0) == (kind == "EditTargetNotFound")
    elif count == 1:
        assert after == text.replace(target, new)
    else:
        assert count == 0
        assert places[0].note


def outcome(text: str, edit: Replacement) -> tuple[str, str, list[EditMatch]]:
    try:
        return ("", *apply_edits(text, (edit,), "a"))
    except ToolFailure as failure:
        return failure.kind, "", []


def test_edits_of_a_large_file_are_quick() -> None:
    import time

    text = "".join(f"line {number} of the file\n" for number in range(100_000))
    started = time.perf_counter()
    with pytest.raises(ToolFailure):
        apply_edits(text, (Replacement(target="line 5000x of the file", replacement=""),), "a")

    assert time.perf_counter() - started < 20


def apply(text: str, *edits: Replacement) -> str:
    return apply_edits(text, edits, "f")[0]


def notes(text: str, *edits: Replacement) -> list[str]:
    return [match.note for match in apply_edits(text, edits, "f")[1]]


@pytest.mark.parametrize(
    ("text", "edit", "after"),
    [
        ("a b c", Replacement(target="b", replacement="X"), "a X c"),
        ("aaa", Replacement(target="a", replacement="bb", replace_all=True), "bbbbbb"),
        ("aaa", Replacement(target="aa", replacement="b", replace_all=True), "ba"),
        ("x\r\ny\r\n", Replacement(target="x\ny", replacement="1\n2"), "1\r\n2\r\n"),
        ("x\r\ny\n", Replacement(target="y", replacement="1\n2"), "x\r\n1\n2\n"),
        ("x\r\ny\r\nz\n", Replacement(target="z", replacement="1\n2"), "x\r\ny\r\n1\r\n2\n"),
        ("x\ny", Replacement(target="x\r\ny", replacement="1\r\n2"), "1\n2"),
        ("a", Replacement(target="a", replacement=""), ""),
    ],
)
def test_a_target_is_replaced_to_the_letter(text: str, edit: Replacement, after: str) -> None:
    assert apply(text, edit) == after
    assert set(notes(text, edit)) == {""}


@pytest.mark.parametrize(
    ("text", "target", "replacement", "after", "note"),
    [
        ("a  \nb\n", "a\nb", "x", "x\n", "edit 1: trailing whitespace was ignored"),
        (
            "    if x:\n        y\n",
            "if x:\n    y",
            "if z:\n    y",
            "    if z:\n        y\n",
            "edit 1: whitespace was ignored",
        ),
        ("port = 80\n", "port=80", "port=81", "port=81\n", "edit 1: whitespace was ignored"),
        ("one\ntwo\n", "1\tone\n2\ttwo", "x", "x\n", "edit 1: the line numbers in the target were removed"),
        ("\tone\n", "  one\n", "  two\n", "\ttwo\n", "edit 1: whitespace was ignored"),
    ],
)
def test_white_space_is_forgiven_where_one_place_matches(
    text: str, target: str, replacement: str, after: str, note: str
) -> None:
    edit = Replacement(target=target, replacement=replacement)

    assert apply(text, edit) == after
    assert notes(text, edit) == [note]


@given(st.text(alphabet="a\r\n", max_size=20))
def test_every_place_in_the_flat_text_leads_back_to_the_raw_one(raw: str) -> None:
    flat = FlatText(raw)

    assert flat.flat == raw.replace("\r\n", "\n")
    for offset, character in enumerate(flat.flat):
        there = raw[flat.find_raw_offset(offset) :]
        assert there.startswith((character, "\r\n"))
    assert flat.find_raw_offset(len(flat.flat)) == len(raw)


def test_the_closest_line_is_shown_with_where_it_differs() -> None:
    text = "alpha\ndef compute(value):\n    return value\n"

    assert find_closest_text(text, "def compute(values):") == (
        "The closest text is at line 2:\ndef compute(value):\n"
        "Line 2 reads 'def compute(value):' where the target has 'def compute(values):'."
    )


def test_a_target_longer_than_the_file_says_where_the_text_ends() -> None:
    assert find_closest_text("first line here", "first line here\nsecond") == (
        "The closest text is at line 1:\nfirst line here\nThe text ends before line 2 of the target."
    )


def test_what_is_the_same_differs_in_white_space_only() -> None:
    assert find_closest_text("some line\nx\n", "\nsome line\n") == (
        "The closest text is at line 1:\nsome line\nOnly whitespace or line endings differ."
    )
