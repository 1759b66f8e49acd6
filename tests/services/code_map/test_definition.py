"""One definition: its names, its line, and how a symbol finds it."""

import pytest

from ollm.services.code_map.definition import (
    MAX_SIGNATURE_CHARS,
    CodeDefinition,
    match_symbol,
    render_outline,
    shorten_signature,
)


def define(name: str, scope: str = "") -> CodeDefinition:
    return CodeDefinition("function", name, scope, f"def {name}()", 3, 2, 9)


FOUND = [define("Turn"), define("run", "Turn"), define("run", "Other"), define("close", "Other")]


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("Turn.run", ["Turn.run"]),
        ("Turn::run", ["Turn.run"]),
        ("Turn#run", ["Turn.run"]),
        ("Turn.run()", ["Turn.run"]),
        ("close", ["Other.close"]),
        ("run", ["Turn.run", "Other.run"]),
        ("Turn", ["Turn"]),
        ("un", []),
        ("", []),
        ("()", []),
    ],
)
def test_a_symbol_finds_its_definitions(symbol: str, expected: list[str]) -> None:
    assert [found.full_name for found in match_symbol(symbol, FOUND)] == expected


def test_a_line_of_the_outline_is_indented_by_depth() -> None:
    assert render_outline(FOUND[:2]) == ["    3 def Turn()", "    3   def run()"]


def test_a_signature_is_one_short_line() -> None:
    assert shorten_signature("def f(\n    a,\n    b,\n) -> int:") == "def f(a, b) -> int"
    assert len(shorten_signature("x" * 1000)) == MAX_SIGNATURE_CHARS
    assert len(shorten_signature("x = " + "y" * 1000, "constant")) == 70


@pytest.mark.parametrize(("kind", "most"), [("function", 160), ("class", 160), ("constant", 70), ("macro", 70)])
def test_a_long_signature_is_cut(kind: str, most: int) -> None:
    assert shorten_signature("x" * most, kind) == "x" * most
    assert shorten_signature("x" * (most + 1), kind) == f"{'x' * (most - 1)}…"
    assert shorten_signature("a(\n  b,\n) {", kind) == "a(b)"
