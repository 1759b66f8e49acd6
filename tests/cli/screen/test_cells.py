"""Text cut and padded to cells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.cli.screen.cells import pad_cells, shorten_line, truncate_cells, wrap_choices
from ollm.system.terminal_text import clean_lines


@given(text=st.text(), cells=st.integers(0, 40))
def test_padded_text_takes_exactly_the_cells_it_is_given(text: str, cells: int) -> None:
    from prompt_toolkit.utils import get_cwidth

    line = clean_lines(text.replace("\n", " "))
    assert get_cwidth(truncate_cells(line, cells)) <= cells
    assert get_cwidth(pad_cells(line, cells)) == cells


@pytest.mark.parametrize(
    ("text", "cells", "short"),
    [
        ("abc", 3, "abc"),
        ("abc", 2, "ab"),
        ("日本", 4, "日本"),
        ("日本", 3, "日"),
        ("日本", 1, ""),
        ("é", 1, "é"),
        ("", 0, ""),
    ],
)
def test_wide_letters_take_two_cells(text: str, cells: int, short: str) -> None:
    assert truncate_cells(text, cells) == short


def test_padding_fills_to_the_cell() -> None:
    assert pad_cells("日", 4) == "日  "
    assert pad_cells("abcdef", 4) == "abcd"


def test_a_line_that_is_too_long_ends_behind_a_word_with_a_mark() -> None:
    assert shorten_line("short", 10) == "short"
    assert shorten_line("one two three four", 12) == "one two…"
    assert shorten_line("x" * 30, 10) == "x" * 9 + "…"


def test_choices_are_broken_between_two_of_them() -> None:
    choices = "[y] yes · [s] this session · [a] always in this workspace (edit_file:a.py) · [n] no"

    assert wrap_choices(choices, 60).split("\n") == [
        "[y] yes · [s] this session",
        "[a] always in this workspace (edit_file:a.py) · [n] no",
    ]
    assert wrap_choices(choices, 200) == choices
    assert wrap_choices("[a] always in this workspace (shell:=exit 1) · [n] no", 30, indent="  ").split("\n") == [
        "  [a] always in this workspace",
        "  (shell:=exit 1) · [n] no",
    ]
