"""Rules as people write them are read whole, and a mistake becomes a rule that asks and says why."""

from typing import Any

import pytest

from ollm.domain.tools import Risk
from ollm.policy.rules import RuleSet, RuleSource, read_rules, rule_matches
from tests.policy.conftest import Place

CONDITION = {"param": "command", "operator": "program", "value": ["rm", "dd"], "flags": ["force"]}
MISTAKES: list[tuple[Any, str]] = [
    ("x", "not a mapping"), ({"tool": "x", "action": "deny", "why": 1}, "unknown key why"),
    ({"action": "deny"}, "tool must be a name"), ({"tool": "", "action": "deny"}, "tool must be a name"),
    ({"tool": "x", "action": "no"}, "action must be one of allow, ask, deny"),
    ({"tool": "x", "action": "deny", "conditions": "y"}, "conditions must be a list"),
    ({"tool": "x", "action": "deny", "conditions": {}}, "conditions must be a list"),
    ({"tool": "x", "action": "deny", "risk": "huge"}, "risk must be low, medium or high"),
    ({"tool": "x", "action": "deny", "message": 3}, "message must be text"),
]  # fmt: skip
BAD_CONDITIONS: list[tuple[Any, str]] = [
    ("x", "a condition is not a mapping"), ({**CONDITION, "x": 1}, "unknown key x"),
    ({**CONDITION, "param": ""}, "needs a param"), ({**CONDITION, "operator": "is"}, "operator must be one of"),
    ({**CONDITION, "value": None}, "needs a value"), ({**CONDITION, "value": []}, "needs a value"),
    ({**CONDITION, "value": 3}, "the value of program must be text"), ({**CONDITION, "value": ""}, "must be text"),
    ({**CONDITION, "flags": [3]}, "flags must be names"), ({**CONDITION, "flags": ["--"]}, "flags must be names"),
    ({**CONDITION, "operator": "equals"}, "flags go with the operator program"),
    ({"param": "x", "operator": "matches", "value": "("}, "'(' is not a regular expression: missing )"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "said"), MISTAKES)
def test_a_mistake_in_a_rule_makes_its_tool_ask(entry: Any, said: str) -> None:
    (rule,) = read_rules([entry])

    assert (rule.action, said in rule.problem, rule.message) == ("ask", True, rule.problem)
    assert rule.tool == ((isinstance(entry, dict) and entry.get("tool")) or "*")
    assert RuleSet(rules=(rule,)).problems == (rule.problem,)


@pytest.mark.parametrize(("entry", "said"), BAD_CONDITIONS)
def test_a_mistake_in_a_condition_makes_its_tool_ask(entry: Any, said: str) -> None:
    (rule,) = read_rules([{"tool": "shell", "action": "allow", "conditions": [entry]}])

    assert (rule.tool, rule.action, said in rule.problem) == ("shell", "ask", True)


def test_a_rule_is_read_whole_with_where_it_stands() -> None:
    source = RuleSource(file="f.yaml", lines=(7,))
    entry = {"tool": "shell", "action": "deny", "conditions": [CONDITION], "risk": "low", "message": "no"}
    first, second = read_rules([entry, {"tool": "*", "action": "ask"}], source)

    assert (first.reference.file, first.reference.line, second.reference.line) == ("f.yaml", 7, None)
    assert first.reference.text == "deny shell, command program rm | dd with force"
    assert (first.risk, first.message, first.problem, first.tightens) == (Risk("low"), "no", "", False)
    assert first.conditions[0].flags == ("force",)
    assert second.conditions == ()
    assert RuleSet(rules=(first, second)).problems == ()


def test_a_workspace_allows_nothing_and_only_tightens() -> None:
    source = RuleSource(workspace=True)
    rules = read_rules([{"tool": "a", "action": "allow"}, {"tool": "b", "action": "deny"}, "bad"], source)

    assert [(rule.tool, rule.action, rule.tightens) for rule in rules] == [("b", "deny", True), ("*", "ask", True)]


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
