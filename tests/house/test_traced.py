"""The check of requirements against tests catches what it is for."""

import os
from pathlib import Path

import pytest

from tests.ordinary_user import as_ordinary_user
from tests.requirements import REQUIREMENTS, SAME
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
