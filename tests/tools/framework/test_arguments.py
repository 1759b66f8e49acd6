"""Arguments as models write them, made into a tool."""

import contextlib
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from ollm.domain.errors import ToolFailure
from ollm.domain.tools import ToolResult
from ollm.tools.framework.arguments import build_parameters, drop_empty_rivals, find_mistakes, get_struct_type
from ollm.tools.framework.base import Tool, ToolContext, make_spec
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
        "- path: missing; expected text that is not empty (Where).",
        "- startLine: expected a whole number of at least 1, got 0.",
        "- share: expected a number greater than 0 of at most 1, got nan.",
        "- swaps[0].target: expected text that is not empty, got ''.",
        "- swaps[1]: expected an object with target, replaceAll, got 3.",
        "- action: expected one of get, set, got 'put'.",
    ]


@covers("T12.1")
@pytest.mark.parametrize("arguments", [[], 5, "text", True, ["path"], "[1]", "{bad json"])
def test_arguments_that_are_no_object_are_refused(arguments: object) -> None:
    assert "must be a JSON object" in refusal(arguments)


@covers("T12.1")
def test_a_number_is_no_bool_and_a_bool_no_number() -> None:
    assert "startLine: expected a whole number" in refusal({"path": "a", "startLine": True})
    assert "deep: expected true or false, got 5" in refusal({"path": "a", "deep": 5})


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


class Inner(msgspec.Struct):
    name: str


class Call(msgspec.Struct, rename="camel", kw_only=True):
    path: Annotated[str, Meta(min_length=1, description="Where to look.")]
    count: Annotated[int, Meta(ge=1, le=9)] = 1
    share: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    deep: bool = False
    choice: Literal["get", "set"] = "get"
    inner: Inner | None = None
    items: Annotated[tuple[Inner, ...], Meta(min_length=1)] = ()
    max_depth: int | None = None
    anything: Any = None


def mistakes(**given: Any) -> list[str]:
    return find_mistakes(given, get_struct_type(Call))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "path: missing; expected text that is not empty (Where to look)."),
        ({"path": ""}, "path: expected text that is not empty, got ''."),
        ({"path": 5}, "path: expected text that is not empty, got 5."),
        ({"path": None}, "path: expected text that is not empty, got null."),
        ({"path": "x", "count": 0}, "count: expected a whole number of at least 1 of at most 9, got 0."),
        ({"path": "x", "count": 10}, "count: expected a whole number of at least 1 of at most 9, got 10."),
        ({"path": "x", "count": True}, "count: expected a whole number of at least 1 of at most 9, got true."),
        ({"path": "x", "count": 1.5}, "count: expected a whole number of at least 1 of at most 9, got 1.5."),
        ({"path": "x", "share": 0}, "share: expected a number greater than 0 less than 1, got 0."),
        ({"path": "x", "share": 1}, "share: expected a number greater than 0 less than 1, got 1."),
        ({"path": "x", "share": False}, "share: expected a number greater than 0 less than 1, got false."),
        ({"path": "x", "deep": 1}, "deep: expected true or false, got 1."),
        ({"path": "x", "choice": "put"}, "choice: expected one of get, set, got 'put'."),
        ({"path": "x", "inner": 3}, "inner: expected an object with name, got 3."),
        ({"path": "x", "inner": {}}, "inner.name: missing; expected text."),
        ({"path": "x", "inner": {"name": 1}}, "inner.name: expected text, got 1."),
        ({"path": "x", "inner": {"name": "n", "x": 1}}, "inner.x: no such parameter; the parameters are name."),
        (
            {"path": "x", "items": []},
            "items: expected a list with at least one item, each an object with name, got an empty list.",
        ),
        ({"path": "x", "items": [{"name": "n"}, {}]}, "items[1].name: missing; expected text."),
        (
            {"path": "x", "items": {"a": 1}},
            "items: expected a list with at least one item, each an object with name, got an object.",
        ),
        ({"path": "x", "maxDepth": [1]}, "maxDepth: expected a whole number, got a list."),
        ({"path": "x", "maxdepth": 1}, 'maxdepth: no such parameter; did you mean "maxDepth"?'),
        (
            {"path": "x", "zzzzzzz": 1},
            (
                "zzzzzzz: no such parameter; the parameters are "
                "path, count, share, deep, choice, inner, items, maxDepth, anything."
            ),
        ),
        ({"path": "x", "choice": "y" * 80}, "choice: expected one of get, set, got '" + "y" * 56 + "...."),
    ],
)
def test_a_mistake_in_words(given: dict[str, Any], line: str) -> None:
    assert mistakes(**given) == [line]


def test_every_mistake_is_told_unknown_names_first() -> None:
    assert [line.partition(":")[0] for line in mistakes(bogus=1, count="x", deep="x")] == [
        "bogus",
        "path",
        "count",
        "deep",
    ]


class InnerSchema(msgspec.Struct, rename="camel"):
    first_name: str


class Everything(msgspec.Struct):
    """A docstring
    over   lines.
    """

    text: Annotated[str, Meta(min_length=1, description="A text.")]
    count: Annotated[int, Meta(ge=1)] = 1
    share: float = 0.5
    flag: bool = False
    choice: Literal["a", "b"] = "a"
    several: tuple[InnerSchema, ...] = ()
    listed: list[int] = []
    maybe: Annotated[int | None, Meta(description="Perhaps.")] = None
    anything: Any = None


class Nothing(msgspec.Struct):
    flag: bool = True


def test_every_kind_of_parameter() -> None:
    assert build_parameters(Everything) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "A text."},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "flag": {"type": "boolean"},
            "choice": {"type": "string", "enum": ["a", "b"]},
            "several": {
                "type": "array",
                "items": {"type": "object", "properties": {"firstName": {"type": "string"}}, "required": ["firstName"]},
            },
            "listed": {"type": "array", "items": {"type": "integer"}},
            "maybe": {"type": "integer", "description": "Perhaps."},
            "anything": {},
        },
        "required": ["text"],
    }
    assert "required" not in build_parameters(Nothing)
