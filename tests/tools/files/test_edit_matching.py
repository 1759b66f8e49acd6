"""Where the target of an edit is in a text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ToolFailure
from ollm.tools.edit_file import EditMatch, Replacement, apply_edits, find_closest_text
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
