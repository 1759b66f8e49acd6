"""Tools from outside that do not fit the window: found by words, called by their name."""

from collections.abc import Sequence

import pytest

from ollm.domain.tools import Risk, ToolSchema
from ollm.tools.framework.base import ToolContext
from ollm.tools.framework.tool_selection import (
    MAX_FOUND_CHARACTERS,
    MAX_FOUND_TOOLS,
    MAX_SCHEMA_CHARACTERS,
    build_deferred_schemas,
    find_tools,
    make_find_spec,
    render_found_tools,
    split_by_budget,
    unwrap_call,
)

WIDE, BRIEF = 16_000, 15_999


def tool(name: str, description: str = "") -> ToolSchema:
    return ToolSchema(name=name, description=description, parameters={"type": "object"})


def cost(tools: Sequence[ToolSchema]) -> int:
    """Ten a tool."""
    return 10 * len(tools)


def split(names: list[str], budget: float, most: int | None = None) -> tuple[list[str], list[str]]:
    shown, hidden = split_by_budget([tool(name) for name in names], budget, cost, WIDE, most)
    return [found.name for found in shown], [found.name for found in hidden]


@pytest.mark.parametrize(
    ("budget", "most", "shown"),
    [
        (30, None, ["a__1", "a__2", "b__1"]),
        (30, 3, ["a__1", "a__2", "b__1"]),
        (29, None, []),  # the two that find the others take 20 of it, and 9 are too few
        (30, 2, []),
        (20, None, []),
        (1000, 2, []),
        (1000, 3, ["a__1", "a__2", "b__1"]),
    ],
)
def test_all_that_fits_is_shown(budget: float, most: int | None, shown: list[str]) -> None:
    assert split(["a__1", "a__2", "b__1"], budget, most)[0] == shown


def test_the_smallest_servers_are_shown_whole_and_the_others_in_turn() -> None:
    names = ["a__1", "a__2", "a__3", "b__1", "c__1", "c__2", "c__3"]

    assert split(names, 30) == (["b__1"], [name for name in names if name != "b__1"])
    assert split(names, 50)[0] == ["b__1", "a__1", "c__1"]
    assert split(names, 60)[0] == ["b__1", "a__1", "a__2", "a__3"]
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


async def test_finding_is_a_call_that_only_reads(context: ToolContext) -> None:
    spec = make_find_spec(lambda: TOOLS)
    call = spec.parse({"query": "log"})

    assert (spec.name, spec.category, spec.risk, spec.reads_only) == ("find_tool", "read", Risk.LOW, True)
    assert (call.params, call.summary(), call.locations()) == ({"query": "log"}, "Find a tool: log", [])
    result = await call.run(context)
    assert result.return_display == "git__log"
    assert result.llm_content.startswith("git__log: Show the history.")
    nothing = await spec.parse({"query": "zebra"}).run(context)
    assert nothing.return_display == "nothing found"
    assert nothing.llm_content.startswith("No tool fits 'zebra'.")
    many = make_find_spec(lambda: [tool(f"log{number}") for number in range(9)])
    assert (await many.parse({"query": "log"}).run(context)).return_display.count("log") == MAX_FOUND_TOOLS == 5
