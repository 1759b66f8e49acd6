"""What is wrong with a call's arguments, all of it, in words a model can act on."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from ollm.tools.framework.argument_errors import MAX_MISTAKES, describe_type, find_mistakes
from ollm.tools.framework.schema import get_struct_type


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


def test_right_arguments_have_no_mistakes() -> None:
    assert mistakes(path="x") == []
    assert (
        mistakes(
            path="x",
            count=9,
            share=0.1,
            deep=True,
            choice="set",
            inner={"name": "n"},
            items=[{"name": "n"}],
            maxDepth=None,
            anything=[1],
        )
        == []
    )
    assert mistakes(path="x", count=1, share=0.999, inner=None) == []


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


@pytest.mark.parametrize(("count", "said"), [(MAX_MISTAKES, MAX_MISTAKES), (MAX_MISTAKES + 1, MAX_MISTAKES + 1)])
def test_so_many_are_listed(count: int, said: int) -> None:
    found = mistakes(path="x", **{f"zzz{number}": 1 for number in range(count)})

    assert len(found) == said
    assert (found[-1] == "and more.") is (count > MAX_MISTAKES)
    assert MAX_MISTAKES == 20


def test_what_is_no_object_at_all() -> None:
    assert find_mistakes([], get_struct_type(Inner)) == [": expected an object with name, got a list."]


def test_a_struct_without_parameters_says_none() -> None:
    class Empty(msgspec.Struct):
        pass

    assert find_mistakes({"x": 1}, get_struct_type(Empty)) == ["x: no such parameter; the parameters are none."]


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int, "a whole number"),
        (float, "a number"),
        (str, "text"),
        (bool, "true or false"),
        (list[int], "a list, each a whole number"),
        (Any, "a value"),
        (Annotated[int, Meta(ge=0)] | None, "a whole number of at least 0"),
    ],
)
def test_a_type_in_words(annotation: Any, words: str) -> None:
    assert describe_type(msgspec.inspect.type_info(annotation)) == words
