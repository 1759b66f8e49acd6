"""What MCP servers offer: tools, schemas, results."""

import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ollm.domain.errors import ToolFailure
from ollm.domain.messages import JsonObject
from ollm.domain.tools import ToolResult, Verdict
from ollm.extensions.mcp.catalogue import (
    MAX_SHOWN_CHARACTERS,
    MAX_SUMMARY_CHARACTERS,
    Catalogue,
    CatalogueFile,
    McpCall,
    check_arguments,
    fingerprint_tool,
    make_tool_name,
    select_tools,
)
from ollm.extensions.mcp.results import (
    MAX_IMAGE_CHARACTERS,
    extract_images,
    extract_text,
    mend_answer,
    mend_tool_list,
    prepare_schema,
)
from ollm.extensions.mcp.settings import McpServer
from tests.cli.running import running
from tests.extensions.raw_servers import configure, raw_entry, shown_tools
from tests.servers.answers import Answer


def offered(name: str, description: str = "Does it.", schema: object = None) -> SimpleNamespace:
    parameters = {"type": "object"} if schema is None else schema
    return SimpleNamespace(name=name, description=description, title=None, input_schema=parameters)


SERVER = McpServer(name="notes", command="run")


@pytest.mark.parametrize("tool", ["", "a" * 58, "add it", "ädd", "a.b", "\ud800"])
def test_any_other_name_is_mended_and_ends_in_its_hash(tool: str) -> None:
    name = make_tool_name("notes", tool)

    assert re.fullmatch(r"notes__[A-Za-z0-9_-]*_[0-9a-f]{8}", name)
    assert len(name) <= 64


def test_only_so_many_tools_are_taken_and_only_those_that_are_wanted() -> None:
    many = [offered(f"t{n}") for n in range(130)]
    taken, left_out = select_tools(SERVER, many)
    assert len(taken) == 128
    assert left_out == ("The MCP server notes has more than 128 tools; the rest are skipped.",)
    assert select_tools(SERVER, many[:128])[1] == ()
    chosen = McpServer(name="notes", command="run", include=("t1",))
    assert [tool.remote for tool in select_tools(chosen, many)[0]] == ["t1"]


class Hour:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_what_was_offered_is_kept_and_grows_old(tmp_path: Path) -> None:
    clock = Hour()
    kept = CatalogueFile(tmp_path / "cache" / "mcp.json", clock)
    assert kept.get(SERVER) is None
    found = Catalogue(instructions="Be kind.", timestamp="2026-01-01T12:00:00.000Z")
    kept.put(SERVER, found)

    assert kept.get(SERVER) == found
    assert kept.is_fresh(found)
    clock.now += timedelta(seconds=3599)
    assert kept.is_fresh(found)
    clock.now += timedelta(seconds=1)
    assert not kept.is_fresh(found)
    clock.now = datetime(2025, 1, 1, tzinfo=UTC)
    assert not kept.is_fresh(found)
    assert not kept.is_fresh(Catalogue(timestamp="never"))


def test_a_server_that_is_configured_otherwise_is_another_one(tmp_path: Path) -> None:
    kept = CatalogueFile(tmp_path / "mcp.json")
    other, changed = McpServer(name="other", command="run"), McpServer(name="notes", command="run", args=("x",))
    kept.put(SERVER, Catalogue(instructions="1"))
    kept.put(other, Catalogue(instructions="2"))
    assert kept.get(changed) is None
    kept.put(changed, Catalogue(instructions="3"))

    assert kept.get(SERVER) is None
    found = [kept.get(server) for server in (changed, other)]
    assert [each.instructions for each in found if each] == ["3", "2"]


@pytest.mark.parametrize("data", [b"", b"not json", b"[]", b'{"a": 5}'])
def test_a_damaged_file_is_no_file(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(data)

    assert CatalogueFile(file).get(SERVER) is None


@pytest.mark.parametrize(
    ("cursors", "said"),
    [
        ([7], ""),
        ([str(number) for number in range(40)], "The list of tools of the MCP server raw has more than 20 pages"),
    ],
)
async def test_a_list_that_does_not_end_is_used_as_far_as_it_goes_and_said(
    tmp_path: Path, cursors: list[Any], said: str
) -> None:
    async with running(tmp_path, []) as runner:
        configure(runner, mcpServers={"raw": raw_entry(tmp_path, "raw", tools=[{"name": "one"}], cursors=cursors)})
        done = await runner.run("mcp", "test")

    assert (done.code, "raw__one" in done.out) == (0, True), done.out
    assert said in done.out
    assert ("The list of tools" in done.out) == bool(said)


TOOL_SERVER = McpServer(name="notes", command="notes-server", args=("--stdio",))

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
    asks = Verdict(decision="ask", reason="policy")
    long = McpCall(spec_name="t", arguments={"a": "x" * MAX_SUMMARY_CHARACTERS})
    giant = McpCall(spec_name="t", arguments={"a": "x" * (MAX_SHOWN_CHARACTERS + 1000)})

    assert len(long.summary()) <= MAX_SUMMARY_CHARACTERS + len("t ")
    shown = [details.description for one in (long, giant) if (details := one.confirmation(asks))]
    assert ["omitted" in text for text in shown] == [False, True]
    assert shown[1].endswith('x"\n}')


def test_a_grant_is_bound_to_the_program_and_to_what_the_tool_takes() -> None:
    same = fingerprint_tool(TOOL_SERVER, "t", {"a": 1, "b": 2})

    assert same == fingerprint_tool(TOOL_SERVER, "t", {"b": 2, "a": 1})
    assert len(same) == 16
    others = {
        fingerprint_tool(McpServer(name="notes", command="other", args=("--stdio",)), "t", {"a": 1, "b": 2}),
        fingerprint_tool(McpServer(name="notes", command="notes-server"), "t", {"a": 1, "b": 2}),
        fingerprint_tool(McpServer(name="notes", url="http://x"), "t", {"a": 1, "b": 2}),
        fingerprint_tool(TOOL_SERVER, "u", {"a": 1, "b": 2}),
        fingerprint_tool(TOOL_SERVER, "t", {}),
    }
    assert len(others | {same}) == 6


PERSON = {
    "type": "object",
    "properties": {"person": {"$ref": "#/$defs/Person"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    "required": ["person"],
    "$defs": {
        "Person": {
            "title": "Person",
            "type": "object",
            "properties": {"name": {"type": "string", "title": "Name"}, "home": {"$ref": "#/$defs/Address"}},
            "required": ["name", "home"],
        },
        "Address": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}

TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}},
    "required": ["root"],
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "required": ["children"],
        }
    },
}


def nest(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def double(depth: int) -> dict[str, Any]:
    """Each definition holds the next one twice."""
    definitions = {
        f"d{n}": {"type": "object", "properties": {key: {"$ref": f"#/$defs/d{n + 1}"} for key in "ab"}}
        for n in range(depth)
    }
    return {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/d0"}},
        "$defs": {**definitions, f"d{depth}": {"type": "string"}},
    }


@pytest.mark.parametrize("schema", [nest(30), nest(60), nest(2000), double(25), double(60), TREE, PERSON], ids=range(7))
def test_every_schema_is_walked_in_no_time(schema: dict[str, Any]) -> None:
    began = time.thread_time()
    found, fault = prepare_schema(schema)

    assert time.thread_time() - began < 0.5
    assert bool(found) != bool(fault)


async def test_deep_schemas_neither_hang_the_command_nor_hide_other_tools(tmp_path: Path) -> None:
    tools = [{"name": f"deep{depth}", "inputSchema": nest(depth)} for depth in (20, 30, 60, 80)]
    async with running(tmp_path, ["hello"]) as runner:
        plain = {"name": "plain", "inputSchema": {"type": "object"}}
        configure(runner, mcpServers={"raw": raw_entry(tmp_path, "raw", tools=[*tools, plain])})
        began = time.monotonic()
        done = await runner.run("-p", "hi")

    assert (done.code, done.out) == (0, "hello\n")
    assert time.monotonic() - began < 60
    assert "raw__plain" in shown_tools(runner.server.chats[0])
    assert "deep80 of the MCP server raw was skipped: its parameters are nested too deeply" in done.err


@pytest.mark.parametrize("window", [2048, 32768])
async def test_references_arrive_filled_in_in_every_window(tmp_path: Path, window: int) -> None:
    call = Answer(calls=[("raw__greet", {"person": {"name": "Ada", "home": {"city": "London"}}})])
    async with running(tmp_path, [call, "done"], window=window) as runner:
        greet = {"name": "greet", "description": "Greet.", "inputSchema": PERSON}
        server = raw_entry(tmp_path, "raw", tools=[greet])
        configure(runner, mcpServers={"raw": server}, provider={"contextWindow": window})
        done = await runner.run("-p", "greet", "--yes", "-o", "json")

    parameters = shown_tools(runner.server.chats[0])["raw__greet"]["parameters"]
    person = parameters["properties"]["person"]
    assert person["properties"]["home"]["properties"]["city"] == {"type": "string"}
    assert person["required"] == ["name", "home"]
    assert "$defs" not in parameters
    (made,) = json.loads(done.out)["toolCalls"]
    assert (made["status"], "London" in made["result"]["llmContent"]) == ("ok", True)


async def test_a_definition_that_holds_itself_stays_a_definition(tmp_path: Path) -> None:
    async with running(tmp_path, ["done"]) as runner:
        configure(runner, mcpServers={"raw": raw_entry(tmp_path, "raw", tools=[{"name": "t", "inputSchema": TREE}])})
        await runner.run("-p", "hi")

    parameters = shown_tools(runner.server.chats[0])["raw__t"]["parameters"]
    assert parameters["properties"]["root"] == {"$ref": "#/$defs/Node"}
    assert parameters["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


async def test_one_bad_tool_loses_itself_and_not_its_server(tmp_path: Path) -> None:
    tools: list[Any] = [
        {"name": "good", "description": "Good.", "inputSchema": {"type": "object", "properties": {"a": {}}}},
        {"name": "untyped", "inputSchema": {"properties": {"b": {"type": "string"}}}},
        {"name": "missing"},
        {"name": "listed", "inputSchema": {"type": "array", "items": {"type": "string"}}},
        {"name": "worded", "inputSchema": "a string"},
        {"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": 7, "title": 3, "annotations": "x"},
        {"name": "wrong_keys", "inputSchema": {"type": "object", "properties": [], "required": "a", "$defs": 5}},
        {"name": "hinted", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "perhaps"}},
        {"name": 12, "inputSchema": {"type": "object"}},
        "not a tool",
    ]
    async with running(tmp_path, ["done"]) as runner:
        configure(runner, mcpServers={"raw": raw_entry(tmp_path, "raw", tools=tools)})
        done = await runner.run("-p", "hi")

    shown = shown_tools(runner.server.chats[0])
    assert {name for name in shown if name.startswith("raw__")} == {
        f"raw__{n}" for n in ("good", "untyped", "missing", "odd", "wrong_keys", "hinted")
    }
    assert shown["raw__untyped"]["parameters"]["type"] == "object"
    assert "listed of the MCP server raw was skipped: its parameters are not an object" in done.err
    assert "worded of the MCP server raw was skipped: its parameters are not an object" in done.err


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("hints", "scope", "age"),
    [
        ({}, "private", 0),
        ({"cacheScope": "public", "ttlMs": 7, "resultType": "complete"}, "public", 7),
        ({"cacheScope": ["public"], "ttlMs": "7", "resultType": 5}, "private", 0),
        ({"cacheScope": None, "ttlMs": -1}, "private", 0),
    ],
)
def test_hints_for_a_cache_lose_no_list(version: str, hints: dict[str, Any], scope: str, age: int) -> None:
    from mcp_types.methods import validate_server_result  # by the worker that needs it alone

    mended = mend_tool_list({"tools": [{"name": "a"}], **hints})
    validate_server_result("tools/list", version, mended)
    assert (mended["cacheScope"], mended["ttlMs"]) == (scope, age)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(data: str = "AAAA", media: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "mimeType": media, "data": data}


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (text("hello"), "hello"),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}, "inside"),
        ({"type": "resource_link", "name": "doc", "uri": "file:///a"}, "[doc: file:///a]"),
        (image("A" * 4000), "[image, image/png, about 3,000 bytes]"),
        ({"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}, "[audio, audio/wav, about 3 bytes]"),
    ],
)
def test_every_kind_of_block_is_read_or_named(block: dict[str, Any], line: str) -> None:
    assert extract_text([block]) == line


def test_only_so_many_pictures_of_some_size_are_taken() -> None:
    assert len(extract_images([image() for _ in range(9)])) == 4
    assert len(extract_images([image("A" * MAX_IMAGE_CHARACTERS)])) == 1
    assert extract_images([image("A" * (MAX_IMAGE_CHARACTERS + 1)), text("t")]) == ()
    assert extract_images([image("not base64!"), image(""), image(media="image/x-odd")]) == ()


async def test_what_nobody_knows_in_an_answer_is_text_and_loses_nothing_else(tmp_path: Path) -> None:
    blocks = [{"type": "hologram", "x": 1}, {"type": "text", "text": "plain"}, "bare", {"type": "image", "data": 5}]
    answers: dict[str, Any] = {
        "mixed": {"content": blocks},
        "worded": {"content": "just words", "isError": "no"},
        "structured": {"structuredContent": [3, 4]},
        "linked": {"content": [{"type": "resource", "resource": {"uri": "a b", "text": "inside", "_meta": 7}}]},
    }
    calls = [Answer(calls=[(f"raw__{name}", {})]) for name in answers]
    async with running(tmp_path, [*calls, "done"]) as runner:
        tools = [{"name": name} for name in answers]
        configure(runner, mcpServers={"raw": raw_entry(tmp_path, "raw", tools=tools, answers=answers)})
        done = await runner.run("-p", "go", "--allow", "raw__*")

    results = [message["content"] for message in runner.server.chats[-1]["messages"] if message["role"] == "tool"]
    assert done.code == 0, done.err
    assert results == [
        '{"type":"hologram","x":1}\nplain\nbare\n{"type":"image","data":5}',
        "just words",
        "[3,4]",
        "inside",
    ]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("given", [{}, "words", {"content": [{"type": "hologram"}], "resultType": 5}])
def test_an_answer_is_readable_in_every_version(version: str, given: Any) -> None:
    from mcp_types.methods import validate_server_result

    validate_server_result("tools/call", version, mend_answer(given))
