"""The built-in rules follow from what the classes of the tools say of them."""

from typing import Any

import pytest

from ollm.domain.tools import PolicyRequest, ToolCategory
from ollm.policy.builtin import KNOWN_CATEGORIES, find_locations, list_builtin_rules
from ollm.policy.engine import PolicyEngine
from ollm.policy.rules import RuleSet
from ollm.tools.catalogue import TOOLS, list_categories
from tests.policy.conftest import Place


def test_every_tool_of_ours_says_what_it_is_for() -> None:
    assert list_categories().keys() == TOOLS.keys()


def test_an_engine_without_a_catalogue_knows_the_tools_as_their_classes_say() -> None:
    assert KNOWN_CATEGORIES.items() <= list_categories().items()


def test_a_new_tool_is_judged_by_the_category_its_class_names(place: Place) -> None:
    engine = PolicyEngine(RuleSet(), place.boundary, categories={"peek": "read", "scribble": "write"})

    peek, scribble, other = (engine.evaluate(PolicyRequest(tool=tool, params={})) for tool in ("peek", "scribble", "x"))

    assert (peek.decision, peek.reason) == ("allow", "it only reads")
    assert (scribble.decision, scribble.risk) == ("ask", "medium")
    assert other.rule is not None
    assert other.rule.layer == "default"


@pytest.mark.parametrize(
    ("tool", "category", "params", "found"),
    [
        ("read_file", "read", {"path": "a"}, [("a", "read")]),
        ("read_many_files", "read", {"paths": ["a", "b", 3, ""]}, [("a", "read"), ("b", "read")]),
        ("read_many_files", "read", {"paths": ("a",), "path": "c"}, [("c", "read"), ("a", "read")]),
        ("read_many_files", "read", {"paths": "a"}, []),
        ("write_file", "write", {"path": "a"}, [("a", "write")]),
        ("shell", "run", {"cwd": "d", "path": "a"}, [("d", "run")]),
        ("web_fetch", "web", {"path": "a"}, [("a", "read")]),
        ("other", None, {"path": "a", "cwd": "d"}, [("a", "read")]),
        ("glob", "read", {"pattern": "/etc/*"}, [("/etc/*", "read")]),
        ("glob", "read", {"pattern": "../*"}, [("../*", "read")]),
        ("glob", "read", {"pattern": "a/../*"}, [("a/../*", "read")]),
        ("glob", "read", {"pattern": "a/*", "path": "src"}, [("src", "read")]),
        ("glob", "read", {"pattern": 3}, []),
        ("grep", "read", {"pattern": "/etc"}, []),
    ],
)
def test_what_a_call_touches(
    tool: str, category: ToolCategory | None, params: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    assert [(place.target, place.access) for place in find_locations(tool, category, params)] == found


def test_the_rules_are_listed_by_what_they_allow() -> None:
    rules = list_builtin_rules({"write_file": "write", "shell": "run", "ls": "read", "grep": "read", "goal": "notes"})

    assert [(rule.reference.text, rule.risk, rule.message) for rule in rules if rule.reference] == [
        ("allow grep", "low", "it only reads"),
        ("allow ls", "low", "it only reads"),
        ("allow goal", "low", "it only updates the agent's notes"),
        ("ask write_file", "medium", "it changes files"),
        ("ask shell", "high", "it may modify files"),
    ]
