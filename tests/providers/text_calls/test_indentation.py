"""A block indented as its file is."""

import pytest

from ollm.providers.text_calls.indentation import find_indent, match_indentation

GO = "func f() {\n\treturn\n}\n"


@pytest.mark.parametrize(
    ("body", "current", "path", "matched"),
    [
        ("func g() {\n    if x {\n        y()\n    }\n}\n", GO, "m.go", "func g() {\n\tif x {\n\t\ty()\n\t}\n}\n"),
        ("all:\n    echo hi\n", "", "sub/Makefile", "all:\n\techo hi\n"),
        ("def f():\n\treturn 1\n", "def f():\n  return 0\n", "a.py", "def f():\n  return 1\n"),
        ("def f():\n    return 1\n", "def f():\n  return 0\n", "a.py", "def f():\n    return 1\n"),
        ("def f():\n    return 1\n", "", "a.py", "def f():\n    return 1\n"),
        ("a\n", GO, "m.go", "a\n"),
    ],
)
def test_tabs_and_blanks_are_as_in_the_file(body: str, current: str, path: str, matched: str) -> None:
    assert match_indentation(body, current, path) == matched


def test_the_least_indent_counts() -> None:
    assert find_indent("a\n      b\n   c\n") == 3
    assert find_indent("a\n b\n") == 0
