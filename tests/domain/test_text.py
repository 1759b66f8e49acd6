"""Small texts, and values that are made when needed."""

import re
import subprocess
import sys

import pytest

import ollm
import ollm.app
import ollm.services.snapshots
import ollm.store.session_files
from ollm.domain.lazy import compile_late
from ollm.domain.line_diff import compare_words, parse_diff
from ollm.domain.text import (
    split_front_matter,
    suggest_names,
)

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


def test_it_matches_as_the_compiled_one_does() -> None:
    late = compile_late(r"(\d+)b", re.IGNORECASE)
    assert late.findall("7B and 70b") == ["7", "70"]
    assert late.split("a 3B model") == ["a ", "3", " model"]
    assert late.sub("?", "7b") == "?"
    assert late.pattern == r"(\d+)b"


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("no front matter", {}, "no front matter"),
        ("---\nname: a\n---\nbody", {"name": "a"}, "body"),
        ("---\nname: 'a'\ndescription: \"b: c\"\n---\n\nbody", {"name": "a", "description": "b: c"}, "body"),
        ("---\ndescription: >\n  two\n  lines\nother: x\n---\n", {"description": "two lines", "other": "x"}, ""),
        ("---\nmetadata:\n  version: 1\n# note\n---\nb", {"metadata": "version: 1"}, "b"),
        ("---\ntools:\n- ls\n- grep\nmode: code\n---\nb", {"tools": "- ls - grep", "mode": "code"}, "b"),
        ("---\nnever closed\n", {}, "---\nnever closed\n"),
        ("\ufeff---\nname: a\n---\nbody", {"name": "a"}, "body"),
    ],
)
def test_the_fields_and_the_text_are_told_apart(text: str, fields: dict[str, str], body: str) -> None:
    assert split_front_matter(text) == (fields, body)


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


@pytest.mark.parametrize("package", [ollm, ollm.app, ollm.services.snapshots, ollm.store.session_files])
def test_every_name_a_package_lists_can_be_had_from_it(package: object) -> None:
    assert all(getattr(package, name) is not None for name in dir(package))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert ollm.OllmError.__name__ == "OllmError"
    assert ollm.__all__ == sorted({*dir(ollm)} - {"__version__"})
    with pytest.raises(AttributeError, match=r"module 'ollm' has no attribute 'OllmErorr'"):
        _ = ollm.OllmErorr


def test_importing_the_package_imports_none_of_its_floors() -> None:
    code = "import sys, ollm; print(sorted(name for name in sys.modules if name.startswith('ollm.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
