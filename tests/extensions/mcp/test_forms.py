"""Forms of MCP servers: what each field asks for, and what counts as an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ollm.domain.tools import ConfirmationAnswer, ConfirmationDetails
from ollm.extensions.mcp.client_features import FormRefusedError, describe_field, fill_form, parse_value, read_fields

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "who you are"},
        "age": {"type": "integer"},
        "loud": {"type": "boolean", "default": True},
        "colours": {"type": "array", "items": {"enum": ["red", "blue"]}},
        "size": {"oneOf": [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}]},
    },
    "required": ["name"],
}


def fill(answers: list[ConfirmationAnswer], schema: Any) -> tuple[dict[str, Any], list[ConfirmationDetails]]:
    asked: list[ConfirmationDetails] = []

    async def ask(details: ConfirmationDetails) -> ConfirmationAnswer:
        asked.append(details)
        return answers.pop(0)

    return asyncio.run(fill_form("inn", "Tell me.", schema, ask)), asked


def typed(*texts: str) -> list[ConfirmationAnswer]:
    return [ConfirmationAnswer(approved=True, text=text) for text in texts]


def test_each_field_is_asked_and_comes_in_its_own_type() -> None:
    found, asked = fill(typed("Ada", "36", "", "Red, blue", "Large"), SCHEMA)

    assert found == {"name": "Ada", "age": 36, "loud": True, "colours": ["red", "blue"], "size": "l"}
    assert asked[0].description.startswith("inn asks: Tell me.\nname: who you are")
    assert asked[-1].description.startswith("size (one of small, large")
    assert all(details.typed and details.locked for details in asked)


def test_what_may_be_empty_is_left_out_and_what_is_wrong_is_asked_again() -> None:
    found, asked = fill(typed("Ada", "old", "", "", "", ""), SCHEMA)

    assert found == {"name": "Ada", "loud": True}
    assert asked[2].description.startswith("'old' is not a whole number.")


def test_a_no_or_three_wrong_answers_refuse_the_form() -> None:
    with pytest.raises(FormRefusedError):
        fill([ConfirmationAnswer(approved=False)], SCHEMA)
    with pytest.raises(FormRefusedError):
        fill(typed("", "", ""), SCHEMA)


def test_a_form_without_fields_is_a_yes_or_no() -> None:
    found, asked = fill([ConfirmationAnswer(approved=True)], {"type": "object", "properties": {}})

    assert found == {}
    assert not asked[0].typed


@pytest.mark.parametrize(
    "schema", [{}, {"properties": 3}, {"properties": {"a": None}}, {"properties": {"a": {}}, "required": 7}]
)
def test_a_schema_that_makes_no_sense_does_no_harm(schema: dict[str, Any]) -> None:
    for field in read_fields(schema):
        assert describe_field(field)
        assert parse_value("x", field) == ("x", "")
