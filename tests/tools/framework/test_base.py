"""What a tool is: its class, what it needs, and one call of it."""

from typing import ClassVar

import pytest

from ollm.domain.tools import Location, Risk, ToolResult, ToolSchema, Verdict
from ollm.tools.framework.base import (
    BoundTool,
    SmallForm,
    Tool,
    ToolContext,
    ToolDescription,
    bind_tool,
    build_confirmation,
    describe_class,
    make_spec,
)


class Plain(Tool[str], frozen=True):
    """Says
    hello."""

    name: ClassVar[str] = "plain"
    who: str
    how_often: int = 2
    where: str | None = None

    def summary(self) -> str:
        return f"Greet {self.who}"

    async def run(self, context: ToolContext, needs: str) -> ToolResult:
        return ToolResult(llm_content=f"{needs} {self.who}" * self.how_often)


class Reaching(Plain, frozen=True):
    """Touches a file."""

    name: ClassVar[str] = "reaching"
    category = "write"
    risk = Risk.HIGH
    priority: ClassVar[dict] = {"code": 3}
    keep = "ends"
    small = SmallForm(description="Touch.")

    def locations(self) -> list[Location]:
        return [Location(target=self.who, access="write")]

    async def preview(self, context: ToolContext, needs: str) -> str:
        return f"preview of {self.who} with {needs}"


def test_a_class_says_all_that_is_known_of_its_tool() -> None:
    assert describe_class(Plain) == ToolDescription(
        name="plain",
        description="Says hello.",
        parameters={
            "type": "object",
            "properties": {
                "who": {"type": "string"},
                "howOften": {"type": "integer"},
                "where": {"type": "string"},
            },
            "required": ["who"],
        },
        category=None,
        risk=Risk.LOW,
        reads_only=False,
        priority={},
        keep="head",
        small=None,
    )
    found = describe_class(Reaching)
    assert (found.category, found.risk, found.priority, found.keep) == ("write", Risk.HIGH, {"code": 3}, "ends")
    assert found.small == SmallForm(description="Touch.")
    assert found.schema == ToolSchema(name="reaching", description="Touches a file.", parameters=found.parameters)


def test_a_call_has_its_parameters_with_defaults_and_without_what_was_not_given() -> None:
    call = make_spec(Plain, "hello").parse({"who": "Ada"})

    assert call.params == {"who": "Ada", "howOften": 2}
    assert call.summary() == "Greet Ada"
    assert call.locations() == []


async def test_a_call_runs_with_what_its_class_was_registered_with(context: ToolContext) -> None:
    call = bind_tool(Plain, {"who": "Ada", "how_often": "1"}, "hello")

    assert isinstance(call, BoundTool)
    assert (await call.run(context)).llm_content == "hello Ada"
    assert await call.preview(context) == ""
    reaching = bind_tool(Reaching, {"who": "f"}, "care")
    assert await reaching.preview(context) == "preview of f with care"
    assert [location.target for location in reaching.locations()] == ["f"]


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_nobody_is_asked_about_what_policy_decided(decision: str) -> None:
    assert build_confirmation("t", "d", [], Verdict(decision=decision, reason="r", risk=Risk.LOW)) is None


def test_a_person_is_asked_with_all_that_policy_said() -> None:
    verdict = Verdict(decision="ask", reason="it writes", risk=Risk.HIGH, grant="g", prefix="p")

    asked = bind_tool(Reaching, {"who": "f"}, "").confirmation(verdict)

    assert asked is not None
    assert (asked.call_id, asked.tool, asked.description, asked.risk) == ("", "reaching", "Greet f", Risk.HIGH)
    assert (asked.reason, asked.locations, asked.rule) == ("it writes", ("f",), None)
    assert (asked.grant, asked.prefix, asked.locked) == ("g", "p", False)


def test_what_is_locked_cannot_be_granted() -> None:
    verdict = Verdict(decision="ask", reason="r", risk=Risk.LOW, grant="g", prefix="p", locked=True)

    asked = build_confirmation("t", "d", [], verdict)

    assert asked is not None
    assert (asked.grant, asked.prefix, asked.locked) == (None, None, True)
