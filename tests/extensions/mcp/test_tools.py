"""A server's tools as the registry holds them."""

from typing import Any

import pytest

from ollm.domain.errors import ToolFailure
from ollm.domain.messages import JsonObject
from ollm.domain.tools import ToolResult
from ollm.extensions.mcp.catalogue import (
    MAX_SHOWN_CHARACTERS,
    MAX_SUMMARY_CHARACTERS,
    McpInvocation,
    check_arguments,
    fingerprint_tool,
)
from ollm.extensions.mcp.settings import McpServer

SERVER = McpServer(name="notes", command="notes-server", args=("--stdio",))
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "tag": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
WRONG = "notes__add was not run: its arguments are wrong."


async def run(arguments: JsonObject, _emit: Any) -> ToolResult:
    return ToolResult(llm_content=f"ran {arguments}")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "notes__add was not run: the arguments must be a JSON object."),
        ("text", "notes__add was not run: the arguments must be a JSON object."),
        (None, f"{WRONG}\n- text: is missing."),
        (
            {"txt": "a"},
            f"{WRONG}\n- text: is missing.\n- txt: no such parameter; available: text, tag.",
        ),
    ],
)
def test_wrong_arguments_are_told_one_a_line(given: Any, said: str) -> None:
    with pytest.raises(ToolFailure) as found:
        check_arguments("notes__add", given, PARAMETERS)

    assert found.value.message == said
    assert found.value.kind == "ValidationError"


def test_long_arguments_are_cut_in_the_summary_and_in_the_question() -> None:
    fits = McpInvocation("t", {"a": "x" * (MAX_SUMMARY_CHARACTERS - 8)}, run)
    long = McpInvocation("t", {"a": "x" * MAX_SUMMARY_CHARACTERS}, run)
    giant = McpInvocation("t", {"a": "x" * (MAX_SHOWN_CHARACTERS + 1000)}, run)

    assert fits.summary().endswith('"}')
    assert long.summary().endswith("… 8 more characters")
    assert '"a": "xxx' in long.describe_whole()
    assert "left out" not in long.describe_whole()
    shown = giant.describe_whole()
    assert "\n… 1,013 characters are left out here; `ollm sessions view` shows them all …\n" in shown
    assert shown.endswith('x"\n}')
    assert shown.count("x") == MAX_SHOWN_CHARACTERS - 13


def test_a_grant_is_bound_to_the_program_and_to_what_the_tool_takes() -> None:
    same = fingerprint_tool(SERVER, "t", {"a": 1, "b": 2})

    assert same == fingerprint_tool(SERVER, "t", {"b": 2, "a": 1})
    assert len(same) == 16
    others = {
        fingerprint_tool(McpServer(name="notes", command="other", args=("--stdio",)), "t", {"a": 1, "b": 2}),
        fingerprint_tool(McpServer(name="notes", command="notes-server"), "t", {"a": 1, "b": 2}),
        fingerprint_tool(McpServer(name="notes", url="http://x"), "t", {"a": 1, "b": 2}),
        fingerprint_tool(SERVER, "u", {"a": 1, "b": 2}),
        fingerprint_tool(SERVER, "t", {}),
    }
    assert len(others | {same}) == 6
