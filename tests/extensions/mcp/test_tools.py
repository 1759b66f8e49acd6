"""A server's tools as the registry holds them."""

from typing import Any

import pytest

from ollm.domain.errors import ToolFailure
from ollm.domain.messages import JsonObject
from ollm.domain.tools import Risk, ToolResult, Verdict
from ollm.extensions.mcp.catalogue import (
    MAX_SHOWN_CHARACTERS,
    MAX_SUMMARY_CHARACTERS,
    Catalogue,
    McpInvocation,
    OfferedTool,
    build_specs,
    check_arguments,
    fingerprint_tool,
)
from ollm.extensions.mcp.settings import McpServer
from ollm.tools.framework.base import ToolContext

SERVER = McpServer(name="notes", command="notes-server", args=("--stdio",))
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "tag": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
WRONG = "notes__add was not run: its arguments are wrong."
ADD = OfferedTool(name="notes__add", remote="add", description="Add a note.", parameters=PARAMETERS)


async def run(arguments: JsonObject, _emit: Any) -> ToolResult:
    return ToolResult(llm_content=f"ran {arguments}")


def specs(**found: Any) -> list[Any]:
    return build_specs(SERVER, Catalogue(**found), lambda _tool: run, run)


async def test_a_tool_is_parsed_run_and_asks() -> None:
    (spec,) = specs(tools=(ADD,))
    call = spec.parse({"text": "hi"})

    assert (spec.name, spec.description, spec.parameters, spec.risk) == (
        *("notes__add", "Add a note.", PARAMETERS),
        Risk.MEDIUM,
    )
    assert not spec.reads_only
    assert call.summary() == 'notes__add {"text":"hi"}'
    assert call.locations() == []
    assert await call.preview(ToolContext) == ""
    assert (await call.run(ToolContext)).llm_content == "ran {'text': 'hi'}"


def test_resources_are_read_by_a_tool_of_their_own_unless_the_name_is_taken() -> None:
    assert [spec.name for spec in specs(tools=(ADD,), resources=True)] == ["notes__add", "notes__read_resource"]
    assert [spec.name for spec in specs(resources=False)] == []
    own = OfferedTool(name="notes__read_resource", remote="read_resource", description="", parameters={})
    assert len(specs(tools=(own,), resources=True)) == 1
    (reader,) = specs(resources=True)
    assert reader.description == "Read a resource of notes, or list them."
    assert reader.parse({}).params == {}


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"text": "a"}, {"text": "a"}),
        ('{"text": "a"}', {"text": "a"}),
        ({"text": 5, "tag": None}, {"text": 5, "tag": None}),
    ],
)
def test_arguments_are_an_object_written_out_or_not(given: Any, taken: JsonObject) -> None:
    assert check_arguments("notes__add", given, PARAMETERS) == taken


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


def test_what_the_schema_does_not_forbid_is_for_the_server_to_say() -> None:
    assert check_arguments("t", {"any": 1}, {}) == {"any": 1}
    assert check_arguments("t", {"any": 1}, {"properties": [], "required": "x"}) == {"any": 1}
    with pytest.raises(ToolFailure, match="available: none"):
        check_arguments("t", {"any": 1}, {"additionalProperties": False})


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


def test_the_question_shows_the_whole_call() -> None:
    asked = McpInvocation("notes__add", {"text": "hi"}, run).confirmation(
        Verdict(decision="ask", reason="why", risk=Risk.MEDIUM)
    )

    assert asked is not None
    assert asked.description == 'notes__add {\n  "text": "hi"\n}'


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
