"""Changes of files as people read them."""

import pytest

from ollm.cli.screen.diffs import mark_words, render_diff
from ollm.cli.screen.paint import Painter

DIFF = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n same\n-the old word\n+the new word\n end\n@@ -9 +9,2 @@\n last\n+added\n\\ No newline\n"


def render(diff: str, width: int, *, colour: bool = False, named: bool = False) -> str:
    return Painter(lambda: width, colour=colour).paint(render_diff(diff, width, named=named))


def test_a_narrow_terminal_gets_one_line_under_the_other() -> None:
    assert render(DIFF, 80).split("\n") == [
        "     1   same",
        "     2 - the old word",
        "     2 + the new word",
        "     3   end",
        "       ⋯",
        "     9   last",
        "    10 + added",
        "",
    ]


@pytest.mark.parametrize(("width", "beside"), [(119, False), (120, True)])
def test_a_wide_one_gets_both_side_by_side(width: int, beside: bool) -> None:
    lines = [line for line in render(DIFF, width).split("\n") if "old word" in line]

    assert ("new word" in lines[0]) is beside


def test_side_by_side_keeps_numbers_and_marks() -> None:
    lines = render(DIFF, 130).split("\n")

    assert any("2 - the old word" in line and "2 + the new word" in line for line in lines)
    assert any("10 + added" in line for line in lines)
    assert not any(line.strip().startswith(("@@", "---", "+++")) for line in lines)


@pytest.mark.parametrize("width", [80, 130])
def test_several_files_are_named_and_lines_that_look_like_names_are_lines(width: int) -> None:
    one = "--- a/one.txt\n+++ b/one.txt\n@@ -0,0 +1 @@\n+first\n"
    two = "--- a/two.sql\n+++ b/two.sql\n@@ -1,2 +1,2 @@\n same\n--- old note\n+++ new note\n"
    lines = [" ".join(line.split()) for line in render(one + two, width, named=True).split("\n")]

    assert [line for line in lines if line.endswith((".txt", ".sql"))] == ["one.txt", "two.sql"]
    assert any("2 - -- old note" in line for line in lines)
    assert any("2 + ++ new note" in line for line in lines)


def marked(before: str, after: str) -> tuple[list[str], list[str]]:
    old, new = mark_words(before, after)
    assert old is not None
    assert new is not None
    return [old.plain[span.start : span.end] for span in old.spans], [
        new.plain[span.start : span.end] for span in new.spans
    ]


def test_the_words_that_changed_are_set_off() -> None:
    assert marked("the old word here", "the new word here") == (["old"], ["new"])
    assert marked("return x", "raise ValueError(y) from z") == ([], [])
    assert marked("word " * 100, "word " * 99 + "last ") == (["word"], ["last"])
    assert marked("word " * 101, "word " * 100 + "last ") == ([], [])
    only, none = mark_words("x", None)
    assert only is not None
    assert none is None
    assert mark_words(None, None) == (None, None)
