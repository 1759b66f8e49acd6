"""Definitions by the syntax tree, as golden outlines."""

import pytest

from ollm.services.code_map.syntax_tree import (
    find_parse_error,
    get_parser,
    has_grammar,
    outline_text,
    render_definition,
)
from tests.services.code_map.samples import OUTLINES, RUST


@pytest.mark.parametrize(
    ("file", "expected"), OUTLINES.items(), ids=lambda value: value[0] if isinstance(value, tuple) else ""
)
def test_the_outline_of_a_file_in_each_language(file: tuple[str, str], expected: str) -> None:
    name, text = file

    found = outline_text(name, text.encode())

    assert found is not None
    assert "\n".join(map(render_definition, found)) == expected


def test_a_definition_reaches_from_its_comments_to_its_end() -> None:
    found = outline_text("point.rs", RUST.encode())

    assert found is not None
    assert [(one.full_name, one.first, one.last) for one in found[:3]] == [
        ("Point", 1, 3),
        ("Point", 5, 8),
        ("Point.new", 6, 7),
    ]


def test_a_header_with_classes_is_read_as_cpp() -> None:
    found = outline_text("box.h", b"class Box {\n public:\n  int get();\n};\n")

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
    assert outline_text("a.kt", b"fun main() {}") == []
    assert get_parser("tree_sitter_of_nobody", "language") is None


def test_nesting_without_end_and_bytes_that_are_no_text_do_no_harm() -> None:
    assert outline_text("a.py", b"class A:\n" * 2000) is not None
    assert outline_text("a.js", b"{" * 20_000) is not None
    assert outline_text("a.rs", bytes(range(256)) * 20) is not None


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        (
            "a.cpp",
            (
                "namespace a::b {\nT& Vec<T, N>::at(int i) { return d[i]; }\nnamespace { int hidden() { return 1; } }\n"
                "class V { T& operator[](int i) { return d; } operator bool() const; struct In { void next(); }; };\n}\n"
                "class EXPORTED W : public B {\n  void m();\n};\n"
            ),
            "a.b a.b.Vec.at a.b.hidden a.b.V a.b.V.operator[] a.b.V.operator bool a.b.V.In a.b.V.In.next W W.m",
        ),
        (
            "a.js",
            (
                "(function (root, make) { root.x = make(); })(this, function () {\n  function helper() {}\n"
                "  var api = { start: function () {}, stop() {} };\n});\nexport default class { run() {} }\n"
            ),
            "helper api api.start api.stop default default.run",
        ),
        (
            "a.ts",
            "export const memo = wrap(function Named() {});\nconst local = 1;\nexport default () => 1;\n",
            "memo default",
        ),
        ("a.py", "type Pair[T] = tuple[T, T]\nfor x in y:\n    def inside(): pass\n", "Pair inside"),
        ("a.go", "package a\ntype (\n\tID = string\n)\n", "ID"),
        ("a.rs", 'extern "C" { fn abs(x: i32); }\nimpl<T> I for &mut Foo<T> { fn next() {} }\n', "abs Foo Foo.next"),
        (
            "A.java",
            "record P(int x) { public P { } static final int MAX = 1; int y; }\n@interface N { String v(); }\n",
            "P P.P P.MAX N N.v",
        ),
        (
            "a.rb",
            "class A\n  private def secret; end\nend\nPoint = Struct.new(:x) do\n  def far; end\nend\n",
            "A A.secret Point Point.far",
        ),
    ],
)
def test_what_stands_in_unusual_places_is_found(name: str, text: str, names: str) -> None:
    found = outline_text(name, text.encode())

    assert found is not None
    assert " ".join(one.full_name for one in found) == names


def test_a_minified_call_is_not_looked_into() -> None:
    text = "!function(){" + "".join(f"function f{number}(){{}};" for number in range(500)) + "}();"
    assert outline_text("a.js", text.encode()) == []
