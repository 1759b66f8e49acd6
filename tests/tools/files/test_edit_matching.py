"""Where the target of an edit is in a text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.errors import ToolFailure
from ollm.tools.files.edit_matching import Edit, EditMatch, FlatText, apply_edits
from tests.covers import covers


def edit(target: str, replacement: str, **more: Any) -> dict[str, Any]:
    return {"target": target, "replacement": replacement, **more}


TEXT = st.text(alphabet="ab \n\t", max_size=60)


@covers("T3.5", "T3.6", "T3.7")
@given(text=TEXT, target=st.text(alphabet="ab \n", min_size=1, max_size=5), new=TEXT)
def test_an_edit_replaces_the_one_occurrence_or_says_why_not(text: str, target: str, new: str) -> None:
    count = text.count(target)
    kind, after, places = outcome(text, Edit(target=target, replacement=new))

    if kind:
        assert (count == 0) == (kind == "EditTargetNotFound")
    elif count == 1:
        assert after == text.replace(target, new)
    else:
        assert count == 0
        assert places[0].note


def outcome(text: str, edit: Edit) -> tuple[str, str, list[EditMatch]]:
    try:
        return ("", *apply_edits(text, (edit,), "a"))
    except ToolFailure as failure:
        return failure.kind, "", []


def test_edits_of_a_large_file_are_quick() -> None:
    import time

    text = "".join(f"line {number} of the file\n" for number in range(100_000))
    started = time.perf_counter()
    with pytest.raises(ToolFailure):
        apply_edits(text, (Edit(target="line 5000x of the file", replacement=""),), "a")

    assert time.perf_counter() - started < 20


def apply(text: str, *edits: Edit) -> str:
    return apply_edits(text, edits, "f")[0]


def notes(text: str, *edits: Edit) -> list[str]:
    return [match.note for match in apply_edits(text, edits, "f")[1]]


def refusal(text: str, *edits: Edit) -> tuple[str, str]:
    with pytest.raises(ToolFailure) as caught:
        apply_edits(text, edits, "f")
    return caught.value.kind, caught.value.message


@pytest.mark.parametrize(
    ("text", "edit", "after"),
    [
        ("a b c", Edit(target="b", replacement="X"), "a X c"),
        ("aaa", Edit(target="a", replacement="bb", replace_all=True), "bbbbbb"),
        ("aaa", Edit(target="aa", replacement="b", replace_all=True), "ba"),
        ("x\r\ny\r\n", Edit(target="x\ny", replacement="1\n2"), "1\r\n2\r\n"),
        ("x\r\ny\n", Edit(target="y", replacement="1\n2"), "x\r\n1\n2\n"),
        ("x\r\ny\r\nz\n", Edit(target="z", replacement="1\n2"), "x\r\ny\r\n1\r\n2\n"),
        ("x\ny", Edit(target="x\r\ny", replacement="1\r\n2"), "1\n2"),
        ("a", Edit(target="a", replacement=""), ""),
    ],
)
def test_a_target_is_replaced_to_the_letter(text: str, edit: Edit, after: str) -> None:
    assert apply(text, edit) == after
    assert set(notes(text, edit)) == {""}


def test_all_edits_are_made_against_the_text_as_it_was() -> None:
    assert apply("a b", Edit(target="b", replacement="a"), Edit(target="a", replacement="b")) == "b a"


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
    edit = Edit(target=target, replacement=replacement)

    assert apply(text, edit) == after
    assert notes(text, edit) == [note]


@pytest.mark.parametrize(
    ("text", "target"),
    [("  a\n    a\n", " \ta"), ("ab", "a b"), ("a", "   "), ("one\ntwo", "1\tone\ntwo"), ("port 80", "port80")],
)
def test_white_space_is_not_forgiven_elsewhere(text: str, target: str) -> None:
    kind, message = refusal(text, Edit(target=target, replacement="x"))

    assert kind == "EditTargetNotFound"
    assert message.startswith("Edit 1: its target is not in f; nothing changed. ")


@pytest.mark.parametrize(
    ("count", "lines"), [(2, "1, 2"), (10, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10"), (11, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …")]
)
def test_a_target_found_several_times_is_ambiguous(count: int, lines: str) -> None:
    assert refusal("x\n" * count, Edit(target="x", replacement="y")) == (
        "EditTargetAmbiguous",
        (
            f"Edit 1: its target is found {count} times in f, at lines {lines}; nothing was changed. Include more of the "
            "surrounding text in the target, or set replaceAll."
        ),
    )


def test_edits_of_the_same_text_are_refused() -> None:
    assert refusal("1\nabc", Edit(target="ab", replacement="x"), Edit(target="bc", replacement="y")) == (
        "EditsOverlap",
        "Edits 1 and 2 change the same text of f, at line 2; nothing changed. Make them one edit.",
    )
    assert apply("abcd", Edit(target="ab", replacement="x"), Edit(target="cd", replacement="y")) == "xy"


@given(st.text(alphabet="a\r\n", max_size=20))
def test_every_place_in_the_flat_text_leads_back_to_the_raw_one(raw: str) -> None:
    flat = FlatText(raw)

    assert flat.flat == raw.replace("\r\n", "\n")
    for offset, character in enumerate(flat.flat):
        there = raw[flat.find_raw_offset(offset) :]
        assert there.startswith((character, "\r\n"))
    assert flat.find_raw_offset(len(flat.flat)) == len(raw)


def test_lines_are_numbered_from_one() -> None:
    flat = FlatText("a\r\nb")

    assert (flat.get_line_number(0), flat.get_line_number(2)) == (1, 2)
