"""Conditions held against the parameters of a call: generously to restrict, strictly to allow."""

from typing import Any

import pytest

from ollm.policy.matching import is_under, rule_matches
from ollm.policy.rules import read_rules
from tests.policy.conftest import Place

CASES: list[tuple[str, str, Any, Any, bool]] = [  # action, operator, the rule's value, what is given, does it hold
    ("deny", "equals", "a", "a", True), ("deny", "equals", "a", "b", False), ("allow", "equals", "a", "./a", True),
    ("deny", "equals", ["a", "b"], "b", True), ("deny", "contains", ".py", "src/a.py", True),
    ("deny", "contains", "..", "src/../a", True), ("allow", "contains", "..", "src/../a", False),
    ("deny", "startsWith", "src", "src/a", True), ("deny", "startsWith", "src", "a/../src/a", True),
    ("allow", "startsWith", "src", "src/../a", False), ("deny", "matches", "^s.c/", "src/a", True),
    ("deny", "matches", "^x", "src/a", False), ("deny", "under", "src", "src/a.py", True),
    ("deny", "under", "src", "srcs", False), ("deny", "under", "src", "src", True), ("deny", "program", "a", "a", True),
    ("deny", "under", "/etc", "src/dir-out/x", True), ("allow", "under", "src", "src/dir-out/x", False),
    ("deny", "under", "src", "src/dir-out/x", True), ("allow", "under", "src", "src/a.py", True),
    ("deny", "under", "~", "../home/x", True), ("deny", "under", "~/x", "../home/y", False), ("deny", "equals", "a", 3, False),
    ("deny", "under", "src", 3, False), ("deny", "contains", "a", 3, False), ("deny", "program", "a", "b", False),
    ("allow", "equals", "a", ["a", "b"], False), ("deny", "equals", "a", ["a", "b"], True), ("deny", "equals", "a", [], False),
    ("allow", "equals", "a", [], False), ("allow", "equals", "a", ["a", "./a"], True),
]  # fmt: skip


@pytest.mark.parametrize(("action", "operator", "value", "given", "held"), CASES)
def test_a_condition_on_a_path(place: Place, action: str, operator: str, value: Any, given: Any, held: bool) -> None:
    condition = {"param": "path", "operator": operator, "value": value}
    (rule,) = read_rules([{"tool": "x", "action": action, "conditions": [condition]}])

    assert rule_matches(rule, {"path": given}, place.boundary) is held
    assert rule_matches(rule, {}, place.boundary) is False


def test_a_text_that_is_no_path_is_not_taken_for_one(place: Place) -> None:
    condition = {"param": "text", "operator": "equals", "value": "a"}
    (rule,) = read_rules([{"tool": "x", "action": "deny", "conditions": [condition]}])

    assert not rule_matches(rule, {"text": "./a"}, place.boundary)


def test_a_path_is_compared_from_where_it_is_meant(place: Place) -> None:
    source = place.workspace / "src"

    assert is_under("a.py", "src", place.boundary, allows=True, base=source)
    assert not is_under("a.py", "src", place.boundary, allows=True)
    assert not is_under("a\0b", "src", place.boundary, allows=False)
