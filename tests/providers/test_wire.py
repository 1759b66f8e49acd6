"""Reading what servers send without trusting its shape."""

from typing import Any

import pytest

from ollm.domain.tools import ToolSchema
from ollm.providers.wire import as_entries, as_mapping, as_text, build_functions, parse_arguments


@pytest.mark.parametrize("value", [None, 5, "x", [1], True])
def test_what_is_no_object_list_or_text_is_an_empty_one(value: Any) -> None:
    assert as_mapping(value) == {}
    assert as_entries(value) == []
    assert as_text(value) == ("x" if value == "x" else "")


def test_what_is_one_is_taken() -> None:
    assert as_mapping({"a": 1}) == {"a": 1}
    assert as_entries([{"a": 1}, 5, {}, "x"]) == [{"a": 1}, {}]


@pytest.mark.parametrize(
    ("value", "arguments"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("  \n", {}),
        (None, {}),
        (5, {}),
        ("[1]", "[1]"),
        ('{"a":', '{"a":'),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_arguments_are_an_object_or_what_the_model_wrote(value: Any, arguments: dict | str) -> None:
    assert parse_arguments(value) == arguments


def test_tools_in_the_form_servers_take() -> None:
    assert build_functions((ToolSchema(name="n", description="d", parameters={"type": "object"}),)) == [
        {"type": "function", "function": {"name": "n", "description": "d", "parameters": {"type": "object"}}}
    ]
