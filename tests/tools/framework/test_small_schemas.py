"""Tools as a small window can bear them."""

from typing import Any

import pytest

from ollm.tools.framework.base import SmallForm, ToolDescription
from ollm.tools.framework.small_schemas import BARE_WINDOW_TOKENS, SMALL_WINDOW_TOKENS, shorten_schema

FULL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "depth": {"type": "integer", "description": "How deep."},
        "extra": {"type": "boolean", "description": "More."},
    },
    "required": ["path"],
}


def make(small: SmallForm | None = None, **more: Any) -> ToolDescription:
    return ToolDescription(**{"name": "t", "description": "First. Second.", "parameters": FULL, "small": small, **more})


def names(window: int, small: SmallForm | None) -> list[str]:
    return list(shorten_schema(make(small), window).parameters["properties"])


def test_what_is_required_stays_without_words() -> None:
    found = shorten_schema(make(SmallForm(description="Few words.")), 5000)

    assert found.description == "Few words."
    assert found.parameters == {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def test_optional_parameters_are_shown_by_the_size_of_the_window() -> None:
    form = SmallForm(description="x", parameters=("depth",), useful_parameters=("extra",))

    assert names(SMALL_WINDOW_TOKENS - 1, form) == ["path", "depth"]
    assert names(SMALL_WINDOW_TOKENS, form) == ["path", "depth", "extra"]


@pytest.mark.parametrize(
    ("window", "clear", "description"),
    [
        (BARE_WINDOW_TOKENS - 1, True, ""),
        (BARE_WINDOW_TOKENS, True, "Words."),
        (BARE_WINDOW_TOKENS - 1, False, "Words."),
    ],
)
def test_in_the_smallest_window_a_clear_name_is_enough(window: int, clear: bool, description: str) -> None:
    assert shorten_schema(make(SmallForm(description="Words.", clear_name=clear)), window).description == description


def test_another_form_may_stand_in_for_the_full_one() -> None:
    form = SmallForm(
        description="x", schema={"type": "object", "properties": {"all": {"type": "string"}}}, parameters=("all",)
    )

    assert names(1000, form) == ["all"]


def test_a_tool_that_says_nothing_keeps_its_first_sentence_and_what_it_requires() -> None:
    found = shorten_schema(make(), 1000)

    assert (found.description, list(found.parameters["properties"])) == ("First", ["path"])
    assert len(shorten_schema(make(description="x" * 500), 1000).description) == 120
    free = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(6)}}
    found = shorten_schema(make(parameters=free), 1000)
    assert list(found.parameters["properties"]) == ["p0", "p1", "p2", "p3"]
    assert "required" not in found.parameters
    assert shorten_schema(make(parameters={}), 1000).parameters == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("value", "small"),
    [
        ({"type": "string", "description": "d", "enum": ["a"], "default": "a"}, {"type": "string", "enum": ["a"]}),
        ({"const": 5, "title": "t"}, {"const": 5}),
        ({"$ref": "#/$defs/x", "description": "d"}, {"$ref": "#/$defs/x"}),
        (
            {"anyOf": [{"type": "string", "title": "t"}, {"type": "null"}, 5]},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        ({"type": "array", "items": {"type": "string", "title": "t"}}, {"type": "array", "items": {"type": "string"}}),
        (
            {"type": "object", "additionalProperties": {"type": "integer", "title": "t"}},
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ),
        ({"type": "object", "additionalProperties": False}, {"type": "object"}),
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]},
            {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "title": "t"}}},
            {"type": "object", "properties": {"a": {"type": "string"}}},
        ),
    ],
)
def test_types_choices_and_references_stay_and_words_go(value: dict, small: dict) -> None:
    parameters = {"type": "object", "properties": {"v": value}, "required": ["v"]}

    assert shorten_schema(make(parameters=parameters), 1000).parameters["properties"] == {"v": small}


def test_shared_definitions_stay() -> None:
    parameters = {**FULL, "$defs": {"x": {"type": "string", "title": "t"}}, "definitions": 5}

    found = shorten_schema(make(parameters=parameters), 1000).parameters
    assert found["$defs"] == {"x": {"type": "string"}}
    assert "definitions" not in found
