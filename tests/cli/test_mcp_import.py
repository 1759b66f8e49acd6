"""Configuration of MCP servers as people have it: other clients' files read, imported, added from JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import running
from tests.extensions.raw_servers import raw_entry, shown_tools

TOOLS = [{"name": "now", "description": "The time.", "inputSchema": {"type": "object"}}]


@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        (".mcp.json", lambda entry: {"mcpServers": {"clock": entry}}),
        (".cursor/mcp.json", lambda entry: {"mcpServers": {"clock": {**entry, "alwaysAllow": ["now"]}}}),
        (".vscode/mcp.json", lambda entry: {"servers": {"clock": {"type": "stdio", **entry}}, "inputs": []}),
        (".gemini/settings.json", lambda entry: {"theme": "x", "mcpServers": {"clock": {**entry, "timeout": 30000, "trust": True}}}),
    ],
)  # fmt: skip
async def test_the_files_of_other_clients_are_imported(tmp_path: Path, name: str, wrap: Any) -> None:
    async with running(tmp_path, ["Hi."]) as runner:
        file = runner.workspace / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(wrap(raw_entry(tmp_path, "clock", tools=TOOLS))))
        imported = await runner.run("mcp", "import", str(file))
        listed = json.loads((await runner.run("mcp", "list", "--json")).out)
        done = await runner.run("-p", "hi")

    assert imported.code == 0, imported.err
    assert [server["name"] for server in listed] == ["clock"]
    assert ("not taken over" in imported.err) == (name in (".cursor/mcp.json", ".gemini/settings.json"))
    assert "clock__now" in shown_tools(runner.server.chats[0])
    assert done.code == 0


async def test_a_project_file_is_used_once_the_workspace_is_trusted(tmp_path: Path) -> None:
    async with running(tmp_path, ["Before.", "After."]) as runner:
        entry = {"mcpServers": {"clock": raw_entry(tmp_path, "clock", tools=TOOLS)}}
        (runner.workspace / ".mcp.json").write_text(json.dumps(entry))
        before = await runner.run("-p", "hi")
        await runner.run("trust")
        await runner.run("-p", "hi")

    first, second = runner.server.chats
    assert "clock__now" not in shown_tools(first)
    assert "clock__now" in shown_tools(second)
    assert before.code == 0


async def test_a_server_is_added_as_claude_code_has_it(tmp_path: Path) -> None:
    async with running(tmp_path, []) as runner:
        text = json.dumps({"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "1"}, "odd": 1})
        from_json = await runner.run("mcp", "add-json", "one", text)
        http = await runner.run("mcp", "add", "--transport", "http", "two", "https://example.org/mcp")
        listed = json.loads((await runner.run("mcp", "list", "--json")).out)

    assert (from_json.code, http.code) == (0, 0), from_json.err + http.err
    assert "odd has no meaning here" in from_json.err
    assert {server["name"]: server["place"] for server in listed} == {
        "one": "npx -y x",
        "two": "https://example.org/mcp",
    }


async def test_an_unknown_key_is_told_and_the_server_is_used(tmp_path: Path) -> None:
    async with running(tmp_path, ["Hi."]) as runner:
        runner.home.mkdir()
        entry = {**raw_entry(tmp_path, "clock", tools=TOOLS), "gallery": True}
        (runner.home / "config.yaml").write_text(json.dumps({"mcpServers": {"clock": entry}}))
        done = await runner.run("-p", "hi")

    assert "unknown key gallery is ignored" in done.err
    assert "clock__now" in shown_tools(runner.server.chats[0])
