"""Rows of a unified diff with their numbers, and the words that differ."""

from ollm.domain.line_diff import compare_words, parse_diff


def test_a_diff_stands_side_by_side_with_its_numbers() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -3,3 +3,4 @@\n same\n-old\n--- gone\n+new\n+more\n end\n"

    rows = [(pair.kind, pair.before, pair.after, pair.old, pair.new) for pair in parse_diff(diff)]

    assert rows == [
        ("head", "--- a/x", None, 0, 0),
        ("head", "+++ b/x", None, 0, 0),
        ("gap", "@@ -3,3 +3,4 @@", None, 0, 0),
        ("same", "same", "same", 3, 3),
        ("change", "old", "new", 4, 4),
        ("change", "-- gone", "more", 5, 5),
        ("same", "end", "end", 6, 6),
    ]


def test_lines_that_look_like_heads_inside_a_change_are_lines() -> None:
    rows = list(parse_diff("@@ -1 +1 @@\n--- x\n+++ y\n"))

    assert [(row.kind, row.before, row.after) for row in rows[1:]] == [("change", "-- x", "++ y")]


def test_removed_after_added_is_a_new_change() -> None:
    rows = list(parse_diff("@@ -1,2 +1 @@\n+a\n-b\n-c\n"))

    assert [(row.before, row.after, row.old, row.new) for row in rows[1:]] == [
        (None, "a", 1, 1),
        ("b", None, 1, 2),
        ("c", None, 2, 2),
    ]


def test_words_that_differ_are_found_on_each_side() -> None:
    assert compare_words("sum = price", "sum += price") == ([], [(4, 5)])
    assert compare_words("the old word here", "the new word here") == ([(4, 7)], [(4, 7)])
    assert compare_words("return x", "raise ValueError(y) from z") == ([], [])
