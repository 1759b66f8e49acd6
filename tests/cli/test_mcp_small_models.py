"""Tools of MCP servers with models that write blocks, and with models that bear few tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import running
from tests.extensions.raw_servers import configure, raw_entry, shown_tools
from tests.servers.answers import Answer

ZONE = {"type": "object", "properties": {"timezone": {"type": "string"}, "format": {"type": "string"}}}
CLOCK = [
    {
        "name": "get_time",
        "description": "Get the time in a zone",
        "inputSchema": {**ZONE, "required": ["timezone"]},
    }
]
MANY = [
    {
        "name": f"thing_{number}",
        "description": f"Do thing number {number} to what the id names. " * 3,
        "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    }
    for number in range(60)
]


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLM_CALL_FORM", "blocks")


@pytest.mark.usefixtures("blocks")
async def test_a_model_that_writes_blocks_is_told_the_tools_with_their_parameters_and_calls_one(tmp_path: Path) -> None:
    script = ["Let me see.\n```clock__get_time\ntimezone: Europe/Vienna\n```\n", "It is noon."]
    async with running(tmp_path, script, window=16384, kind="vllm") as runner:
        configure(runner, mcpServers={"clock": raw_entry(tmp_path, "clock", tools=CLOCK)})
        done = await runner.run("-p", "what time is it?", "--yes", "-o", "json")

    told = runner.server.chats[0]["messages"][0]["content"]
    assert "clock__get_time(timezone, [format]): Get the time in a zone" in told
    assert [(call["name"], call["args"]) for call in json.loads(done.out)["toolCalls"]] == [
        ("clock__get_time", {"timezone": "Europe/Vienna"})
    ]
    assert "Europe/Vienna" in runner.server.chats[1]["messages"][-1]["content"]


@pytest.mark.usefixtures("blocks")
async def test_a_model_that_writes_blocks_finds_a_hidden_tool_and_uses_it(tmp_path: Path) -> None:
    script = [
        "```find_tool\nquery: thing 57\n```\n",
        "```use_tool\nname: big__thing_57\nid: a7\n```\n",
        "Done.",
    ]
    async with running(tmp_path, script, window=4096, kind="vllm") as runner:
        configure(runner, mcpServers={"big": raw_entry(tmp_path, "big", tools=MANY)})
        done = await runner.run("-p", "do thing 57 to a7", "--yes", "-o", "json")

    told = runner.server.chats[0]["messages"][0]["content"]
    assert "find_tool(query)" in told
    assert "use_tool(name, arguments)" in told
    made = [(call["name"], call["args"], call["status"]) for call in json.loads(done.out)["toolCalls"]]
    assert made == [("find_tool", {"query": "thing 57"}, "ok"), ("big__thing_57", {"id": "a7"}, "ok")]


@pytest.mark.parametrize("bears", [1, 3, 5])
async def test_a_model_that_bears_few_tools_still_finds_those_of_a_server(tmp_path: Path, bears: int) -> None:
    script = [Answer(calls=[("ls", {})]), "Hi.", "Hi."]
    async with running(tmp_path, script, window=16384, kind="vllm") as runner:
        configure(runner, mcpServers={"big": raw_entry(tmp_path, "big", tools=MANY)})
        await runner.run("-p", "hi")
        learn(runner.home, maxTools=bears)
        await runner.run("-p", "hi")

    names = set(shown_tools(runner.server.chats[2]))
    assert {"find_tool", "use_tool"} <= names
    assert len(names) <= bears + 2


def learn(home: Path, **facts: Any) -> None:
    file = home / "model-facts.json"
    known = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({key: {**kept, **facts} for key, kept in known.items()}), encoding="utf-8")
