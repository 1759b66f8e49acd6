"""Tools: their classes, the registry (T1), and arguments as models write them."""

import contextlib
from typing import Annotated, ClassVar, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.tools import Risk, ToolResult, Verdict
from ollm.tools.framework.arguments import drop_empty_rivals
from ollm.tools.framework.base import (
    Tool,
    ToolContext,
    ToolRegistry,
    ToolSpec,
    build_confirmation,
    make_spec,
)
from tests.covers import covers


class Swap(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Two texts."""

    target: Annotated[str, Meta(min_length=1)]
    replace_all: bool = False


class Sample(Tool[None], frozen=True):
    """Do something
    with a path."""

    name: ClassVar[str] = "sample"
    aliases: ClassVar[dict[str, str]] = {"file": "path"}
    path: Annotated[str, Meta(min_length=1, description="Where.")]
    start_line: Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="First.")] = None
    share: Annotated[float, Meta(gt=0, le=1)] = 0.5
    names: tuple[str, ...] = ()
    swaps: tuple[Swap, ...] = ()
    action: Literal["get", "set"] = "get"
    deep: bool = False

    def summary(self) -> str:
        return f"Sample {self.path}"

    async def run(self, context: ToolContext, needs: None) -> ToolResult:
        return ToolResult(llm_content=self.path)


def parsed(arguments: object) -> Sample:
    invocation = make_spec(Sample, None).parse(arguments)
    return invocation.tool  # type: ignore[attr-defined, no-any-return]


def refusal(arguments: object) -> str:
    with pytest.raises(ToolFailure) as caught:
        parsed(arguments)
    assert caught.value.kind == "ValidationError"
    return caught.value.message


@covers("T10.1")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "a", "startLine": "5"}, {"start_line": 5}),
        ({"path": "a", "startLine": 5.0}, {"start_line": 5}),
        ({"path": "a", "start_line": 5}, {"start_line": 5}),
        ({"file": "a"}, {"path": "a"}),
        ({"path": 7}, {"path": "7"}),
        ({"path": ["a"]}, {"path": "a"}),
        ({"path": "a", "names": "b"}, {"names": ("b",)}),
        ({"path": "a", "names": '["b", "c"]'}, {"names": ("b", "c")}),
        ({"path": "a", "swaps": {"target": "x"}}, {"swaps": (Swap(target="x"),)}),
        (
            {"path": "a", "swaps": '{"target": "x", "replace_all": "true"}'},
            {"swaps": (Swap(target="x", replace_all=True),)},
        ),
        ({"path": "a", "deep": "True"}, {"deep": True}),
        ({"path": "a", "deep": 1}, {"deep": True}),
        ({"path": "a", "action": "SET"}, {"action": "set"}),
        ({"path": "a", "share": "0.25"}, {"share": 0.25}),
        ({"path": "a", "deep": None, "share": None}, {"deep": False, "share": 0.5}),
        ('{"path": "a"}', {"path": "a"}),
    ],
)
def test_what_is_plainly_meant_is_understood(arguments: object, expected: dict[str, object]) -> None:
    tool = parsed(arguments)

    assert {name: getattr(tool, name) for name in expected} == expected


@covers("T12.1", "T10.1")
def test_every_mistake_is_told_at_once_one_line_each() -> None:
    message = refusal(
        {"pth": "a", "startLine": 0, "share": float("nan"), "swaps": [{"target": ""}, 3], "action": "put"}
    )

    lines = message.splitlines()[1:]
    assert lines == [
        '- pth: no such parameter; did you mean "path"?',
        "- path: missing; expected text.",
        "- startLine: expected a whole number >= 1, not 0.",
        "- share: expected a finite number.",
        "- swaps[0].target: expected text of length >= 1, not ''.",
        "- swaps[1]: expected a mapping, not 3.",
        "- action: expected get, set, not 'put'.",
    ]


@covers("T12.1")
@pytest.mark.parametrize("arguments", [[], 5, "text", True, ["path"], "[1]", "{bad json"])
def test_arguments_that_are_no_object_are_refused(arguments: object) -> None:
    assert "must be a JSON object" in refusal(arguments)


@covers("T12.1")
def test_a_number_is_no_bool_and_a_bool_no_number() -> None:
    assert "startLine: expected a whole number" in refusal({"path": "a", "startLine": True})
    assert "deep: expected true or false, not 5" in refusal({"path": "a", "deep": 5})


@covers("T12.1")
def test_deeply_nested_arguments_are_refused_quickly() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]

    assert "path: expected text" in refusal({"path": deep})
    while isinstance(deep, list):  # taken apart here: the interpreter frees such a chain recursively
        deep = deep.pop()


@covers("T10.1")
@given(
    arguments=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["path", "startLine", "swaps", "names", "share", "x"]), inner, max_size=5)
        ),
    )
)
def test_any_arguments_are_parsed_or_refused_as_a_validation_error(arguments: object) -> None:
    with contextlib.suppress(ToolFailure):
        parsed(arguments)


def test_parameters_that_exclude_each_other_may_be_filled_in_with_nothing() -> None:
    rivals = ("query", "messageId")

    assert drop_empty_rivals({"query": "x", "messageId": 0, "offset": 0}, rivals) == {"query": "x", "offset": 0}
    assert drop_empty_rivals({"query": "", "messageId": ""}, rivals) == {"query": "", "messageId": ""}
    assert drop_empty_rivals({"query": "x", "messageId": 3}, rivals) == {"query": "x", "messageId": 3}


def named(name: str) -> ToolSpec:
    return msgspec.structs.replace(make_spec(Sample, None), name=name)


@covers("T1.1", "T1.5")
def test_a_registered_tool_is_found_by_its_name_and_no_other() -> None:
    registry = ToolRegistry()
    registry.register(Sample)

    found = registry.get("sample")

    assert found is not None
    assert found.name == "sample"
    assert registry.get("Sample") is None


@covers("T1.2")
def test_a_tool_of_the_same_name_replaces_the_first() -> None:
    registry = ToolRegistry()
    registry.register(Sample)
    other = msgspec.structs.replace(named("sample"), description="another")
    registry.register(other)

    assert registry.list() == [other]


@covers("T1.3")
def test_an_unregistered_tool_is_gone() -> None:
    registry = ToolRegistry()
    registry.register(Sample)

    assert registry.unregister("sample")
    assert registry.get("sample") is None
    assert not registry.unregister("sample")


@covers("T1.4", "T1.7")
@given(names=st.lists(st.text(min_size=1, max_size=8), max_size=12))
def test_tools_are_listed_by_name_whatever_the_order_they_came_in(names: list[str]) -> None:
    registry = ToolRegistry()
    for name in names:
        registry.register(named(name))

    listed = [spec.name for spec in registry.list()]

    assert listed == sorted(set(names))
    assert listed == [spec.name for spec in registry.list()]


@covers("T1.6")
def test_the_schema_of_a_tool_is_short_and_complete() -> None:
    schema = make_spec(Sample, None).schema

    assert schema.description == "Do something with a path."
    assert schema.parameters == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where."},
            "startLine": {"type": "integer", "description": "First."},
            "share": {"type": "number"},
            "names": {"type": "array", "items": {"type": "string"}},
            "swaps": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "target": {"type": "string"},
                        "replaceAll": {"type": "boolean"},
                    },
                    "required": ["target"],
                },
            },
            "action": {"type": "string", "enum": ["get", "set"]},
            "deep": {"type": "boolean"},
        },
        "required": ["path"],
    }


@covers("T12.1")
def test_a_thousand_mistakes_are_not_all_listed() -> None:
    message = refusal({"path": "a", "swaps": [{"target": ""}] * 1000})

    assert len(message.splitlines()) == 22


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_nobody_is_asked_about_what_policy_decided(decision: str) -> None:
    assert build_confirmation("t", "d", [], Verdict(decision=decision, reason="r", risk=Risk.LOW)) is None


def test_what_is_locked_cannot_be_granted() -> None:
    verdict = Verdict(decision="ask", reason="r", risk=Risk.LOW, grant="g", prefix="p", locked=True)

    asked = build_confirmation("t", "d", [], verdict)

    assert asked is not None
    assert (asked.grant, asked.prefix, asked.locked) == (None, None, True)
