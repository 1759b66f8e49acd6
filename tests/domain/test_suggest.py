"""Suggestions for mistyped names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.suggest import MAX_TYPED_CHARACTERS, format_suggestion, suggest_names

TOOLS = ["read_file", "write_file", "edit_file", "shell", "web_search"]


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("sehll", ["shell"]),
        ("readfile", ["read_file"]),
        ("READ-FILE", ["read_file"]),
        ("shel", ["shell"]),
        ("search", ["web_search"]),
        ("xyz", []),
        ("", []),
        ("we", []),
    ],
)
def test_the_nearest_name(typed: str, near: list[str]) -> None:
    assert suggest_names(typed, TOOLS) == near


def test_the_best_come_first_as_many_as_asked() -> None:
    assert suggest_names("edit_fle", [*TOOLS, "edit_files"], 2) == ["edit_file", "edit_files"]
    assert suggest_names("shell", ["shell", "shell"], 5) == ["shell"]
    assert suggest_names("shell", TOOLS, 0) == []


def test_of_names_alike_one_with_the_same_letters_is_first() -> None:
    assert suggest_names("abdc", ["abdx", "abcd"]) == ["abcd"]


def test_names_are_compared_from_a_share_of_letters_on() -> None:
    assert suggest_names("abcxy", ["abcde"]) == ["abcde"]
    assert suggest_names("abxyz", ["abcde"]) == []


def test_only_the_beginning_of_what_was_typed_is_compared() -> None:
    name = "a" * MAX_TYPED_CHARACTERS

    assert suggest_names(name + "b" * 1000, [name]) == [name]


def test_a_suggestion_in_words_or_another_text() -> None:
    assert format_suggestion("sehll", TOOLS) == "did you mean shell?"
    assert format_suggestion("xyz", TOOLS, "none") == "none"
    assert format_suggestion("xyz", TOOLS) == ""


@given(st.text(min_size=3, max_size=20))
def test_a_name_that_is_known_is_always_found(name: str) -> None:
    assert suggest_names(name, [name]) == [name] or not name.replace("-", "").replace("_", "")
