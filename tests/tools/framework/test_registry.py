"""T1: the registry and the schemas of the tools in it."""

from typing import Annotated, ClassVar, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.tools import ToolResult
from ollm.tools.framework.base import Tool, ToolContext, ToolRegistry, ToolSpec, make_spec
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
    assert listed == [schema.name for schema in registry.get_function_schemas()]


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


def test_tools_can_be_made_with_the_library() -> None:
    import ollm

    registry = ollm.ToolRegistry()
    registry.register(Sample)

    assert isinstance(registry.get("sample"), ollm.ToolSpec)
    assert issubclass(Sample, ollm.Tool)
