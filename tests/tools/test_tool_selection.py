"""Which tools a model is shown, and how it finds the others."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ollm.app.toolbox import create_tool_registry
from ollm.domain.context import ModeName
from ollm.domain.tools import ToolSchema
from ollm.providers.text_calls.rendering import add_tool_list, make_example_call
from ollm.runtime.prompt.prefix import build_instructions, count_instruction_tokens
from ollm.services.token_counting import TokenCounter
from ollm.tools.catalogue import list_categories
from ollm.tools.framework.base import SmallForm, ToolDescription, ToolSpec
from ollm.tools.framework.tool_selection import (
    MAX_FOUND_CHARACTERS,
    MAX_SCHEMA_CHARACTERS,
    SMALL_WINDOW_TOKENS,
    build_deferred_schemas,
    find_tools,
    render_found_tools,
    select_tools,
    shorten_schema,
    split_by_budget,
    unwrap_call,
)
from tests.covers import covers

MODES: tuple[ModeName, ...] = ("assistant", "plan", "code", "debug")

READERS = {name for name, category in list_categories().items() if category in ("read", "web", "notes")}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> list[ToolSpec]:
    return create_tool_registry(tmp_path_factory.mktemp("workspace")).list()


@pytest.fixture(scope="module")
def schemas(tools: list[ToolSpec]) -> tuple[ToolSchema, ...]:
    return tuple(tool.schema for tool in tools)


def select(
    mode: ModeName, tools: Sequence[ToolDescription], window: int, most: int | None = None, *, folded: bool = False
) -> tuple[ToolSchema, ...]:
    """As a conversation does it."""
    told = count_instruction_tokens(window, mode)
    return select_tools(mode, tools, window, most, folded=folded, instruction_tokens=told)


def tokens(shown: tuple[ToolSchema, ...]) -> int:
    return TokenCounter().count_schema_texts(shown)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("window", [8_192, 16_384, 131_072])
def test_a_mode_shows_five_to_ten_tools_in_little_room(tools: list[ToolSpec], mode: ModeName, window: int) -> None:
    shown = select(mode, tools, window)

    assert 5 <= len(shown) <= (10 if window < 32_000 else 12)
    assert tokens(shown) <= min(1_500 if window < 32_000 else 2_000, 0.15 * window)
    assert [schema.name for schema in shown] == sorted(schema.name for schema in shown)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("window", [4_096, 8_192, 16_384, 131_072])
def test_the_goal_tool_is_shown_wherever_the_model_is_told_of_it(
    tools: list[ToolSpec], mode: ModeName, window: int
) -> None:
    shown = "goal" in [schema.name for schema in select(mode, tools, window)]

    assert shown is ("goal tool" in build_instructions(window, mode))


@pytest.mark.parametrize("mode", MODES)
def test_a_tiny_window_still_gets_four(tools: list[ToolSpec], mode: ModeName) -> None:
    for window in range(2_048, 3_000, 50):
        shown = select(mode, tools, window)

        assert len(shown) in (4, 5)
        assert tokens(shown) + count_instruction_tokens(window, mode) <= 0.15 * window


REQUIRED = {
    "read_file": ["path"],
    "write_file": ["path", "content"],
    "edit_file": ["path", "target", "replacement"],
    "shell": ["command"],
    "grep": ["pattern"],
    "glob": ["pattern"],
}


@pytest.mark.parametrize("window", [512, 1_024, 2_048, 2_599, 2_600, 4_096, 8_192])
def test_what_a_tool_requires_it_requires_in_every_window(tools: list[ToolSpec], window: int) -> None:
    from jsonschema import Draft202012Validator

    for full in tools:
        schema = shorten_schema(full, window)
        needed = schema.parameters.get("required", [])
        assert needed == REQUIRED.get(full.name, full.parameters.get("required", []))
        bound = Draft202012Validator(schema.parameters)
        assert bound.is_valid(make_example_call(schema).arguments)
        assert bound.is_valid({}) is not bool(needed)


def test_a_tool_without_a_word_is_listed_by_its_name(tools: list[ToolSpec]) -> None:
    (system,) = add_tool_list((), select("code", tools, 2_048), "fence")

    assert "\n- read_file(path)\n" in system.content
    assert all(shorten_schema(tool, 2_048).description for tool in tools if tool.name in ("recall", "goal", "memory"))


@pytest.mark.parametrize("mode", MODES)
def test_a_model_that_bears_few_tools_is_shown_few(tools: list[ToolSpec], mode: ModeName) -> None:
    theirs = [ToolDescription(name="mcp_1", description="Anything.", parameters={})]

    shown = [schema.name for schema in select(mode, [*tools, *theirs], 8_192, 3)]

    assert len([name for name in shown if name != "mcp_1"]) == 3
    assert len(shown) <= 4, "one from outside was configured by a person"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("window", [1_024, 2_048, 4_096, 32_768])
@pytest.mark.parametrize("most", [None, 3])
def test_what_was_folded_can_be_recalled_in_any_window(
    tools: list[ToolSpec], mode: ModeName, window: int, most: int | None
) -> None:
    before, after = (select(mode, tools, window, most, folded=folded) for folded in (False, True))

    assert "recall" in [schema.name for schema in after]
    assert len(after) <= (most or (10 if window < 32_000 else 12))
    if window >= 4_096:
        told = count_instruction_tokens(window, mode)
        assert tokens(after) + told <= max(0.15 * window, tokens(before) + told)


@covers("T10.1")
def test_a_tool_in_few_words_takes_the_calls_it_describes(tools: list[ToolSpec], tmp_path: Path) -> None:
    registry = create_tool_registry(tmp_path)
    for schema in (shorten_schema(each, window) for each in tools for window in (2_048, 4_096, 8_192)):
        call = make_example_call(schema)
        assert set(call.arguments) <= set(schema.parameters["properties"])
        spec = registry.get(schema.name)
        assert spec is not None
        if schema.name not in ("recall", "memory", "goal", "write_todos", "web_fetch"):  # these look at values too
            spec.parse(call.arguments)


def test_plan_and_assistant_show_nothing_that_changes_files(tools: list[ToolSpec]) -> None:
    for mode in ("plan", "assistant"):
        assert {schema.name for schema in select(mode, tools, 131_072)} <= READERS


def test_tools_of_extensions_are_shown_as_far_as_the_window_goes(tools: list[ToolSpec]) -> None:
    theirs = [ToolDescription(name=f"mcp_{number}", description="word " * 100, parameters={}) for number in range(40)]

    shown = select("code", [*tools, *theirs], 16_384)

    names = {schema.name for schema in shown}
    assert {"read_file", "edit_file", "shell"} <= names
    assert 5 < sum(name.startswith("mcp_") for name in names) < 30
    assert tokens(shown) <= 0.15 * 16_384 + 1_500


@covers("T1.6")
def test_all_tools_together_are_under_eight_kilobytes(schemas: tuple[ToolSchema, ...]) -> None:
    assert len(msgspec.json.encode(schemas)) < 8_000
    assert all(schema.description.endswith(".") for schema in schemas)


@covers("T1.6")
def test_a_schema_holds_no_titles_defaults_or_null_branches(schemas: tuple[ToolSchema, ...]) -> None:
    text = msgspec.json.encode([schema.parameters for schema in schemas]).decode()

    for word in ('"title"', '"default"', '"null"', '"anyOf"', "$ref", "$defs"):
        assert word not in text


@covers("T1.6")
def test_the_schemas_are_valid_json_schemas(schemas: tuple[ToolSchema, ...]) -> None:
    from jsonschema import Draft202012Validator

    for schema in schemas:
        Draft202012Validator.check_schema(schema.parameters)
        assert schema.parameters["type"] == "object"


def test_listing_the_tools_makes_nothing_in_the_workspace(tmp_path: Path) -> None:
    create_tool_registry(tmp_path)

    assert list(tmp_path.iterdir()) == []


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


def test_optional_parameters_are_shown_by_the_size_of_the_window() -> None:
    form = SmallForm(description="x", parameters=("depth",), useful_parameters=("extra",))

    assert names(SMALL_WINDOW_TOKENS - 1, form) == ["path", "depth"]
    assert names(SMALL_WINDOW_TOKENS, form) == ["path", "depth", "extra"]


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


WIDE, BRIEF = 16_000, 15_999


def tool(name: str, description: str = "") -> ToolSchema:
    return ToolSchema(name=name, description=description, parameters={"type": "object"})


def cost(tools: Sequence[ToolSchema]) -> int:
    """Ten a tool."""
    return 10 * len(tools)


def split(names: list[str], budget: float, most: float = math.inf) -> tuple[list[str], list[str]]:
    shown, hidden = split_by_budget([tool(name) for name in names], budget, cost, WIDE, most)
    return [found.name for found in shown], [found.name for found in hidden]


def test_servers_take_turns_the_smallest_first() -> None:
    names = ["a__1", "a__2", "a__3", "b__1", "c__1", "c__2", "c__3"]

    assert split(names, 30) == (["b__1"], [name for name in names if name != "b__1"])
    assert split(names, 50)[0] == ["b__1", "a__1", "c__1"]
    assert split(names, 60)[0] == ["b__1", "a__1", "c__1", "a__2"]
    assert split(names, 1000, 4)[0] == ["b__1", "a__1"]


def test_finding_names_the_servers_a_line_each_or_their_names_alone() -> None:
    hidden = [tool("git__log"), tool("git__diff"), tool("mine")]

    find, use = build_deferred_schemas(hidden, WIDE)
    assert (find.name, use.name) == ("find_tool", "use_tool")
    assert find.description == (
        "Find more tools by what they do; use_tool calls them. There are:\ngit (2): log, diff\nextensions (1): mine"
    )
    assert build_deferred_schemas(hidden, BRIEF)[0].description == (
        "Find more tools by what they do; use_tool calls them. There are: git (2), extensions (1)"
    )
    assert find.parameters["required"] == ["query"]
    assert use.parameters["required"] == ["name", "arguments"]


@pytest.mark.parametrize(
    ("name", "arguments", "call"),
    [
        ("use_tool", {"name": "a", "arguments": {"x": 1}}, ("a", {"x": 1})),
        ("use_tool", {"name": "a", "arguments": '{"x":1}'}, ("a", {"x": 1})),
        ("use_tool", {"name": "a", "x": 1}, ("a", {"x": 1})),
        ("use_tool", {"name": "a"}, ("a", {})),
        ("use_tool", {"name": "a", "arguments": "nonsense"}, None),
        ("use_tool", {"name": "a", "arguments": [1]}, None),
        ("use_tool", {"name": "", "arguments": {}}, None),
        ("use_tool", {"name": 5, "arguments": {}}, None),
        ("use_tool", {"name": "use_tool", "arguments": {}}, None),
        ("other", {"name": "a", "arguments": {}}, None),
    ],
)
def test_a_call_of_use_tool_is_the_call_it_stands_for(
    name: str, arguments: dict, call: tuple[str, dict] | None
) -> None:
    assert unwrap_call(name, arguments) == (call or (name, arguments))


TOOLS = [
    tool("git__log", "Show the history."),
    tool("git__diff", "Show changes in files."),
    tool("mail__send", "Send a message."),
    tool("history", "Nothing."),
]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("log", ["git__log"]),
        ("show history", ["history", "git__log", "git__diff"]),
        ("GIT", ["git__diff", "git__log"]),
        ("git__log", ["git__log"]),
        ("zebra", []),
        ("", []),
        ("message", ["mail__send"]),
    ],
)
def test_tools_are_found_by_words_in_names_and_descriptions_the_best_first(query: str, names: list[str]) -> None:
    assert [found.name for found in find_tools(query, TOOLS)] == names


def test_what_was_found_comes_with_arguments_and_an_example() -> None:
    assert render_found_tools(TOOLS[:1]) == (
        'git__log: Show the history.\n  arguments: {"type":"object"}\n'
        'Call one with use_tool {"name":"git__log","arguments":{}}, its arguments filled in.'
    )


def test_a_schema_that_is_too_long_is_shortened() -> None:
    parameters = {
        "type": "object",
        "properties": {"a": {"type": "string", "description": "x" * MAX_SCHEMA_CHARACTERS}, "b": {"type": "string"}},
        "required": ["a"],
    }
    long = ToolSchema(name="long", description="Long.", parameters=parameters)

    assert '{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}' in render_found_tools([long])


def test_what_a_small_window_does_not_bear_is_named_alone() -> None:
    found = [tool(f"t{number}", "x" * (MAX_FOUND_CHARACTERS // 2)) for number in range(4)]

    said = render_found_tools(found)

    assert said.count("arguments: ") == 1
    assert "Less near, shown when you ask by name: t1, t2, t3." in said
