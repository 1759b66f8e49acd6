"""The property tests are what the requirements ask for: at least 100 examples, tagged with their property."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.covers import covers
from tests.requirements import STRICT

TESTS = Path(__file__).parents[1]
TAG = re.compile(r"Feature: services-sessions, Property (\d+): \S")


class PropertyTest(NamedTuple):
    name: str
    properties: set[int]
    tagged: set[int]
    generated: bool


def property_tests() -> Iterator[PropertyTest]:
    """Every test that names a property of P."""
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found = [
                    str(item.value)
                    for item in ast.walk(ast.List(node.decorator_list))
                    if isinstance(item, ast.Constant)
                ]
                properties = {int(item[1:]) for item in found if re.fullmatch(r"P\d+", item)}
                if properties:
                    first = min(decorator.lineno for decorator in node.decorator_list)
                    source = "\n".join(lines[max(first - 4, 0) : node.end_lineno])
                    yield PropertyTest(
                        f"{path.relative_to(TESTS)}::{node.name}",
                        properties,
                        {int(number) for number in TAG.findall(source)},
                        any("given" in ast.unparse(decorator) for decorator in node.decorator_list),
                    )


@covers("D706")
def test_every_property_that_is_covered_has_a_generated_test_tagged_with_it() -> None:
    found = list(property_tests())
    named = {number for test in found for number in test.properties}
    proven = {number for test in found if test.generated for number in test.properties & test.tagged}

    assert proven
    assert sorted(named - proven) == [] or not STRICT


def example_counts(text: str) -> Iterator[int]:
    """Every `max_examples` of a file in the usual run: a number, or a constant of the same file."""
    constants = dict(re.findall(r"^([A-Z_]+) = (?:size\()?(\d+)", text, re.MULTILINE))
    for value in re.findall(r"max_examples=(?:size\()?(\w+)", text):
        yield int(value if value.isdigit() else constants.get(value, 0))


@covers("D700")
def test_no_property_test_runs_fewer_than_100_examples() -> None:
    tests = {test.name.split("::")[0] for test in property_tests()}
    few = [
        f"{name}: {count}"
        for name in sorted(tests)
        for count in example_counts((TESTS / name).read_text(encoding="utf-8"))
        if count < 100
    ]

    assert few == []


def test_a_count_behind_a_constant_is_read_too() -> None:
    text = "EXAMPLES = size(50, 900)\nMANY = 120\n@settings(max_examples=EXAMPLES)\n@settings(max_examples=MANY)\n"

    assert list(example_counts(text)) == [50, 120]
