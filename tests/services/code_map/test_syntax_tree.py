"""Definitions by the syntax tree, as golden outlines."""

import pytest

from ollm.services.code_map.definition import render_outline
from ollm.services.code_map.syntax_tree import find_parse_error, get_parser, has_grammar, parse_definitions
from tests.services.code_map.samples import OUTLINES, RUST


@pytest.mark.parametrize(
    ("file", "expected"), OUTLINES.items(), ids=lambda value: value[0] if isinstance(value, tuple) else ""
)
def test_the_outline_of_a_file_in_each_language(file: tuple[str, str], expected: str) -> None:
    name, text = file

    found = parse_definitions(name, text.encode())

    assert found is not None
    assert "\n".join(render_outline(found)) == expected


def test_a_definition_reaches_from_its_comments_to_its_end() -> None:
    found = parse_definitions("point.rs", RUST.encode())

    assert found is not None
    assert [(one.full_name, one.first, one.last) for one in found[:3]] == [
        ("Point", 1, 3),
        ("Point", 5, 8),
        ("Point.new", 6, 7),
    ]


def test_a_header_with_classes_is_read_as_cpp() -> None:
    found = parse_definitions("box.h", b"class Box {\n public:\n  int get();\n};\n")

    assert found is not None
    assert [one.full_name for one in found] == ["Box", "Box.get"]


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.ts", "const a = 1;\nfunction b( {\n", 2),
        ("a.go", "package main\nfunc main() {\n\tx := \n}\n", 3),
        ("a.rs", "fn main() {}\n", None),
        ("a.rb", "def a\n  1\nend\n", None),
        ("a.c", "int main( {\n", None),
        ("a.xyz", "((((", None),
    ],
)
def test_the_line_that_does_not_parse(name: str, text: str, line: int | None) -> None:
    assert find_parse_error(name, text.encode()) == line


def test_a_language_without_a_grammar_says_so() -> None:
    assert has_grammar("a.py")
    assert not has_grammar("a.kt")
    assert parse_definitions("a.kt", b"fun main() {}") is None
    assert get_parser("tree_sitter_of_nobody", "language") is None


def test_nesting_without_end_and_bytes_that_are_no_text_do_no_harm() -> None:
    assert parse_definitions("a.py", b"class A:\n" * 2000) is not None
    assert parse_definitions("a.js", b"{" * 20_000) is not None
    assert parse_definitions("a.rs", bytes(range(256)) * 20) is not None
