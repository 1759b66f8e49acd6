"""Parameter schemas of foreign tools."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from mcp_types.methods import validate_server_result

from ollm.extensions.mcp.results import (
    MAX_DEPTH_LEVELS,
    mend_message,
    mend_tool_list,
    prepare_schema,
)
from tests.cli.running import running
from tests.extensions.raw_servers import configure, raw_entry, shown_tools
from tests.servers.answers import Answer

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
    began = time.perf_counter()
    found, fault = prepare_schema(schema)

    assert time.perf_counter() - began < 0.5
    assert bool(found) != bool(fault)


def test_a_schema_nested_too_deeply_is_left_out_with_the_reason() -> None:
    assert prepare_schema(nest(MAX_DEPTH_LEVELS * 2))[1] == "its parameters are nested too deeply"


async def test_deep_schemas_neither_hang_the_command_nor_hide_other_tools(tmp_path: Path) -> None:
    tools = [{"name": f"deep{depth}", "inputSchema": nest(depth)} for depth in (20, 30, 60, 200)]
    async with running(tmp_path, ["hello"]) as runner:
        plain = {"name": "plain", "inputSchema": {"type": "object"}}
        configure(runner, mcpServers={"raw": raw_entry(tmp_path, "raw", tools=[*tools, plain])})
        began = time.monotonic()
        done = await runner.run("-p", "hi")

    assert (done.code, done.out) == (0, "hello\n")
    assert time.monotonic() - began < 60
    assert "raw__plain" in shown_tools(runner.server.chats[0])
    assert "deep200 of the MCP server raw was skipped: its parameters are nested too deeply" in done.err


@pytest.mark.parametrize("window", [2048, 4096, 8192, 32768])
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
    mended = mend_tool_list({"tools": [{"name": "a"}], **hints})

    validate_server_result("tools/list", version, mended)
    assert (mended["cacheScope"], mended["ttlMs"]) == (scope, age)


def test_a_line_that_cannot_be_read_becomes_an_error_or_nothing() -> None:
    assert mend_message(b"noise") is None
    assert mend_message(b'{"method": "x", "id": 5, "params": oops}') is None
    assert mend_message(b'{"id": 7, oops') == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": -32700, "message": "its answer is not JSON or is nested too deeply"},
    }
    assert mend_message(b'{"result": ' + b" " * 300 + b'oops, "id": 8}') is not None
