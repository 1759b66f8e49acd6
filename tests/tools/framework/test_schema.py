"""JSON Schemas of tool parameters: short, because every model reads them with every request."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta
from msgspec import inspect as types

from ollm.tools.framework.schema import (
    build_parameters,
    build_schema,
    describe_tool,
    find_note,
    get_struct_type,
    is_optional,
    unwrap_type,
)


class Inner(msgspec.Struct, rename="camel"):
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
    several: tuple[Inner, ...] = ()
    listed: list[int] = []
    maybe: Annotated[int | None, Meta(description="Perhaps.")] = None
    anything: Any = None


class Nothing(msgspec.Struct):
    flag: bool = True


def kind(annotation: Any) -> types.Type:
    return types.type_info(annotation)


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


def test_a_type_without_a_schema_is_an_error_of_ours() -> None:
    with pytest.raises(TypeError, match="no JSON Schema for a parameter of type"):
        build_schema(kind(set[int]))


def test_a_description_is_the_docstring_on_one_line() -> None:
    assert describe_tool(Everything) == "A docstring over lines."
    assert describe_tool(type("Bare", (), {"__doc__": None})) == ""


def test_a_structs_type_is_worked_out_once() -> None:
    assert get_struct_type(Everything) is get_struct_type(Everything)


@pytest.mark.parametrize(
    ("annotation", "optional"),
    [
        (int, False),
        (int | None, True),
        (Annotated[int | None, Meta(description="x")], True),
        (Any, True),
        (None, True),
        (int | str, False),
    ],
)
def test_whether_null_is_a_value(annotation: Any, optional: bool) -> None:
    assert is_optional(kind(annotation)) is optional


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, types.IntType),
        (int | None, types.IntType),
        (Annotated[Annotated[str, Meta(description="x")] | None, Meta(description="y")], types.StrType),
        (int | str, types.UnionType),
    ],
)
def test_the_type_itself_without_annotations(annotation: Any, expected: type) -> None:
    assert isinstance(unwrap_type(kind(annotation)), expected)


@pytest.mark.parametrize(
    ("annotation", "note"),
    [
        (int, ""),
        (Annotated[int, Meta(ge=1)], ""),
        (Annotated[int, Meta(description="outer")], "outer"),
        (Annotated[int, Meta(description="inner")] | None, "inner"),
        (Annotated[Annotated[int, Meta(description="inner")] | None, Meta(description="outer")], "outer"),
        (Annotated[Annotated[int, Meta(description="inner")] | None, Meta(title="t")], "inner"),
    ],
)
def test_a_note_is_found_however_deep(annotation: Any, note: str) -> None:
    assert find_note(kind(annotation)) == note
