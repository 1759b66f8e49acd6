"""The checks of requirements, properties and targets catch what they are for."""

import ast
import asyncio
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ollm.config.settings import FileDiscoverySettings
from ollm.domain.files import DiscoveryOptions
from ollm.services.file_discovery.service import FileDiscoveryService
from tests.covers import covers
from tests.ordinary_user import as_ordinary_user
from tests.requirements import REQUIREMENTS, SAME, STRICT
from tests.store.sessions.support import Home, said
from tests.traced import Coverage

LISTED = {"S1.1": "one", "S1.2": "two", "D605": "three"}


def test_a_number_that_no_requirement_has_is_a_mistake() -> None:
    coverage = Coverage(LISTED, frozenset(), frozenset({"S9.9"}))

    assert coverage.mistakes(whole=False, strict=True) == ["S9.9: a test names it, no requirement has that number"]


def test_a_requirement_without_a_test_is_a_mistake_only_when_everything_was_collected() -> None:
    coverage = Coverage(LISTED, frozenset({"D605"}), frozenset({"S1.1"}))

    assert coverage.mistakes(whole=False, strict=True) == []
    assert coverage.mistakes(whole=True, strict=True) == ["S1.2: no test covers it: two"]


def test_an_open_requirement_that_is_covered_must_not_stay_open() -> None:
    coverage = Coverage(LISTED, frozenset({"D605", "S1.2"}), frozenset({"S1.1", "D605"}))

    assert coverage.mistakes(whole=True, strict=True) == ["D605: covered, so it is not open any more"]


def test_a_rule_stated_twice_is_covered_by_a_test_of_either() -> None:
    same = {"D605": "S1.1"}

    assert Coverage(LISTED, frozenset(), frozenset({"S1.1"}), same).uncovered() == {"S1.2"}
    assert Coverage(LISTED, frozenset(), frozenset({"D605"}), same).uncovered() == {"S1.2"}


def test_every_restated_item_points_at_one_that_exists_and_no_chain_ends_in_a_circle() -> None:
    for item in SAME:
        seen = {item}
        while item in SAME:
            item = SAME[item]  # noqa: PLW2901 - following the chain
            assert item in REQUIREMENTS
            assert item not in seen
            seen.add(item)


def test_every_numbered_requirement_is_listed() -> None:
    counts = {"S": (8, 5, 8, 8, 8, 8, 8, 9, 6, 7), "T": (7, 9, 8, 12, 8, 8, 8, 6, 5, 7, 9, 6)}
    numbered = {
        f"{letter}{n}.{m}"
        for letter, sizes in counts.items()
        for n, size in enumerate(sizes, 1)
        for m in range(1, size + 1)
    }
    numbered |= {f"P{n}" for n in range(1, 29)}

    assert numbered == {item for item in REQUIREMENTS if item[0] in "STP"}


def test_the_summary_counts_what_is_open_and_names_it() -> None:
    coverage = Coverage(LISTED, frozenset({"D605"}), frozenset({"S1.1", "S1.2"}))

    assert coverage.summary() == [
        "2 of 3 requirements covered, 1 open: 2 named by a test, 0 state a rule that another one named states too",
        "  open: D605",
    ]


def test_a_body_run_as_an_ordinary_user_owns_its_directory_and_cannot_read_what_is_closed() -> None:
    def body(directory: Path) -> None:
        closed = directory / "closed"
        closed.write_text("x", encoding="utf-8")
        closed.chmod(0)
        assert os.geteuid() != 0
        with pytest.raises(PermissionError):
            closed.read_text(encoding="utf-8")

    as_ordinary_user(body)


def test_a_body_that_fails_as_an_ordinary_user_fails_the_test() -> None:
    def body(directory: Path) -> None:
        raise ValueError("wrong " + "here")

    with pytest.raises((AssertionError, ValueError), match="wrong here"):
        as_ordinary_user(body)


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
        for node in ast.walk(ast.parse(text)) if re.search(r'"P\d', text) else ():
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


def best(action: Callable[[], object], times: int) -> float:
    def timed() -> float:
        begin = time.perf_counter()
        action()
        return time.perf_counter() - begin

    return min(timed() for _ in range(times))


@covers("D815")
def test_a_typical_session_is_saved_and_loaded_within_a_tenth_of_a_second(tmp_path: Path) -> None:
    home = Home(tmp_path)

    async def recorded() -> str:
        service = home.service()
        session_id = await service.create_session("m", "ollama")
        for number in range(60):
            await service.record_message(session_id, said(f"number {number} " + "word " * 200))
        await service.save_session(session_id)
        await service.close_session(session_id)
        return session_id

    session_id = asyncio.run(recorded())

    async def resaved() -> None:
        service = home.service()
        await service.open_session(session_id)
        await service.save_session(session_id)
        await service.close_session(session_id)
        assert await service.get_session(session_id) is not None

    assert best(lambda: asyncio.run(resaved()), 5) < 0.1


@pytest.mark.slow
@covers("D817")
def test_ten_thousand_files_are_discovered_within_a_second(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / f"d{folder}").mkdir()
        for number in range(100):
            (tmp_path / f"d{folder}" / f"f{number}.py").touch()

    def discovered() -> None:
        service = FileDiscoveryService(FileDiscoverySettings(), tmp_path)
        found = asyncio.run(service.discover_all(DiscoveryOptions(root=str(tmp_path))))
        assert len(found) == 10_000

    assert best(discovered, 3) < 1
