"""Whether a text still parses as what its name says."""

import pytest

from ollm.services.syntax_check import describe_lost_syntax


@pytest.mark.parametrize(
    ("name", "before", "after", "told"),
    [
        ("a.py", "x = 1\n", "x = (\n", "a.py no longer parses: line 1"),
        ("a.py", None, "x = (\n", "a.py does not parse: line 1"),
        ("a.py", "x = (\n", "y = (\n", ""),
        ("a.py", "x = 1\n", "x = 2\n", ""),
        ("a.json", "{}", "{", "a.json no longer parses"),
        ("a.toml", "a = 1\n", "a = \n", "a.toml no longer parses"),
        ("a.txt", "x", "(", ""),
        ("a.ts", "const a = 1;\n", "const a = 1;\nfunction b( {\n", "a.ts no longer parses: line 2: syntax error"),
        ("a.go", None, "package main\nfunc main() {\n", "a.go does not parse: line 2: syntax error"),
        ("a.rs", "fn main() {}\n", "fn main() { let x = 1; }\n", ""),
        ("a.c", "int a;\n", "int a(\n", ""),
    ],
)
def test_what_is_said_of_a_change(name: str, before: str | None, after: str, told: str) -> None:
    found = describe_lost_syntax(name, before, after)
    assert found.startswith(told) if told else found == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "type Pair[T] = tuple[T, T]\n"),
        ("a.py", "def first[T](x: list[T]) -> T:\n    return x[0]\n"),
        ("a.py", "x = f'{d['key']}'\n"),
        ("tsconfig.json", "{\n  // comments are usual here\n}\n"),
        (".vscode/settings.json", "{\n  // here too\n}\n"),
    ],
)
def test_what_is_right_elsewhere_is_not_called_broken(name: str, text: str) -> None:
    assert describe_lost_syntax(name, None, text) == ""
