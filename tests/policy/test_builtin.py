"""The built-in rules follow from what the classes of the tools say of them."""

from ollm.domain.tools import PolicyRequest
from ollm.policy.engine import PolicyEngine
from ollm.policy.rules import KNOWN_CATEGORIES, RuleSet
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
