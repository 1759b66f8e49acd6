"""Calls that a model wrote as text, read and repaired."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ollm.domain.tools import ToolSchema
from ollm.providers.base import CallPiece
from ollm.providers.text_calls.repair import (
    NO_CALL_MISTAKE,
    ParsedCalls,
    parse_calls,
    repair_arguments,
)
from ollm.providers.text_calls.stream_parser import JsonEndScanner, MarkEndScanner

OFFERED = {
    name: ToolSchema(name=name, description="", parameters={"type": "object", "properties": properties})
    for name, properties in {
        "ls": {"path": {"type": "string"}, "depth": {"type": "integer"}},
        "read": {"path": {"type": "string"}},
    }.items()
}


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('{"name": "ls", "arguments": {"path": "."}}', [("ls", {"path": "."})]),
        ('{"tool": "ls", "parameters": {"path": "."}}', [("ls", {"path": "."})]),
        ('{"name": "functions.ls", "args": {}}', [("ls", {})]),
        ('{"name": "ls", "arguments": "{\\"path\\": \\".\\"}"}', [("ls", {"path": "."})]),
        ('{"name": "ls", "path": ".", "extra": 1}', [("ls", {"path": "."})]),
        ('{"ls": {"path": "."}}', [("ls", {"path": "."})]),
        ('[{"name": "ls"}, {"name": "read", "arguments": {"path": "a"}}]', [("ls", {}), ("read", {"path": "a"})]),
        ('{"name": "ls"}\n{"name": "read"}', [("ls", {}), ("read", {})]),
        ('{"tool_calls": [{"function": {"name": "ls", "arguments": {}}}]}', [("ls", {})]),
        ('{"function_call": {"name": "ls"}}', [("ls", {})]),
        ('<tool_call>{"name": "ls"}</tool_call>', [("ls", {})]),
        ("{'name': 'ls', 'arguments': {'path': '.',}}", [("ls", {"path": "."})]),
        (
            "<function=ls><parameter=path>\n.\n</parameter><parameter=depth>3</parameter></function>",
            [("ls", {"path": ".", "depth": 3})],
        ),
        ('<invoke name="ls"><parameter name="path">5</parameter></invoke>', [("ls", {"path": "5"})]),
        ("<ls><path>a b</path></ls>", [("ls", {"path": "a b"})]),
        ('<ls>{"path": "."}</ls>', [("ls", {"path": "."})]),
        ("<ls></ls>", [("ls", {})]),
        ("<ls>", [("ls", {})]),
    ],
)
def test_every_form_of_a_call(text: str, calls: list[tuple[str, Any]]) -> None:
    assert parse_calls(text, OFFERED) == ParsedCalls(calls=tuple(CallPiece(*call) for call in calls))


@pytest.mark.parametrize(
    ("text", "mistake", "meant"),
    [
        ('{"name": "rm"}', "there is no tool named 'rm'; the tools are ls, read.", True),
        ("<function=rm></function>", "there is no tool named 'rm'; the tools are ls, read.", True),
        ("<rm></rm>", NO_CALL_MISTAKE, True),
        ('{"a": 1}', NO_CALL_MISTAKE, False),
        ("[]", NO_CALL_MISTAKE, False),
        ("nonsense", NO_CALL_MISTAKE, True),
        (
            '{"name": "ls", "arguments": {"type": "object", "properties": {}}}',
            "that is the description of ls, not a call with values.",
            True,
        ),
        ("<ls>what is this</ls>", "the parameters of ls cannot be read.", True),
        ('[[[[[{"name": "ls"}]]]]]', NO_CALL_MISTAKE, False),
        ("[" * 100_000, NO_CALL_MISTAKE, True),
        ('{"name": "' + "x" * 100 + '"}', "there is no tool named '" + "x" * 60 + "'; the tools are ls, read.", True),
    ],
)
def test_what_is_no_call_says_why(text: str, mistake: str, meant: bool) -> None:
    assert parse_calls(text, OFFERED) == ParsedCalls(mistake=mistake, meant=meant)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{'a': 1}", {"a": 1}),
        ('{"a": 1', {"a": 1}),
        ("[1]", "[1]"),
        ("words", "words"),
        ("", ""),
        ("{}", "{}"),
    ],
)
def test_arguments_that_are_not_quite_json(text: str, arguments: Any) -> None:
    assert repair_arguments(text) == arguments


JSON = st.recursive(
    st.none() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def scan_in_parts(scanner: JsonEndScanner | MarkEndScanner, text: str, size: int) -> int | None:
    """Find the end, fed `size` characters at a time."""
    for start in range(0, len(text), size):
        end = scanner.scan(text[start : start + size])
        if end is not None:
            return start + end
    return None


@given(JSON, st.integers(1, 5))
def test_any_value_in_brackets_ends_where_it_ends(value: object, size: int) -> None:
    text = json.dumps([value], ensure_ascii=False)

    assert scan_in_parts(JsonEndScanner(), text + "]}", size) == len(text)
